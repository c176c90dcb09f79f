"""Numbers of nodes that divide the sick from the healthy: how long they were up, how many dying cgroups they had.

Each variable is tested for its best split: nodes of at least so much against the others, or of less. Both directions
and every threshold between two different values are tried, and the p-value is the exact chance that any of them comes
out so well (exact.best_split_log_p). So a variable counts as one try, however many thresholds it has.

A node has one value in a window: the largest. It is chosen without regard to when the node fell ill, so that a fleet
without a cause shows none. For a fault with a threshold that is exact as well: a node falls ill in the window if its
largest value reaches the threshold.

Some numbers are given to a node (`given`: its age, a number among its labels). Others are steps of the illness itself
(`course`: dying cgroups). Steps are listed apart: that the sick have many dying cgroups does not explain away the image
that leaks them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from zombiescope.fleet import exact
from zombiescope.fleet.exact import Fisher

Role = Literal["given", "course"]
AGE = "age"
LEAST_VALUES = 4
"""Different values that a variable has at least; with fewer it is a label."""
LEAST_KNOWN = 0.5
"""Of the nodes that were judged; of fewer nothing is concluded."""
LEAST_NUMERIC = 0.9
"""Of the nodes with a label: so many of its values are numbers, or it is a name."""
MOST_OF_LABELS = 16
QUANTILES = 4
_UNITS_S = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


@dataclass(frozen=True, slots=True)
class Variable:
    """`name` as in JSON and --by; `noun` as in "28,800 or more dying cgroups"; seconds where `is_time`."""

    name: str
    noun: str
    role: Role
    values: Mapping[str, float]
    is_time: bool = False

    def amount(self, value: float) -> str:
        return duration(value) if self.is_time else plain(value)

    def side(self, threshold: float, *, above: bool) -> str:
        """The nodes on one side, as they are named in a sentence."""
        said = self.amount(threshold)
        if self.name == AGE:
            return f"up for {said} or longer" if above else f"up for less than {said}"
        return f"{said} or more {self.noun}" if above else f"fewer than {said} {self.noun}"


@dataclass(frozen=True, slots=True)
class Split:
    """`below` and `above`: the two values that are nearest to the threshold. The affected side is `is_above`, or the
    other one."""

    variable: Variable
    threshold: float
    below: float
    above: float
    is_above: bool

    def has(self, value: float) -> bool:
        return (value >= self.above) == self.is_above

    @property
    def text(self) -> str:
        return self.variable.side(self.threshold, above=self.is_above)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A part of the nodes, by a variable: from the lowest quarter to the highest."""

    low: float
    high: float
    nodes: int
    affected: int


def best_split(variable: Variable, names: Sequence[str], affected: frozenset[str]) -> tuple[Split, float] | None:
    """The split that chance explains least, and the logarithm of its p-value, which is that of the best of all. None
    where there is nothing to divide."""
    known = [name for name in names if name in variable.values]
    values = np.array([variable.values[name] for name in known])
    sick = np.array([name in affected for name in known], bool)
    if len(known) < LEAST_KNOWN * len(names) or not 0 < sick.sum() < len(known):
        return None
    order = np.argsort(values, kind="stable")
    values, sick = values[order], sick[order]
    cuts = (np.flatnonzero(values[1:] > values[:-1]) + 1).tolist()
    if len(cuts) < LEAST_VALUES - 1:
        return None
    fisher = Fisher(len(known), int(sick.sum()))
    hits = np.concatenate([[0], np.cumsum(sick)])
    tails = [(fisher.log_p(cut, int(hits[cut])), fisher.log_p_few(cut, int(hits[cut])), cut) for cut in cuts]
    low, low_cut = min((low, cut) for low, _, cut in tails)
    high, high_cut = min((high, cut) for _, high, cut in tails)
    is_above = high <= low
    cut = high_cut if is_above else low_cut
    below, above = float(values[cut - 1]), float(values[cut])
    split = Split(variable, between(below, above, is_time=variable.is_time), below, above, is_above)
    return split, exact.best_split_log_p(fisher.nodes, fisher.affected, cuts, min(low, high))


def least_p(nodes: int, affected: int) -> float:
    """The smallest p-value that a split can have: that of one that divides all sick from all healthy."""
    return Fisher(nodes, affected).least_p(affected)


def quantiles(variable: Variable, names: Sequence[str], affected: frozenset[str]) -> tuple[Quantile, ...]:
    """The affected nodes in each quarter of a variable, the lowest values first."""
    ranked = sorted((variable.values[name], name) for name in names if name in variable.values)
    edges = [round(part * len(ranked) / QUANTILES) for part in range(QUANTILES + 1)]
    parts = [ranked[first:last] for first, last in pairwise(edges) if last > first]
    return tuple(
        Quantile(part[0][0], part[-1][0], len(part), sum(name in affected for _, name in part)) for part in parts
    )


def of_labels(nodes: Mapping[str, Mapping[str, str]]) -> list[Variable]:
    """Labels whose values are numbers: the size of a disk, a firmware's build."""
    found: dict[str, dict[str, float]] = {}
    having: dict[str, int] = {}
    for name, labels in nodes.items():
        for label, text in labels.items():
            having[label] = having.get(label, 0) + 1
            number = _number(text)
            if number is not None:
                found.setdefault(label, {})[name] = number
    made = [
        Variable(label, label, "given", values)
        for label, values in sorted(found.items())
        if len(values) >= LEAST_NUMERIC * having[label] and len(set(values.values())) >= LEAST_VALUES
    ]
    return made[:MOST_OF_LABELS]


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and abs(value) < 1e15 else None


def between(below: float, above: float, *, is_time: bool) -> float:
    """The roundest number that divides them: above `below`, and `above` at most."""
    if is_time:
        steps = [unit for unit, _ in _UNITS_S if unit <= max(above, 1.0)]
    else:
        steps = [10.0**power for power in range(math.floor(math.log10(max(abs(above), 1.0))), -1, -1)]
    for step in steps:
        candidate = math.floor(above / step) * step
        if below < candidate <= above:
            return candidate
    return above


def duration(seconds: float) -> str:
    """Two units at most: 12 d, 6 d 22 h."""
    rest = seconds
    said: list[tuple[int, str]] = []
    for unit, name in _UNITS_S:
        if len(said) == 2:
            break
        count = int(rest // unit)
        if count or said:
            said.append((count, name))
            rest -= count * unit
    return " ".join(f"{count} {name}" for count, name in said if count) or "0 s"


def plain(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.6g}"
