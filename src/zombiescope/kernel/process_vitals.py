"""/proc/PID/stat of a process of ours: whether it runs, what CPU time it had, how much memory it holds; and where in
the kernel it waits.

Fields of stat: state (3), utime and stime (14, 15) in ticks of USER_HZ, rss (24) in pages. A read costs some 15 us.
wchan names the kernel function in which a process sleeps; it is "0" for one that does not, or that may not be looked
at. A process that is gone, or a zombie, is None.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from zombiescope.kernel.procfile import read_file
from zombiescope.kernel.stat import USER_HZ

_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_MOST_WCHAN = 100


@dataclass(frozen=True, slots=True)
class Vitals:
    state: str
    """As the kernel writes it: R, S, D, T, t ..."""
    cpu_s: float
    rss_bytes: int

    @property
    def is_stopped(self) -> bool:
        """By SIGSTOP, or by a debugger."""
        return self.state in ("T", "t")

    @property
    def is_in_kernel(self) -> bool:
        """In a sleep that no signal ends."""
        return self.state == "D"

    @property
    def is_runnable(self) -> bool:
        return self.state == "R"


def read(pid: int) -> Vitals | None:
    fields = (read_file(f"/proc/{pid}/stat") or b"").rpartition(b")")[2].split()
    if len(fields) < 22 or fields[0] in (b"Z", b"X"):
        return None
    ticks = int(fields[11]) + int(fields[12])
    return Vitals(fields[0].decode("ascii", "replace"), ticks / USER_HZ, int(fields[21]) * _PAGE_BYTES)


def waits_in(pid: int) -> str | None:
    """The kernel function in which it sleeps."""
    found = (read_file(f"/proc/{pid}/wchan") or b"").decode("ascii", "replace").strip()
    return None if found in ("", "0") else found[:_MOST_WCHAN]


def uninterruptible(tid: int) -> str | None:
    """Where a thread of this process waits in the kernel, if no signal ends that: what it reads hangs, and not we."""
    fields = (read_file(f"/proc/self/task/{tid}/stat") or b"").rpartition(b")")[2].split()
    if not fields or fields[0] != b"D":
        return None
    return waits_in(tid) or "the kernel"
