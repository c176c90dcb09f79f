"""What divides the sick nodes from the healthy: labels, pairs of labels, and numbers such as a node's age.

Every value of every label is a group of nodes, and so is every pair of values of two labels. Groups of the same nodes
are one, whatever they are called (a kernel that only one image has): nothing in the data can tell these names apart, so
the report gives all of them. Each is tested for what happened (any incident, and each cause that several nodes have) by
Fisher's test, corrected for everything that was tried (exact.py). Values are tested in both directions: a zone may be
sick, and it may be spared. Numbers are tested for their best split (numbers.py).

What comes out first is the group that chance explains least. A pair is listed only where it is less likely than both
of its labels. What is left unexplained is tested again, inside the nodes of the first group and outside of it: zone A
is listed as `explained_by` image X and zone A, where nothing of it remains. A number that explains a label goes before
the label: zone B is spared because it is rebooted every week.

Nodes that were not judged are in no test. Each group says how many of them it has.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from zombiescope.fleet import exact, numbers
from zombiescope.fleet.exact import ALPHA, Fisher
from zombiescope.fleet.numbers import Quantile, Split, Variable

MOST_VALUES = 800
"""Groups of single labels; of more, the largest."""
LEAST_NODES = 2
WORTH_A_LINE = 0.2
"""What is more likely than that by chance, before any correction, is not listed."""
MOST_CORRECTED = 2000
MOST_LISTED = 50
MOST_NAMES = 3
MOSTLY = 0.8
"""Of the affected nodes of a group: a cause that so many of them have names the group, and not "any incident"."""
_Mask = npt.NDArray[np.bool_]
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
    often as on the other nodes, None where none of those is affected. `spared`: fewer are affected than elsewhere.
    `nodes` and `rest_nodes` were judged; `not_judged` nodes of the group were not."""

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
    """Other names of the same nodes: nothing tells these apart."""
    explained_by: tuple[Term, ...] | None = None
    because: str | None = None
    """How a number explains it."""
    spared: bool = False
    split: Split | None = None
    """Of a group that a number makes; its one term is the number's name and its side."""
    not_judged: int = 0

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
        return named(self.terms) if self.split is None else self.split.text

    @property
    def full_text(self) -> str:
        """With every name of these nodes."""
        if not self.also:
            return self.text
        others = ", ".join(named(terms) for terms in self.also[:MOST_NAMES])
        more = f" and {len(self.also) - MOST_NAMES:,} more" if len(self.also) > MOST_NAMES else ""
        return f"{self.text} (the same nodes as {others}{more}: indistinguishable)"


def named(terms: Sequence[Term]) -> str:
    return " and ".join(f"{label}={value}" for label, value in terms)


