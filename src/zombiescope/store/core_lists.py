"""The cores that node.json lists: online, isolated (isolcpus), nohz_full, and those that were left out of sampling.

A recording that was made before a list existed, or on a kernel without it, has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LEFT_OUT = "left_out"
ISOLATED = "isolated"
NONE = "none"
MOST = 8192
"""The kernel's own limit on x86."""


def listed(node: Mapping[str, Any], what: str) -> frozenset[int]:
    cpus = node.get("cpus")
    found = cpus.get(what) if isinstance(cpus, dict) else None
    if not isinstance(found, list):
        return frozenset()
    return frozenset(cpu for cpu in found if isinstance(cpu, int) and 0 <= cpu < MOST)
