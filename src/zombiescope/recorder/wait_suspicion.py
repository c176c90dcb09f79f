"""Whether somebody may be waiting who does not come back: from numbers that are there anyway, at every tick.

blocked   procs_blocked: tasks that wait for a disk or a page
load      the load average rises above what runs: it alone counts every task in state D, also those that wait for NFS, a
          lock or a driver, whom neither procs_blocked nor PSI nor iowait knows
disk      a disk has requests and completes none
remote    a file server or FUSE daemon stood still at the helper's last look
"""

from __future__ import annotations

from collections import deque

from zombiescope.kernel import loadavg
from zombiescope.kernel.procfile import ProcFile, at
from zombiescope.recorder.tick import Tick

BLOCKED_TICKS = 3
STALLED_S = 3.0
LOAD_S = 15.0
_KEPT: float = 0.92 ** (LOAD_S / 5)  # exp(-5 s / 60 s) of the average is kept every five seconds
LEAST_WAITING = 0.7
LEAST_OF_RUNNING = 0.25
"""What runs changes all the time, and the more the more it is."""


class WaitSuspicion:
    def __init__(self, root: str = "/") -> None:
        self._load = ProcFile(at(root, "proc/loadavg"))
        self._blocked = 0
        self._past: deque[tuple[int, float, int]] = deque(maxlen=64)

    def reasons(self, tick: Tick, stalled_s: float) -> set[str]:
        blocked = tick.stat.procs_blocked if tick.stat is not None else None
        self._blocked = self._blocked + 1 if blocked else 0
        found = set()
        if self._blocked >= BLOCKED_TICKS:
            found.add("blocked")
        if stalled_s >= STALLED_S:
            found.add("disk")
        if self._waiting(tick):
            found.add("load")
        return found

    def _waiting(self, tick: Tick) -> bool:
        """Tasks that the load average counts and that do not run: what was added to it in the last 15 s."""
        data = self._load.read()
        load = loadavg.parse(data) if data is not None else None
        running = tick.stat.procs_running if tick.stat is not None else None
        if load is None or running is None:
            return False
        self._past.append((tick.wall_us, load.load1, max(0, running - 1)))  # we run
        while self._past and tick.wall_us - self._past[0][0] > LOAD_S * 1e6:
            before = self._past.popleft()
            if tick.wall_us - before[0] > 2 * LOAD_S * 1e6:
                continue
            active = (load.load1 - before[1] * _KEPT) / (1 - _KEPT)
            mean = sum(one[2] for one in self._past) / max(1, len(self._past))
            return active - mean >= max(LEAST_WAITING, LEAST_OF_RUNNING * mean)
        return False

    def close(self) -> None:
        self._load.close()
