"""/proc/schedstat and /proc/PID/schedstat: time run and time spent runnable but waiting for the CPU.

Fields, per CPU and per task alike: run_ns, wait_ns (the kernel's run_delay) and timeslices. The cpu lines
end with these three in versions 15 to 17 of the file; the versions differ in the domain lines only.

Cost: per CPU the file also prints every scheduling domain, a few hundred bytes a CPU; a task's file is one
line. Absence: /proc/schedstat needs CONFIG_SCHEDSTATS; /proc/PID/schedstat needs only CONFIG_SCHED_INFO and
is nearly always there.
"""

from dataclasses import dataclass
from typing import NamedTuple

from zombiescope.kernel.procfile import at, number, read_file

_CPU_FIELDS = 10


class RunDelay(NamedTuple):
    """A tuple, not a dataclass: one is made for every CPU of every tick."""

    run_ns: int
    wait_ns: int
    timeslices: int


@dataclass(frozen=True, slots=True)
class Schedstat:
    version: int | None
    cpus: dict[int, RunDelay]


def _run_delay(fields: list[bytes]) -> RunDelay | None:
    try:
        return RunDelay._make(map(int, fields))
    except (ValueError, TypeError):
        return None


def parse(data: bytes) -> Schedstat:
    """What is whole in the file's text; cpu lines of an unknown length are left out."""
    version = None
    cpus: dict[int, RunDelay] = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        if line.startswith(b"version "):
            version = number(line[8:])
        elif line.startswith(b"cpu"):
            fields = line.split()
            cpu, delay = number(fields[0][3:]), _run_delay(fields[7:])
            if len(fields) == _CPU_FIELDS and cpu is not None and delay is not None:
                cpus[cpu] = delay
    return Schedstat(version, cpus)


def read(root: str = "/") -> Schedstat | None:
    data = read_file(at(root, "proc/schedstat"))
    return None if data is None else parse(data)


def parse_task(data: bytes) -> RunDelay | None:
    """The one line of a task's file; None unless it is whole."""
    fields = data.split()
    return _run_delay(fields) if len(fields) == 3 and data.endswith(b"\n") else None


def task(pid: int, root: str = "/") -> RunDelay | None:
    """A task's figures, or None when it is gone."""
    data = read_file(at(root, f"proc/{pid}/schedstat"))
    return None if data is None else parse_task(data)
