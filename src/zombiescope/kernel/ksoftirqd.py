"""ksoftirqd/N: how long each CPU's softirq thread was runnable and did not run.

Source: /proc/PID/schedstat of the threads named ksoftirqd/N, children of kthreadd (pid 2), found once from
/proc/2/task/2/children (CONFIG_PROC_CHILDREN) or else by a scan of /proc, and then kept open.

Up to v6.4 a jump of wait_ns means that network receive on that CPU stood still. Since v6.5 (d15121be7485)
softirqs also run at interrupt exit while ksoftirqd waits: there a jump says only that the CPU was taken.

Cost: one pread a CPU a tick; finding the threads reads one file per kernel thread. A thread is parked, not
ended, when its CPU goes offline, so it is looked for again only when a CPU without one comes online.
Absence: outside the host's PID namespace kernel threads cannot be seen.
"""

from collections.abc import Collection

from zombiescope.kernel import process
from zombiescope.kernel.procfile import ProcFile, at, names_in, number, read_file
from zombiescope.kernel.schedstat import RunDelay, parse_task

_KTHREADD = 2
_NAME = b"ksoftirqd/"


def kernel_threads(root: str) -> list[int]:
    """Pids of the children of kthreadd."""
    data = read_file(at(root, f"proc/{_KTHREADD}/task/{_KTHREADD}/children"))
    if data is not None:
        pids = (number(field) for field in data.split())
        return [pid for pid in pids if pid is not None]
    names = names_in(at(root, "proc")) or ()
    return [int(name) for name in names if name.isdecimal() and _parent(root, int(name)) == _KTHREADD]


def _parent(root: str, pid: int) -> int | None:
    data = read_file(at(root, f"proc/{pid}/stat"))
    stat = None if data is None else process.parse_stat(data)
    return None if stat is None else stat.ppid


def find(root: str = "/") -> dict[int, int]:
    """CPU -> pid of its ksoftirqd; empty where kernel threads cannot be seen."""
    if read_file(at(root, f"proc/{_KTHREADD}/comm")) != b"kthreadd\n":
        return {}
    found: dict[int, int] = {}
    for pid in kernel_threads(root):
        comm = (read_file(at(root, f"proc/{pid}/comm")) or b"").strip()
        cpu = number(comm.removeprefix(_NAME)) if comm.startswith(_NAME) else None
        if cpu is not None:
            found[cpu] = pid
    return found


class Ksoftirqd:
    """The softirq threads of the online CPUs, their schedstat files kept open."""

    __slots__ = ("_files", "_root", "why")

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._files: dict[int, ProcFile] = {}
        self.why: str | None = None

    def follow(self, online: Collection[int]) -> None:
        """Looks for the threads of CPUs that came online; call at start and after each hotplug."""
        if all(cpu in self._files for cpu in online):
            return
        found = find(self._root)
        for cpu, pid in found.items():
            if cpu not in self._files:
                self._files[cpu] = ProcFile(at(self._root, f"proc/{pid}/schedstat"))
        self.why = None if self._files else "no ksoftirqd threads in sight: not in the host's PID namespace"

    def read(self) -> dict[int, RunDelay] | None:
        """CPU -> the thread's figures; None where the threads cannot be seen."""
        if not self._files:
            return None
        read = ((cpu, file.read()) for cpu, file in self._files.items())
        delays = ((cpu, parse_task(data)) for cpu, data in read if data is not None)
        return {cpu: delay for cpu, delay in delays if delay is not None}

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
