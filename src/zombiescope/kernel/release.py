"""The kernel's release as uname says it, and from which one on the memory statistics are cheap.

Reading memory.numa_stat walked every memory cgroup, dying ones included, until 5.8 (dd8657b6c1cb: 0.70 s at 10,000 of
them became 0.001 s); reading memory.stat, and the root's memory.usage_in_bytes, until 5.2 (42a300353577). Reclaim walks
them still; with 7.1 (f1cf8d2f36dc) page cache no longer keeps a removed cgroup. A recording is read on another machine
than its own, so its kernel cannot be probed and the release has to do; distributions that carried a fix back to an
older release look worse than they are.
"""

from __future__ import annotations

import re

NUMA_STAT_WALKS_BEFORE = (5, 8)
STAT_WALKS_BEFORE = (5, 2)
PAGE_CACHE_PINS_BEFORE = (7, 1)


def kernel_version(release: str | None) -> tuple[int, int] | None:
    """(5, 4) of "5.4.0-1024-aws"."""
    match = re.match(r"(\d+)\.(\d+)", release or "")
    return (int(match[1]), int(match[2])) if match else None
