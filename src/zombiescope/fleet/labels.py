"""Which labels, and which pairs of labels, the sick nodes share and the healthy ones lack.

Every value of every label is a group of nodes, and so is every pair of values of two labels. Groups of the same nodes
are one, whatever they are called (a kernel that only one image has): the report names it once, with the other names
beside it. Each is tested for what happened (any incident, and each cause that several nodes have) by Fisher's test,
corrected for everything that was tried (exact.py).

What comes out first is the group that chance explains least. A pair is listed only where it is less likely than both
of its labels; and what is left unexplained is looked at again without the nodes of the first group: zone A is listed as
`explained_by` image X and zone A, where nothing of it remains outside of that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from zombiescope.fleet import exact
from zombiescope.fleet.exact import ALPHA, Fisher

MOST_VALUES = 800
"""Groups of single labels; of more, the largest."""
LEAST_NODES = 2
WORTH_A_LINE = 0.2
"""What is more likely than that by chance, before any correction, is not listed."""
MOST_CORRECTED = 2000
MOST_LISTED = 50
_Masks = npt.NDArray[np.bool_]
Term = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What happened to some nodes. `name` None: any incident."""

    name: str | None
    affected: frozenset[str]


@dataclass(frozen=True, slots=True)
class Group:
    """One line of the report. `p_value` as it is, `p_corrected` for all that was tried; `lift`: how many times as
    often as on the other nodes, None where none of those is affected."""

    terms: tuple[Term, ...]
    cause: str | None
    nodes: int
    affected: int
    rest_nodes: int
    rest_affected: int
    p_value: float
    log_p: float
    p_corrected: float = 1.0
    also: tuple[tuple[Term, ...], ...] = ()
    explained_by: tuple[Term, ...] | None = None

    @property
    def ratio(self) -> float:
        return self.affected / self.nodes

    @property
    def lift(self) -> float | None:
        rest = self.rest_affected / self.rest_nodes if self.rest_nodes else 0.0
        return self.ratio / rest if rest else None

    @property
    def significant(self) -> bool:
        return self.p_corrected <= ALPHA

    @property
    def label(self) -> str:
        return ",".join(label for label, _ in self.terms)

    @property
    def value(self) -> str:
        return ",".join(value for _, value in self.terms)

    @property
    def text(self) -> str:
        return " and ".join(f"{label}={value}" for label, value in self.terms)


@dataclass(frozen=True, slots=True)
class Comparison:
    groups: tuple[Group, ...] = ()
    """The least likely by chance first."""
    tried: int = 0
    left_out: int = 0
    """Values of labels that were too many to try."""

    @property
    def found(self) -> list[Group]:
        """Significant, and not explained by one before it."""
        return [group for group in self.groups if group.significant and group.explained_by is None]