@dataclass(frozen=True, slots=True)
class Comparison:
    groups: tuple[Group, ...] = ()
    """The least likely by chance first."""
    tried: int = 0
    left_out: int = 0
    """Values of labels that were too many to try."""
    course: tuple[Group, ...] = ()
    """Numbers that are steps of the illness, each with its best split."""
    quarters: tuple[tuple[Variable, tuple[Quantile, ...]], ...] = ()
    """Every number, and how many nodes are affected in each quarter of it."""

    @property
    def found(self) -> list[Group]:
        """Significant, and not explained by another."""
        return [group for group in self.groups if group.significant and group.explained_by is None]

    @property
    def first(self) -> Group | None:
        """What a headline is about: a step of the illness only where nothing else is found."""
        steps = [group for group in self.course if group.significant and group.explained_by is None]
        return next(iter([*self.found, *steps]), None)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A group with its nodes. `known`: the nodes of which it is known whether they are in it; `least`: the smallest
    p-value that it could have had; `strength`: the logarithm of the smallest p-value over all outcomes."""

    group: Group
    inside: _Mask
    known: _Mask
    least: float
    strength: float = 0.0

    @property
    def order(self) -> tuple[float, bool, int, bool, tuple[Term, ...]]:
        group = self.group
        return self.strength, group.cause is None, len(group.terms), group.spared, group.terms


@dataclass(slots=True)
class _Sets:
    """Distinct groups of nodes: the first name of each, and the others."""

    terms: list[tuple[Term, ...]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    also: dict[int, list[tuple[Term, ...]]] = field(default_factory=lambda: defaultdict(list))
    singles: dict[Term, int] = field(default_factory=dict)
    """Value -> the number of its set."""


def compare(
    nodes: Mapping[str, Mapping[str, str]],
    outcomes: Sequence[Outcome],
    by: Sequence[str] | None = None,
    variables: Sequence[Variable] = (),
    not_judged: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """`nodes`: labels of each that was judged, and `not_judged` of each that was not; `by`: only these labels and
    numbers."""
    names = sorted(nodes)
    terms, left_out = _terms(nodes, by)
    sets, masks = _distinct(terms, _membership(names, nodes, terms))
    tested = [outcome for outcome in outcomes if 0 < len(outcome.affected) < len(names)]
    every = [each for each in (*variables, *numbers.of_labels(nodes)) if by is None or each.name in by]
    candidates, tried = _tested(sets, masks, names, tested)
    for variable in every:
        if variable.role == "given":
            _add_splits(variable, names, tested, candidates, tried)
    ranked = _ranked(_corrected(candidates, tried))[:MOST_LISTED]
    listed = _explained(ranked, {outcome.name: _mask(names, outcome.affected) for outcome in tested})
    course = _course([each for each in every if each.role == "course"], names, tested)
    anything = next((outcome.affected for outcome in outcomes if outcome.name is None), frozenset())
    return Comparison(
        tuple(_with_not_judged(group, not_judged or {}) for group in listed),
        exact.countable(sorted(tried)) if tried else 0, left_out,
        tuple(_with_not_judged(group, not_judged or {}) for group in course),
        tuple((each, numbers.quantiles(each, names, anything)) for each in every),
    )  # fmt: skip


def _mask(names: Sequence[str], chosen: Container[str]) -> _Mask:
    return np.array([name in chosen for name in names], bool)


def _tested(
    sets: _Sets, masks: _Masks, names: Sequence[str], outcomes: Sequence[Outcome]
) -> tuple[list[_Candidate], list[float]]:
    """The groups that are worth a line, and the smallest p-value that each of all there are could have had."""
    found: list[_Candidate] = []
    tried: list[float] = []
    sizes = np.array(sets.sizes, np.int64)
    known = np.ones(len(names), bool)
    both = _both_ways(sets, masks)
    for outcome in outcomes:
        fisher = Fisher(len(names), len(outcome.affected))
        hits = masks @ _mask(names, outcome.affected).astype(np.int64)
        kinds, kind = np.unique(np.stack([sizes, hits], axis=1), axis=0, return_inverse=True)
        for spared in (False, True):
            chosen = both if spared else np.ones(len(sizes), bool)
            logs = np.array(
                [fisher.log_p_few(*pair) if spared else fisher.log_p(*pair) for pair in kinds.tolist()]
            )[kind.ravel()]  # fmt: skip
            smallest = np.array(
                [fisher.least_p(len(names) - size if spared else size) for size in kinds[:, 0].tolist()]
            )[kind.ravel()]  # fmt: skip
            tried += smallest[chosen].tolist()
            worth = np.flatnonzero(chosen & (logs <= math.log(WORTH_A_LINE)))
            for number in worth[np.argsort(logs[worth], kind="stable")][:MOST_CORRECTED].tolist():
                group = _group(sets, number, outcome, int(hits[number]), fisher, float(logs[number]), spared=spared)
                found.append(_Candidate(group, masks[number], known, float(smallest[number])))
    return found, tried


def _both_ways(sets: _Sets, masks: _Masks) -> _Mask:
    """Values that are tested for being spared, too: not pairs, and not where the other nodes are a group themselves,
    which is tested for being sick."""
    known = {mask.tobytes() for mask in np.packbits(masks, axis=1)}
    others = np.packbits(~masks, axis=1)
    return np.array(
        [len(terms) == 1 and other.tobytes() not in known for terms, other in zip(sets.terms, others, strict=True)],
        bool,
    )  # fmt: skip


def _add_splits(
    variable: Variable, names: Sequence[str], outcomes: Sequence[Outcome], found: list[_Candidate], tried: list[float]
) -> None:
    """The best split of a number for each outcome; one try each, its p-value being that of the best of all splits."""
    for outcome in outcomes:
        best = numbers.best_split(variable, names, outcome.affected)
        if best is None:
            continue
        split, log_p = best
        known = _mask(names, variable.values)
        inside = np.array([name in variable.values and split.has(variable.values[name]) for name in names], bool)
        sick = _mask(names, outcome.affected)
        least = numbers.least_p(int(known.sum()), int((sick & known).sum()))
        tried.append(least)
        if log_p <= math.log(WORTH_A_LINE):
            group = Group(
                ((variable.name, split.text),), outcome.name, int(inside.sum()), int((inside & sick).sum()),
                int((known & ~inside).sum()), int((known & ~inside & sick).sum()), math.exp(log_p), log_p, split=split,
            )  # fmt: skip
            found.append(_Candidate(group, inside, known, least))


def _course(variables: Sequence[Variable], names: Sequence[str], outcomes: Sequence[Outcome]) -> list[Group]:
    """Steps of the illness, corrected among themselves."""
    found: list[_Candidate] = []
    tried: list[float] = []
    for variable in variables:
        _add_splits(variable, names, outcomes, found, tried)
    affected = {outcome.name: _mask(names, outcome.affected) for outcome in outcomes}
    return _explained(_ranked(_corrected(found, tried)), affected)


def _corrected(found: Sequence[_Candidate], tried: Sequence[float]) -> list[_Candidate]:
    right = exact.corrected([each.group.p_value for each in found], [each.least for each in found], sorted(tried))
    return [
        replace(each, group=replace(each.group, p_corrected=p), strength=each.group.log_p)
        for each, p in zip(found, right, strict=True)
    ]


def _with_not_judged(group: Group, nodes: Mapping[str, Mapping[str, str]]) -> Group:
    if group.split is not None:
        values, split = group.split.variable.values, group.split
        return replace(group, not_judged=sum(name in values and split.has(values[name]) for name in nodes))
    return replace(group, not_judged=sum(_has(labels, group.terms) for labels in nodes.values()))


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


def _group(
    sets: _Sets, number: int, outcome: Outcome, hits: int, fisher: Fisher, log_p: float, *, spared: bool
) -> Group:
    size = sets.sizes[number]
    return Group(
        sets.terms[number], outcome.name, size, hits, fisher.nodes - size, fisher.affected - hits, math.exp(log_p),
        log_p, also=tuple(sets.also.get(number, ())), spared=spared,
    )  # fmt: skip


def _ranked(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Each group once, for the outcome that it shows best; pairs only where they say more than their labels."""
    of: dict[tuple[tuple[Term, ...], bool], list[_Candidate]] = defaultdict(list)
    for each in candidates:
        named_by = each.group.terms if each.group.split is None else ((each.group.label, ""),)
        of[named_by, each.group.spared].append(each)
    best = [_shown(found) for found in of.values()]
    singles = {
        each.group.terms[0]: each.strength for each in best if len(each.group.terms) == 1 and not each.group.spared
    }
    telling = [
        each
        for each in best
        if (each.group.affected or each.group.spared)
        and (len(each.group.terms) == 1 or each.strength < min(singles.get(term, 0.0) for term in each.group.terms))
    ]
    return sorted(telling, key=lambda each: each.order)


