"""What no recording holds and is looked at before and after it: processes, quotas, units, the kernel log since boot."""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope._missing import Missing
from zombiescope.checkup import defunct, quotas, since_boot
from zombiescope.checkup.defunct import Defunct
from zombiescope.checkup.quotas import Throttled
from zombiescope.checkup.since_boot import SinceBoot
from zombiescope.systemd.units import UnitState
from zombiescope.systemd.watcher import SystemdWatcher, WatcherState

LOG_GRANT = "CAP_SYSLOG, or sysctl kernel.dmesg_restrict=0"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """None: could not be looked at."""

    defunct: Defunct | None = None
    throttled: tuple[Throttled, ...] | None = None
    units: tuple[UnitState, ...] | None = None
    log: SinceBoot | None = None
    missing: tuple[Missing, ...] = field(default=())


class Around:
    """Made before the window; `close` after it."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._systemd = SystemdWatcher(None, lambda _: None)
        self._systemd.start()
        self._processes = defunct.look(root)
        self._quotas = quotas.read(root)

    def end(self) -> Surroundings:
        after = quotas.read(self._root)
        log = since_boot.read()
        found = defunct.defunct(self._processes, defunct.look(self._root))
        systemd = self._systemd.state
        connected = systemd.status == "connected"
        return Surroundings(
            defunct=found,
            throttled=quotas.throttled(self._quotas, after) if after.found or after.whole else None,
            units=tuple(self._systemd.snapshot()) if connected else None,
            log=log if isinstance(log, SinceBoot) else None,
            missing=(*_missing(found, after, log), *([] if connected else [_silent(systemd)])),
        )

    def close(self) -> None:
        self._systemd.stop(timeout_s=0.5)


def _silent(systemd: WatcherState) -> Missing:
    return Missing("systemd", systemd.why or "it has not answered yet", systemd.fix or "look longer (--for 1m)")


def _missing(found: Defunct | None, quota: quotas.Quotas, log: SinceBoot | str) -> list[Missing]:
    missing = []
    if isinstance(log, str):
        missing.append(Missing("kernel log since boot", log, LOG_GRANT))
    if quota.why is not None:
        grant = "mount the cpu controller" if not quota.found else "nothing: 'zombiescope record' reads the busiest"
        missing.append(Missing("cgroups with a CPU quota", quota.why, grant))
    if found is None or found.others_hidden:
        why = "/proc shows only this user's processes (hidepid)" if found else "/proc cannot be listed"
        missing.append(Missing("other users' processes", why, "run it as root, or mount /proc without hidepid"))
    return missing
