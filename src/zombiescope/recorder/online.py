"""Which CPUs are online: one small file, read at every tick, for a CPU may come and go."""

from __future__ import annotations

from zombiescope.kernel import cpu, stat
from zombiescope.kernel.procfile import ProcFile, at, read_file
from zombiescope.store.core_lists import ISOLATED, NONE
from zombiescope.store.event import Event


class OnlineCpus:
    def __init__(self, root: str = "/") -> None:
        self._file = ProcFile(at(root, "sys/devices/system/cpu/online"))
        self.cpus = cpu.online(root) or _counted(root) or (0,)

    def follow(self, now_us: int) -> list[Event]:
        """Reads the list again: an event for those that came and one for those that went, nothing when it is as it
        was."""
        text = self._file.read()
        online = cpu.parse_list(text) if text else self.cpus
        if online == self.cpus:
            return []
        came, went = sorted(set(online) - set(self.cpus)), sorted(set(self.cpus) - set(online))
        self.cpus = online
        changed = ((came, "cpu_online", "online"), (went, "cpu_offline", "offline"))
        return [_event(now_us, cpus, kind, what) for cpus, kind, what in changed if cpus]

    def close(self) -> None:
        self._file.close()


def left_out(wanted: str, root: str = "/") -> frozenset[int]:
    """The cores that are not to be interrupted by sampling: a list, or those that the kernel keeps for themselves."""
    if wanted == ISOLATED:
        return frozenset((*(cpu.isolated(root) or ()), *(cpu.nohz_full(root) or ())))
    return frozenset() if wanted == NONE else frozenset(cpu.parse_list(wanted.encode()))


def _counted(root: str) -> tuple[int, ...]:
    """Those of /proc/stat, where /sys is hidden."""
    data = read_file(at(root, "proc/stat"))
    return tuple(sorted(stat.parse(data).cpus)) if data is not None else ()


def _event(now_us: int, cpus: list[int], kind: str, what: str) -> Event:
    text = f"cpu {', '.join(map(str, cpus))} went {what}"
    return Event(now_us, kind, "sysfs", "info", text, {"cpus": cpus})
