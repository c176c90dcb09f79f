"""/proc/sys/fs/dentry-state: how many directory entries the kernel has cached, and how many name nothing.

Fields: nr_dentry, nr_unused, nr_negative (names that were looked up and do not exist; millions of them make
walks of one directory cost a whole CPU). The other columns are constant.

nr_negative came with v5.0 (af0c9af1b3f6) in a column that was a constant 0. A running node is never without
negative entries, so 0 is read as "not counted".

Cost: the kernel sums three per-CPU counters. Absence: only without procfs.
"""

from dataclasses import dataclass

from zombiescope.kernel.procfile import at, number, read_file


@dataclass(frozen=True, slots=True)
class DentryState:
    nr_dentry: int
    nr_unused: int
    nr_negative: int | None


def parse(data: bytes) -> DentryState | None:
    """None unless the line is whole."""
    fields = [number(field) for field in data.split()]
    if len(fields) < 6 or not data.endswith(b"\n") or fields[0] is None or fields[1] is None:
        return None
    return DentryState(fields[0], fields[1], fields[4] or None)


def read(root: str = "/") -> DentryState | None:
    data = read_file(at(root, "proc/sys/fs/dentry-state"))
    return None if data is None else parse(data)
