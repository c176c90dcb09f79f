"""/proc/loadavg: the three load averages, runnable and existing tasks, the newest pid.

Load counts tasks that run, are runnable or sleep uninterruptibly. last_pid is relative to the reader's
PID namespace. Cost: one line. Absence: only without procfs.
"""

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, read_file


@dataclass(frozen=True, slots=True)
class Loadavg:
    load1: float
    load5: float
    load15: float
    runnable: int
    tasks: int
    last_pid: int


def parse(data: bytes) -> Loadavg | None:
    """None unless the line is whole."""
    if b"\n" not in data:
        return None
    try:
        load1, load5, load15, counts, last_pid = data.split()
        runnable, tasks = counts.split(b"/")
        return Loadavg(float(load1), float(load5), float(load15), int(runnable), int(tasks), int(last_pid))
    except ValueError:
        return None


def read(root: str = "/") -> Loadavg | None:
    data = read_file(at(root, "proc/loadavg"))
    return None if data is None else parse(data)
