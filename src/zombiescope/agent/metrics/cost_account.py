"""What zombiescope itself costs: the recorder by its own account, the agent's processes by the kernel's."""

from __future__ import annotations

import os
import time
from pathlib import Path

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Tally
from zombiescope.store.log import Block

STORE_EVERY_S = 60.0
OWN_EVERY_S = 5.0
_COLUMNS = ("cpu_us", "helper_cpu_us", "rss_bytes", "tick_late_us", "lost")
_PAGE = os.sysconf("SC_PAGESIZE")
_TICK = os.sysconf("SC_CLK_TCK")


class CostAccount:
    def __init__(self, tally: Tally, node_dir: Path) -> None:
        self._tally = tally
        self._node_dir = node_dir
        self._next_store_s = self._next_own_s = 0.0
        self._supervisor = os.getppid()
        # The supervisor was the command line before it became one: that was no cost of the agent.
        self._own_before = {"supervisor": process_cpu_s(str(self._supervisor)) or 0.0}

    def update(self, block: Block, counted: bool) -> None:
        for own, helpers, rss, late_us, lost in zip(*(block.column(name) for name in _COLUMNS), strict=True):
            if rss is not None:
                self._tally.set(families.RESIDENT, rss, "recorder")
            if not counted:
                continue
            for process, used_us in (("recorder", own), ("helpers", helpers)):
                if used_us is not None and used_us >= 0:
                    self._tally.add(families.CPU, used_us / 1e6, process)
            if late_us is not None:
                self._tally.observe(families.LATENESS, max(0, late_us) / 1e6)
            self._tally.add(families.LOST, lost or 0)

    def publish(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._next_own_s:
            self._next_own_s = now_s + OWN_EVERY_S
            self._gained("services", time.process_time())
            self._tally.set(families.RESIDENT, resident_bytes("self"), "services")
            self._gained("supervisor", process_cpu_s(str(self._supervisor)))
            self._tally.set(families.RESIDENT, resident_bytes(str(self._supervisor)), "supervisor")
        if now_s >= self._next_store_s:
            size = tree_bytes(self._node_dir)
            self._next_store_s = now_s + (STORE_EVERY_S if size is not None else OWN_EVERY_S)
            self._tally.set(families.STORE, size)

    def _gained(self, process: str, total_s: float | None) -> None:
        if total_s is not None:
            self._tally.add(families.CPU, max(0.0, total_s - self._own_before.get(process, 0.0)), process)
            self._own_before[process] = total_s


def resident_bytes(pid: str) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return None


def process_cpu_s(pid: str) -> float | None:
    """utime and stime, behind the name, which may hold anything."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK
    except (OSError, ValueError, IndexError):
        return None


def tree_bytes(place: Path) -> int | None:
    """Two levels of folders, as a recording has them; None where it cannot be read."""
    total = 0
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += tree_bytes(Path(entry.path)) or 0
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    except OSError:
        return None
    return total
