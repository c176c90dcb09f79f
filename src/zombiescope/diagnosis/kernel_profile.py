"""What the kernel did in some samples: how often each stack was there, and the functions on it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zombiescope.diagnosis.kernel_entry import asked
from zombiescope.diagnosis.sample_index import SampleIndex
from zombiescope.diagnosis.thresholds import NAMED_LEAST_SAMPLES
from zombiescope.store.columns import Ints, Mask


@dataclass(frozen=True)
class KernelProfile:
    """How often each stack was seen in the kernel, and how many samples that is out of."""

    known: SampleIndex
    counts: Ints
    samples: int

    @cached_property
    def paths(self) -> dict[tuple[str, ...], int]:
        """Kernel paths, outermost first, without leaves that only look hot."""
        paths: dict[tuple[str, ...], int] = {}
        for row in np.flatnonzero(self.counts).tolist():
            path = self.known.kernel_path(row)
            paths[path] = paths.get(path, 0) + int(self.counts[row])
        return paths

    def calls(self, rows: Mask | None = None) -> Counter[str]:
        """Samples by what the kernel was entered for; of some stacks, or of all."""
        counted: Counter[str] = Counter()
        for row in np.flatnonzero(self.counts if rows is None else self.counts * rows).tolist():
            if (name := asked(self.known.kernel_path(row))) is not None:
                counted[name] += int(self.counts[row])
        return counted

    @cached_property
    def kernel_samples(self) -> int:
        return int(self.counts.sum())

    @cached_property
    def named_samples(self) -> int:
        """Of the kernel samples those whose functions have names."""
        return int(self.counts[self.known.named].sum())

    @property
    def is_named(self) -> bool:
        """Whether its functions say what the kernel did, or are hidden, all or nearly all of them."""
        return tells(self.named_samples, self.kernel_samples)

    def total(self, *names: str) -> int:
        """Samples in which one of the functions is on the stack. A name that ends in * stands for all that begin so,
        here and below."""
        return int(self.counts[self.known.with_function(frozenset(names))].sum())

    def totals(self, *names: str) -> dict[str, int]:
        """Function -> samples in which it is on the stack, without those that were not seen."""
        counted = {name: self.total(name) for name in self.known.expanded(frozenset(names))}
        return {name: count for name, count in counted.items() if count}

    def own(self, *names: str) -> int:
        """Samples in which one of the functions is the innermost."""
        wanted = frozenset(names)
        return sum(count for path, count in self.paths.items() if path and path[-1] in wanted)

    def under(self, outer: frozenset[str], inner: frozenset[str], *, innermost: bool = False) -> int:
        """Samples in which one of `inner` was called, directly or not, by one of `outer`; `innermost`: and called
        nobody."""
        callers, called = self.known.expanded(outer), self.known.expanded(inner)
        both = (self.counts > 0) & self.known.with_function(outer) & self.known.with_function(inner)
        rows = np.flatnonzero(both).tolist()
        paths = ((row, self.known.kernel_path(row)) for row in rows)
        return sum(int(self.counts[row]) for row, path in paths if _calls(path, callers, called, innermost))

    def below(self, outer: frozenset[str], inner: frozenset[str], *, innermost: bool = False) -> KernelProfile:
        """Only the samples that `under` counts; with no `inner`, those in which one of `outer` runs."""
        callers, called = self.known.expanded(outer), self.known.expanded(inner)
        kept = np.zeros_like(self.counts)
        some = (self.counts > 0) & self.known.with_function(outer)
        if inner:  # of which the kernel may have none; then nothing is below it
            some &= self.known.with_function(inner)
        for row in np.flatnonzero(some).tolist():
            if _calls(self.known.kernel_path(row), callers, called, innermost):
                kept[row] = self.counts[row]
        return KernelProfile(self.known, kept, self.samples)

    def share(self, count: int) -> float:
        """Of all samples taken in the kernel whose functions are known."""
        return min(1.0, count / self.named_samples) if self.named_samples else 0.0

    @property
    def weight(self) -> float:
        """How many samples one with a name stands for."""
        return self.kernel_samples / self.named_samples if self.named_samples else 1.0


def tells(named: int, samples: int) -> bool:
    """Half of the samples, or a fifth of a second of them: fewer say nothing about the others."""
    return named > 0 and named >= min(NAMED_LEAST_SAMPLES, samples / 2)


def _calls(path: tuple[str, ...], outer: frozenset[str], inner: frozenset[str], innermost: bool) -> bool:
    for at, name in enumerate(path):
        if name in outer:
            return not inner or not inner.isdisjoint(path[-1:] if innermost else path[at:])
    return False