def _shown(found: Sequence[_Candidate]) -> _Candidate:
    """One group for its strongest outcome; for a cause of its own, where that is what most of its nodes have: a stray
    fault on one of them does not make "any incident" of it."""
    first = min(found, key=lambda each: each.order)
    if first.group.cause is not None:
        return first
    all_ = _affected(first.group)
    of_a_cause = [
        each
        for each in found
        if each.group.cause is not None and each.group.significant and _affected(each.group) >= MOSTLY * all_
    ]
    chosen = min(of_a_cause, key=lambda each: each.order, default=first)
    return replace(chosen, strength=first.strength)


def _affected(group: Group) -> int:
    """Where it happens: in the group, or everywhere else."""
    return group.rest_affected if group.spared else group.affected


def _explained(ranked: Sequence[_Candidate], affected: Mapping[str | None, _Mask]) -> list[Group]:
    """Each significant group is tested once more inside and outside of those before it that stand by themselves."""
    standing: list[_Candidate] = []
    result: list[Group] = []
    for each in _numbers_first(ranked, affected):
        group = each.group
        if group.significant:
            sick = affected[group.cause]
            reason = next((one for one in standing if _adds_nothing(each, one, sick)), None)
            if reason is None:
                standing.append(each)
            else:
                group = replace(group, explained_by=reason.group.terms, because=_because(each, reason))
        result.append(group)
    return result


def _numbers_first(ranked: Sequence[_Candidate], affected: Mapping[str | None, _Mask]) -> list[_Candidate]:
    """A number goes before the labels that it explains and that do not explain it."""
    ordered = list(ranked)
    splits = [each for each in ranked if each.group.split is not None and each.group.significant]
    for number in splits:
        at = ordered.index(number)
        for place, before in enumerate(ordered[:at]):
            if (
                before.group.split is None
                and _adds_nothing(before, number, affected[before.group.cause])
                and not _adds_nothing(number, before, affected[number.group.cause])
            ):
                ordered.insert(place, ordered.pop(at))
                break
    return ordered


def _adds_nothing(each: _Candidate, first: _Candidate, sick: _Mask) -> bool:
    """Whether a group is no more affected than others (or spared) among the nodes of the first, and among the rest."""
    strata = []
    for chosen in (first.inside, ~first.inside):
        nodes = chosen & first.known & each.known
        inside = nodes & each.inside
        strata.append((int(nodes.sum()), int((nodes & sick).sum()), int(inside.sum()), int((inside & sick).sum())))
    return exact.stratified_p(strata, few=each.group.spared) > ALPHA


def _because(each: _Candidate, reason: _Candidate) -> str | None:
    """What a number says of the nodes of a label, and of the others."""
    if reason.group.split is None or each.group.split is not None:
        return None
    here, there = (chosen & reason.known for chosen in (each.inside, ~each.inside))
    return (
        f"{int((here & reason.inside).sum()):,} of its {int(here.sum()):,} nodes were {reason.group.text}, and "
        f"{int((there & reason.inside).sum()):,} of {int(there.sum()):,} others"
        if reason.group.label == numbers.AGE
        else f"{int((here & reason.inside).sum()):,} of its {int(here.sum()):,} nodes have {reason.group.text}, and "
        f"{int((there & reason.inside).sum()):,} of {int(there.sum()):,} others"
    )


def _has(labels: Mapping[str, str], terms: Sequence[Term]) -> bool:
    return all(labels.get(label) == value for label, value in terms)
