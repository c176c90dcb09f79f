"""What changed between two selections of samples, of one recording or of two: by function, and by who ran.

Both sides are made comparable before they are subtracted. Functions by their share of all samples of their side, so a
window may be longer than the other. Owners (unit, else container, else name of the task) by the cores they kept busy,
where the rate of sampling is known on both sides, because "kubelet used 0.1 core and now uses 1.0" is what people mean;
else by their share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from zombiescope.query import stacks, top
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store import columns, container_names
from zombiescope.store.columns import Ints
from zombiescope.store.container_names import NO_NAMES


@dataclass(frozen=True, slots=True)
class SampleShare:
    """Of the samples of one side, 0 to 1; `cores` is how many it kept busy on average, None if the rate is unknown."""

    ratio: float
    cores: float | None


@dataclass(frozen=True, slots=True)
class FunctionChange:
    function: Function
    self_before: float
    self_after: float
    total_before: float
    total_after: float

    @property
    def self_delta(self) -> float:
        return self.self_after - self.self_before


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """`kind`: unit, container or comm."""

    name: str
    kind: str
    before: SampleShare
    after: SampleShare

    @property
    def delta(self) -> float:
        if self.before.cores is not None and self.after.cores is not None:
            return self.after.cores - self.before.cores
        return self.after.ratio - self.before.ratio


@dataclass(frozen=True, slots=True)
class Comparison:
    """`stacks` are those of both sides; `counts_before` and `counts_after` count them."""

    stacks: Stacks
    counts_before: Ints
    counts_after: Ints
    functions: tuple[FunctionChange, ...]
    owners: tuple[OwnerChange, ...]

    @property
    def samples_before(self) -> int:
        return int(self.counts_before.sum())

    @property
    def samples_after(self) -> int:
        return int(self.counts_after.sum())


def compare(before: Selection, after: Selection) -> Comparison:
    """Functions by how much their own share changed, owners by how much they did; the largest change first."""
    counts_after = stacks.in_front(after.counts(), before.stacks)
    counts_before = stacks.behind(after.stacks, before.counts())
    known = stacks.joined(after.stacks, before.stacks)
    return Comparison(
        known, counts_before, counts_after, _functions(known, counts_before, counts_after), _owners(before, after)
    )


def _functions(known: Stacks, before: Ints, after: Ints) -> tuple[FunctionChange, ...]:
    hot_before, hot_after = ({hot.function: hot for hot in top.functions(known, counts)} for counts in (before, after))
    changes = []
    for function in hot_before.keys() | hot_after.keys():
        old, new = hot_before.get(function), hot_after.get(function)
        changes.append(
            FunctionChange(
                function,
                old.self_ratio if old else 0.0,
                new.self_ratio if new else 0.0,
                old.total_ratio if old else 0.0,
                new.total_ratio if new else 0.0,
            )
        )
    return tuple(sorted(changes, key=lambda change: (-abs(change.self_delta), change.function.name)))


Owner = tuple[str, str]


def _owners(before: Selection, after: Selection) -> tuple[OwnerChange, ...]:
    old, new = _shares(before), _shares(after)
    zero_before, zero_after = (SampleShare(0.0, None if _sampled_s(side) is None else 0.0) for side in (before, after))
    changes = [
        OwnerChange(*owner, old.get(owner, zero_before), new.get(owner, zero_after))
        for owner in old.keys() | new.keys()
    ]
    return tuple(sorted(changes, key=lambda change: (-abs(change.delta), change.name)))


def _shares(selection: Selection) -> dict[Owner, SampleShare]:
    owner_of = _owner_of(selection)
    samples: Counter[Owner] = Counter()
    for (task,) in selection.columns("task"):
        ids, counts = np.unique(task, return_counts=True)
        for number, count in zip(ids.tolist(), counts.tolist(), strict=True):
            samples[owner_of.get(number, ("?", "comm"))] += count
    seconds, everything = _sampled_s(selection), samples.total()
    return {
        owner: SampleShare(count / everything, None if seconds is None else count / seconds)
        for owner, count in samples.items()
    }


def _owner_of(selection: Selection) -> dict[int, Owner]:
    """A container by its name, so that one of before and one of after are compared though their ids differ."""
    rows = columns.records(
        selection.recording.table("tasks", *selection.span, ("task", "comm", "unit", "container", "pod"))
    )
    boxes = {row["container"] for row in rows if row["container"]}
    names = container_names.read(selection.recording, *selection.span, boxes) if boxes else NO_NAMES
    return {
        row["task"]: names.owner(row["unit"], row["container"], row["pod"]) or (row["comm"] or "?", "comm")
        for row in rows
    }


def _sampled_s(selection: Selection) -> float | None:
    """How many samples a core that is always busy has in the window; None where the rate is not known."""
    hz = selection.recording.node.get("hz")
    if not isinstance(hz, int | float) or hz <= 0:
        return None
    return float(hz) * max(selection.end_us - selection.start_us, 1) / 1e6
