"""A copy of /proc/cgroups, and a list of cgroup directories beside it.

/proc/cgroups counts every cgroup that still holds memory, the removed ones too (`num_cgroups`); a list of directories
(`find /sys/fs/cgroup/memory -type d`) counts the living. Their difference is the dead that the kernel still carries.
Neither says when it was taken: the file's modification time is.
"""

from __future__ import annotations

from zombiescope.imports.rows import ImportReport

HEAD = "#subsys_name"
ROOT = "/sys/fs/cgroup"
Row = tuple[int, str, int, int | None, int | None, None, None, None, None]
"""As schema.CENSUS."""


def read(text: str, time_us: int, live: int | None, outcome: ImportReport) -> list[Row]:
    """The census as this copy shows it; `live` is the number of directories, when somebody listed them."""
    for line in text.splitlines():
        words = line.split()
        if not words or words[0] != "memory":
            continue
        if len(words) != 4 or not all(word.isdecimal() and len(word) < 12 for word in words[1:]):
            outcome.skipped["lines of /proc/cgroups that cannot be read"] += 1
            continue
        hierarchy, total, enabled = map(int, words[1:])
        if not enabled:
            outcome.note("/proc/cgroups: the memory controller was off on this node")
            continue
        if live is None:
            outcome.note(
                f"/proc/cgroups counts {total:,} memory cgroups; how many are dying is not known without a list of "
                "directories (find /sys/fs/cgroup/memory -type d > cgroups.txt, on the same node)"
            )
        dying = None if live is None else max(0, total - live)
        return [(time_us, "v1" if hierarchy else "v2", total, live, dying, None, None, None, None)]
    outcome.skipped["copies of /proc/cgroups without a line for memory"] += 1
    return []


def live_directories(text: str) -> int:
    """How many directories of the hierarchy that owns memory are in the list; the root is a cgroup too."""
    paths = {line.rstrip("/") for line in text.splitlines() if line.startswith(ROOT)}
    memory = {path for path in paths if path == f"{ROOT}/memory" or path.startswith(f"{ROOT}/memory/")}
    return len(memory or paths)
