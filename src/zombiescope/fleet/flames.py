"""Stacks of all nodes as one flame graph: everything that was shipped, or only on cores that the kernel held; and sick
nodes against healthy ones.

Stacks come as text with their sums from DuckDB, so what is folded here is one row for each distinct stack of the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from zombiescope.fleet.reading.windows import REST
from zombiescope.fleet.statistics import Statistics
from zombiescope.query import flame
from zombiescope.query.flame import Tree
from zombiescope.query.stacks import Function, Stacks

MOST_STACKS = 20_000
_KERNEL = "[k]"


@dataclass(frozen=True, slots=True)
class FleetFlames:
    """`base_nodes`: how many it is compared with; None where it is not."""

    tree: Tree
    nodes: int
    base_nodes: int | None
    starved: bool

    @property
    def title(self) -> str:
        what = "kernel stacks on cores that the kernel held" if self.starved else "stacks in incident windows"
        if self.base_nodes is None:
            return f"{what} of {_nodes(self.nodes)}"
        return f"{what}: {_nodes(self.nodes, 'sick ')} against {_nodes(self.base_nodes, 'healthy ')}"


def _nodes(count: int, kind: str = "") -> str:
    return f"{count:,} {kind}node{'s' * (count != 1)}"


def flames(
    statistics: Statistics, sick: Iterable[str] | None = None, *, starved: bool = False, kernel: bool = False
) -> FleetFlames:
    """`sick`: these nodes against the others; None: all nodes together. `starved`: only on cores that the kernel held.
    `kernel`: without what user programs did."""
    column = "starved" if starved else "samples"
    named = sorted(sick) if sick is not None else []
    # Healthy nodes lose no core: what sick ones do on lost cores is compared with all that healthy ones do.
    query = f"""
        select stack, sum(case when $1 or list_contains($2, node) then {column} else 0 end)::bigint as here,
               sum(case when $1 or list_contains($2, node) then 0 else samples end)::bigint as there
        from stacks group by stack having here > 0 or there > 0
        order by here + there desc, stack limit {MOST_STACKS}"""  # noqa: S608 - words of ours
    rows = [row for row in statistics.rows(query, [sick is None, named]) if not kernel or _in_kernel(row[0])]
    known = stacks_of(row[0] for row in rows)
    here, there = (np.array([*(row[place] for row in rows), 0], np.int64) for place in (1, 2))
    tree = flame.fold(known, here, None if sick is None else there)
    counted = statistics.rows(
        "select count(distinct node), count(distinct case when list_contains($1, node) then node end) from stacks",
        [named],
    )[0]
    nodes, ill = int(counted[0]), int(counted[1])
    return FleetFlames(tree, nodes if sick is None else ill, None if sick is None else nodes - ill, starved)


def _in_kernel(stack: str) -> bool:
    return stack.rpartition(";")[2].startswith(_KERNEL) or stack == REST


def stacks_of(texts: Iterable[str]) -> Stacks:
    """Stacks as text, as profile/ has them; the last is that of samples without a stack."""
    numbers: dict[Function, int] = {}
    flat: list[int] = []
    ends = []
    for text in [*texts, "?"]:
        flat += [numbers.setdefault(_function(name), len(numbers)) for name in text.split(";")]
        ends.append(len(flat))
    last = np.array(ends, np.int64)
    return Stacks(tuple(numbers), np.array(flat, np.int32), np.concatenate([[0], last[:-1]]), last)


def _function(name: str) -> Function:
    if name.startswith(_KERNEL):
        return Function(name.removeprefix(_KERNEL), None, "kernel")
    return Function(name, None, "user")
