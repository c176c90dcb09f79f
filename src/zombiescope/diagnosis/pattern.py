"""A root-cause pattern: what it looks like, what confirms it, what refutes it, and what to do. One file each.

A file in patterns/ has one PATTERN. Its page in the docs, its alert and its event reason are made from the texts in it,
so a new pattern is a new file (and a scenario that makes it happen).

Frames alone never make a diagnosis: the same function means different things on different kernels, and a profile
without the counter beside it is a guess. So a pattern has signatures (pairs of frames: who asked, and what is hot
below) and measurements, each of which confirms it, refutes it, or says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Actor, Fix, Proof
from zombiescope.diagnosis.sample_grid import KernelProfile

Version = tuple[int, int]
Says = Literal["confirms", "refutes", "nothing"]
Scope = Literal["hog", "core", "node"]


@dataclass(frozen=True, slots=True)
class Signature:
    """Samples in which one of `inner` runs below one of `outer`; with no `inner`, in which one of `outer` runs.

    Where kernels differ, `since` and `before` say which ones have it; a kernel that is not known may have any.
    """

    outer: frozenset[str]
    inner: frozenset[str] = frozenset()
    since: Version | None = None
    before: Version | None = None
    means: str = ""
    """What the pair tells, for the chain: "memory.numa_stat is read"."""

    def applies(self, kernel: Version | None) -> bool:
        if kernel is None:
            return True
        return (self.since is None or kernel >= self.since) and (self.before is None or kernel < self.before)

    def samples(self, profile: KernelProfile) -> int:
        return profile.under(self.outer, self.inner) if self.inner else profile.total(*self.outer)


def signature(outer: str, inner: str = "", **more: object) -> Signature:
    """Frames written as words: signature("memcg_stat_show", "mem_cgroup_iter css_next_descendant_pre")."""
    return Signature(frozenset(outer.split()), frozenset(inner.split()), **more)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A number that was looked at, and what it says about the pattern."""

    fact: str
    value: float | int | str | None
    value_unit: str | None
    source: str
    says: Says
    at_us: int | None = None
    step: str = "measurement"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a pattern found in a case."""

    measurements: tuple[Measurement, ...]
    culprit: Actor | None = None
    summary: str = ""
    fix: Fix | None = None


@dataclass(frozen=True, slots=True)
class Pattern:
    id: str
    title: str
    proof: Proof
    looks_like: str
    confirmed_by: str
    refuted_by: str
    remedy: str
    examine: Callable[[Case], Finding]
    signatures: tuple[Signature, ...] = ()
    scope: Scope = "hog"
    """Whose samples the signatures are looked for in."""
    least_share: float = 0.2
    """Of the kernel samples in that scope; below it the frames do not speak for the pattern."""
    symptoms: frozenset[str] = frozenset()
    """A pattern without frames is only thought of when one of these symptoms is there."""

    def share(self, case: Case) -> tuple[float, Signature | None]:
        """The largest share of kernel samples that one of its signatures has, and which."""
        profile = {"hog": case.profile, "core": case.core_profile, "node": case.node_profile}[self.scope]
        found = [
            (profile.share(one.samples(profile)), one) for one in self.signatures if one.applies(case.facts.kernel)
        ]
        return max(found, key=lambda pair: pair[0], default=(0.0, None))


def measured(
    fact: str,
    value: float | int | None,
    unit: str | None,
    source: str,
    confirms: bool | None,
    *,
    at_us: int | None = None,
    step: str = "measurement",
) -> Measurement:
    """`confirms` True: it speaks for the pattern; False: against it; None, or a value of None: it says nothing."""
    says: Says = "nothing" if value is None or confirms is None else "confirms" if confirms else "refutes"
    return Measurement(fact, value, unit, source, says, at_us, step)


def all_known(values: Iterable[float | int | None]) -> bool:
    return all(value is not None for value in values)
