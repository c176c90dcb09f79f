"""/sys/devices/system/node/nodeN: memory of each NUMA node, and how often it was taken from another node.

Fields: MemTotal and MemFree of `meminfo` in bytes; of `numastat` numa_hit, numa_miss (memory that another node should
have given) and numa_foreign.

Cost: two files a node, each a sum over its zones and CPUs; every ten seconds. Absence: machines with one node are
not read, there is nothing to be unbalanced.
"""

from __future__ import annotations

import re

from zombiescope.kernel.procfile import at, names_in, number, read_file

DIRECTORY = "sys/devices/system/node"
MOST_NODES = 64
_NODE = re.compile(r"node(\d{1,4})")
_MEMORY = re.compile(rb"^Node \d+ (MemTotal|MemFree|FilePages):\s+(\d{1,18}) kB", re.M)
LEVELS = {b"MemTotal": "total_bytes", b"MemFree": "free_bytes", b"FilePages": "file_bytes"}
COUNTERS = ("numa_hit", "numa_miss", "numa_foreign")


def nodes(root: str = "/") -> tuple[int, ...]:
    """The nodes of this machine; none where it has only one."""
    names = (_NODE.fullmatch(name) for name in names_in(at(root, DIRECTORY)) or ())
    found = sorted(int(match[1]) for match in names if match)
    return tuple(found[:MOST_NODES]) if len(found) > 1 else ()


def levels(node: int, root: str = "/") -> dict[str, int]:
    data = read_file(at(root, f"{DIRECTORY}/node{node}/meminfo")) or b""
    return {LEVELS[name]: int(value) * 1024 for name, value in _MEMORY.findall(data)}


def counters(node: int, root: str = "/") -> dict[str, int]:
    rows = (line.split() for line in (read_file(at(root, f"{DIRECTORY}/node{node}/numastat")) or b"").splitlines())
    found = {row[0].decode("ascii", "replace"): number(row[1]) for row in rows if len(row) == 2}
    return {name: value for name in COUNTERS if (value := found.get(name)) is not None}
