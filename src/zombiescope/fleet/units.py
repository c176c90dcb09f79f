"""Units that run on sick nodes and not on healthy ones.

The same test as for labels (labels.py), with "this unit ran" instead of a label. Names that differ in a number, an
id or an instance are one: `ray-worker@3.service` and `ray-worker@7.service` are `ray-worker@*.service`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zombiescope.fleet import exact
from zombiescope.fleet.exact import ALPHA, Fisher

MOST_LISTED = 20
_ID = re.compile(r"(?<=@)[^.]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*|(?<![a-z])\d{2,}|\d{4,}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class UnitShare:
    unit: str
    sick: int
    """Sick nodes that have it, of `sick_nodes`."""
    sick_nodes: int
    healthy: int
    healthy_nodes: int
    p_value: float
    p_corrected: float
    not_judged: int = 0
    """Nodes that have it and were not judged."""

    @property
    def significant(self) -> bool:
        return self.p_corrected <= ALPHA


def family(unit: str) -> str:
    return _ID.sub("*", unit)


def compare(
    nodes: Sequence[str],
    sick: frozenset[str],
    rows: Iterable[tuple[str, str, int]],
    not_judged: Sequence[str] = (),
) -> list[UnitShare]:
    """Those that sick nodes have more often, the least likely by chance first. Empty where there is nothing to compare
    with: no sick node, or no healthy one. `nodes` were judged."""
    known, apart = set(nodes), set(not_judged)
    if not 0 < len(sick & known) < len(known):
        return []
    having: dict[str, set[str]] = defaultdict(set)
    elsewhere: dict[str, set[str]] = defaultdict(set)
    for node, unit, _ in rows:
        if node in known:
            having[family(unit)].add(node)
        elif node in apart:
            elsewhere[family(unit)].add(node)
    fisher = Fisher(len(known), len(sick & known))
    names = sorted(having)
    p_values = [fisher.p_value(len(having[unit]), len(having[unit] & sick)) for unit in names]
    least = [fisher.least_p(len(having[unit])) for unit in names]
    right = exact.corrected(p_values, least, least)
    shares = [
        UnitShare(
            unit, len(having[unit] & sick), fisher.affected, len(having[unit] - sick),
            len(known) - fisher.affected, p, p_corrected, len(elsewhere[unit]),
        )
        for unit, p, p_corrected in zip(names, p_values, right, strict=True)
    ]  # fmt: skip
    return sorted(shares, key=lambda share: (share.p_corrected, share.p_value, share.unit))[:MOST_LISTED]
