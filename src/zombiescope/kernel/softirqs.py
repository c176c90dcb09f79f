"""/proc/softirqs: how often each softirq vector ran on each CPU.

Fields: one row a vector (HI, TIMER, NET_TX, NET_RX, BLOCK, IRQ_POLL, TASKLET, SCHED, HRTIMER, RCU), one
column a *possible* CPU; the header names the columns, and offline CPUs keep theirs. The counters are 32
bits wide and wrap at WRAP.

Cost: ten rows whatever the machine does. Absence: only without procfs.
"""

from dataclasses import dataclass
from functools import lru_cache

from zombiescope.kernel.procfile import at, number, read_file

WRAP = 1 << 32


@dataclass(frozen=True, slots=True)
class Softirqs:
    cpus: tuple[int, ...]
    vectors: dict[str, tuple[int, ...]]
    """Vector -> counts, in the order of cpus."""


@lru_cache(maxsize=4)
def header_cpus(header: bytes) -> tuple[int, ...]:
    """The CPU numbers of a "CPU0 CPU1 ..." header line."""
    numbers = (number(column[3:]) for column in header.split() if column[:3] == b"CPU")
    return tuple(cpu for cpu in numbers if cpu is not None)


def parse(data: bytes) -> Softirqs:
    """What is whole in the file's text; a row with too few or broken numbers is left out."""
    header, *rows = data[: data.rfind(b"\n") + 1].split(b"\n")
    cpus = header_cpus(header)
    vectors: dict[str, tuple[int, ...]] = {}
    for row in rows:
        label, _, text = row.partition(b":")
        try:
            counts = tuple(map(int, text.split()))
        except ValueError:
            continue
        if counts and len(counts) == len(cpus):
            vectors[label.strip().decode("ascii", "replace")] = counts
    return Softirqs(cpus, vectors)


def read(root: str = "/") -> Softirqs | None:
    data = read_file(at(root, "proc/softirqs"))
    return None if data is None else parse(data)
