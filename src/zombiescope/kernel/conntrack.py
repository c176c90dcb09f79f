"""/proc/sys/net/netfilter/nf_conntrack_{count,max}: how full the connection tracking table is.

When it is full, new connections are dropped. The count is that of the reader's network namespace.

Cost: two one-number files. Absence: nf_conntrack is not loaded, and then nothing is tracked.
"""

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, read_int

_DIRECTORY = "proc/sys/net/netfilter"


@dataclass(frozen=True, slots=True)
class Conntrack:
    count: int
    max: int


def read(root: str = "/") -> Conntrack | None:
    count = read_int(at(root, f"{_DIRECTORY}/nf_conntrack_count"))
    maximum = read_int(at(root, f"{_DIRECTORY}/nf_conntrack_max"))
    return None if count is None or maximum is None else Conntrack(count, maximum)