@dataclass(slots=True)
class _Sets:
    """Distinct groups of nodes: the first name of each, and the others."""

    terms: list[tuple[Term, ...]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    also: dict[int, list[tuple[Term, ...]]] = field(default_factory=lambda: defaultdict(list))
    singles: dict[Term, int] = field(default_factory=dict)
    """Value -> the number of its set."""


def compare(
    nodes: Mapping[str, Mapping[str, str]], outcomes: Sequence[Outcome], by: Sequence[str] | None = None
) -> Comparison:
    """`nodes`: labels of each; `by`: only these labels."""
    names = sorted(nodes)
    terms, left_out = _terms(nodes, by)
    members = _membership(names, nodes, terms)
    sets, masks = _distinct(terms, members)
    tested = [outcome for outcome in outcomes if 0 < len(outcome.affected) < len(names)]
    groups, least, tried = _tested(sets, masks, names, tested)
    right = exact.corrected([group.p_value for group in groups], least, tried)
    groups = [replace(group, p_corrected=p) for group, p in zip(groups, right, strict=True)]
    listed = _explained(_ranked(groups), names, nodes, tested)[:MOST_LISTED]
    return Comparison(tuple(listed), exact.countable(sorted(tried)) if tried else 0, left_out)


def _tested(
    sets: _Sets, masks: _Masks, names: Sequence[str], outcomes: Sequence[Outcome]
) -> tuple[list[Group], list[float], list[float]]:
    """The groups that are worth a line, the smallest p-value that each could have had, and that of all there are."""
    groups: list[Group] = []
    least: list[float] = []
    tried: list[float] = []
    sizes = np.array(sets.sizes, np.int64)
    for outcome in outcomes:
        fisher = Fisher(len(names), len(outcome.affected))
        hits = masks @ np.array([name in outcome.affected for name in names], np.int64)
        kinds, kind = np.unique(np.stack([sizes, hits], axis=1), axis=0, return_inverse=True)
        p_values = np.array([fisher.p_value(*pair) for pair in kinds.tolist()])[kind.ravel()]
        smallest = np.array([fisher.least_p(size) for size in kinds[:, 0].tolist()])[kind.ravel()]
        tried += smallest.tolist()
        worth = np.flatnonzero(p_values <= WORTH_A_LINE)
        for number in worth[np.argsort(p_values[worth], kind="stable")][:MOST_CORRECTED].tolist():
            groups.append(_group(sets, number, outcome, int(hits[number]), fisher))
            least.append(float(smallest[number]))
    return groups, least, tried


def _terms(nodes: Mapping[str, Mapping[str, str]], by: Sequence[str] | None) -> tuple[list[Term], int]:
    sizes: dict[Term, int] = defaultdict(int)
    for labels in nodes.values():
        for label, value in labels.items():
            if by is None or label in by:
                sizes[label, value] += 1
    kept = [term for term, size in sizes.items() if LEAST_NODES <= size < len(nodes)]
    kept.sort(key=lambda term: (-sizes[term], term))
    return sorted(kept[:MOST_VALUES]), len(kept[MOST_VALUES:])


def _membership(names: Sequence[str], nodes: Mapping[str, Mapping[str, str]], terms: Sequence[Term]) -> _Masks:
    place = {term: number for number, term in enumerate(terms)}
    members = np.zeros((len(terms), len(names)), bool)
    for column, name in enumerate(names):
        for term in nodes[name].items():
            if term in place:
                members[place[term], column] = True
    return members


def _distinct(terms: Sequence[Term], members: _Masks) -> tuple[_Sets, _Masks]:
    """Single values first, so that a pair that is nothing new goes by the name of its value."""
    sets = _Sets()
    known: dict[bytes, int] = {}
    kept: list[npt.NDArray[np.uint8]] = []
    packed = np.packbits(members, axis=1)
    for number, term in enumerate(terms):
        sets.singles[term] = _enter(sets, known, kept, (term,), packed[number], int(members[number].sum()))
    sizes = members.astype(np.float32) @ members.astype(np.float32).T
    for first, term in enumerate(terms):
        for second in np.flatnonzero(sizes[first, first + 1 :] >= LEAST_NODES).tolist():
            other = terms[first + 1 + second]
            if other[0] != term[0]:
                both = packed[first] & packed[first + 1 + second]
                _enter(sets, known, kept, (term, other), both, int(sizes[first, first + 1 + second]))
    if not kept:
        return sets, np.zeros((0, members.shape[1]), bool)
    return sets, np.unpackbits(np.array(kept), axis=1, count=members.shape[1]).astype(bool)


def _enter(
    sets: _Sets,
    known: dict[bytes, int],
    kept: list[npt.NDArray[np.uint8]],
    terms: tuple[Term, ...],
    packed: npt.NDArray[np.uint8],
    size: int,
) -> int:
    key = packed.tobytes()
    number = known.get(key)
    if number is None:
        number = known[key] = len(kept)
        kept.append(packed)
        sets.terms.append(terms)
        sets.sizes.append(size)
    elif len(terms) == 1:
        sets.also[number].append(terms)
    return number


def _group(sets: _Sets, number: int, outcome: Outcome, hits: int, fisher: Fisher) -> Group:
    size = sets.sizes[number]
    return Group(
        sets.terms[number], outcome.name, size, hits, fisher.nodes - size, fisher.affected - hits,
        fisher.p_value(size, hits), fisher.log_p(size, hits), also=tuple(sets.also.get(number, ())),
    )  # fmt: skip


def _ranked(groups: Sequence[Group]) -> list[Group]:
    """Each group once, for the outcome that it shows best; pairs only where they say more than their labels."""
    best: dict[tuple[Term, ...], Group] = {}
    for group in sorted(groups, key=_order):
        best.setdefault(group.terms, group)
    singles = {group.terms[0]: group.log_p for group in best.values() if len(group.terms) == 1}
    telling = [
        group
        for group in best.values()
        if group.affected
        and (len(group.terms) == 1 or group.log_p < min(singles.get(term, 0.0) for term in group.terms))
    ]
    return sorted(telling, key=_order)


def _order(group: Group) -> tuple[float, int, tuple[Term, ...]]:
    return group.log_p, len(group.terms), group.terms


def _explained(
    ranked: Sequence[Group],
    names: Sequence[str],
    nodes: Mapping[str, Mapping[str, str]],
    outcomes: Sequence[Outcome],
) -> list[Group]:
    """Each significant group is looked at once more without the nodes of those before it that stand by themselves."""
    affected = {outcome.name: outcome.affected for outcome in outcomes}
    standing: list[Group] = []
    result: list[Group] = []
    for group in ranked[:MOST_LISTED]:
        if group.significant:
            reason = next((one for one in standing if _adds_nothing(group, one, names, nodes, affected)), None)
            group = replace(group, explained_by=None if reason is None else reason.terms)
            if reason is None:
                standing.append(group)
        result.append(group)
    return result


def _adds_nothing(
    group: Group,
    first: Group,
    names: Sequence[str],
    nodes: Mapping[str, Mapping[str, str]],
    affected: Mapping[str | None, frozenset[str]],
) -> bool:
    """Whether a group is no more affected than others once the nodes of the first are left out of both."""
    left = [name for name in names if not _has(nodes[name], first.terms)]
    sick = affected[group.cause]
    inside = [name for name in left if _has(nodes[name], group.terms)]
    hits = sum(name in sick for name in inside)
    whole = sum(name in sick for name in left)
    return Fisher(len(left), whole).p_value(len(inside), hits) > ALPHA


def _has(labels: Mapping[str, str], terms: Sequence[Term]) -> bool:
    return all(labels.get(label) == value for label, value in terms)
