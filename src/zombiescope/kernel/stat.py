"""/proc/stat: where each CPU spent its time since boot, in USER_HZ ticks, and a few totals.

Fields: per CPU and for all of them user, nice, system, idle, iowait, irq, softirq, steal, guest,
guest_nice; intr (the total only), ctxt, btime, processes (forks), procs_running, procs_blocked.

Cost: one read; the kernel sums every interrupt counter of every possible CPU for the intr line, which
is most of the cost on large machines. That line is skipped here but for its first number.

Absence: an offline CPU has no line. Columns that an old kernel lacks are None. guest is contained in
user, guest_nice in nice. idle and iowait may step back on NO_HZ kernels, so take differences with a
floor of zero and divide by elapsed time, not by the sum of the columns.
"""

import os
from dataclasses import dataclass
from typing import NamedTuple

from zombiescope.kernel.procfile import at, number, read_file

USER_HZ = os.sysconf("SC_CLK_TCK")


class CpuTicks(NamedTuple):
    """One cpu line. A tuple, not a dataclass: one is made for every CPU of every tick."""

    user: int
    nice: int
    system: int
    idle: int
    iowait: int | None
    irq: int | None
    softirq: int | None
    steal: int | None
    guest: int | None
    guest_nice: int | None


@dataclass(frozen=True, slots=True)
class Stat:
    total: CpuTicks | None
    cpus: dict[int, CpuTicks]
    intr: int | None
    ctxt: int | None
    btime_s: int | None
    processes: int | None
    procs_running: int | None
    procs_blocked: int | None


_COLUMNS = len(CpuTicks._fields)
_ALWAYS_THERE = 4
_ABSENT = (None,) * _COLUMNS


def _ticks(fields: list[bytes]) -> CpuTicks | None:
    try:
        values = tuple(map(int, fields[1 : _COLUMNS + 1]))
    except ValueError:
        return None
    if len(values) == _COLUMNS:
        return CpuTicks._make(values)
    if len(values) < _ALWAYS_THERE:
        return None
    return CpuTicks._make((*values, *_ABSENT[len(values) :]))


def _parse_cpus(text: bytes) -> tuple[CpuTicks | None, dict[int, CpuTicks]]:
    total = None
    cpus: dict[int, CpuTicks] = {}
    for line in text.split(b"\n"):
        fields = line.split()
        if not fields or not fields[0].startswith(b"cpu"):
            continue
        ticks = _ticks(fields)
        if fields[0] == b"cpu":
            total = ticks
        elif ticks is not None and (cpu := number(fields[0][3:])) is not None:
            cpus[cpu] = ticks
    return total, cpus


def _parse_totals(text: bytes) -> dict[bytes, int]:
    totals: dict[bytes, int] = {}
    for line in text.split(b"\n"):
        name, _, text = line.partition(b" ")
        if (value := number(text)) is not None:
            totals[name] = value
    return totals


def parse(data: bytes) -> Stat:
    """What is whole in the file's text; a line that is cut off or malformed counts as absent."""
    data = data[: data.rfind(b"\n") + 1]
    head, _, tail = data.partition(b"\nintr ")
    intr, _, rest = tail.partition(b"\n")
    total, cpus = _parse_cpus(head)
    totals = _parse_totals(rest or head)
    return Stat(
        total=total,
        cpus=cpus,
        intr=number(intr.partition(b" ")[0]),
        ctxt=totals.get(b"ctxt"),
        btime_s=totals.get(b"btime"),
        processes=totals.get(b"processes"),
        procs_running=totals.get(b"procs_running"),
        procs_blocked=totals.get(b"procs_blocked"),
    )


def read(root: str = "/") -> Stat | None:
    data = read_file(at(root, "proc/stat"))
    return None if data is None else parse(data)
