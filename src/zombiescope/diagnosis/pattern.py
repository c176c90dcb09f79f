"""A root-cause pattern: what it looks like, what confirms it, what refutes it, and what to do. One file each.

A file in patterns/ has one PATTERN. Its page in the docs, its alert and its event reason are made from the texts in it,
so a new pattern is a new file (and a scenario that makes it happen).

Frames alone never make a diagnosis: the same function means different things on different kernels, and a profile
without the counter beside it is a guess. So a pattern has signatures (pairs of frames: who asked, and what is hot
below) and measurements, each of which confirms it, refutes it, or says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Count
from zombiescope.diagnosis.incident import Actor, Fix, Proof, Repair
from zombiescope.diagnosis.kernel_profile import KernelProfile
from zombiescope.model.plans.step import advice

FALLBACK = "unknown-kernel-hog"
"""What is said where no pattern fits."""

Version = tuple[int, int]
Says = Literal["confirms", "refutes", "nothing"]
Scope = Literal["hog", "core", "node"]


@dataclass(frozen=True, slots=True)
class Signature:
    """Samples in which one of `inner` runs below one of `outer`; with no `inner`, in which one of `outer` runs.

    A name that ends in * stands for all that begin so, and sys_NAME for the system call's entry on any architecture.

    Most names exist only in kernels that do what they stand for, so they need no bound: distributions carry functions
    back, and one that was sampled is there. Where a function stayed and what it does changed, `since` and `before` are
    the mainline releases that do it, and `proof` are callees that show it on any other.
    """

    outer: frozenset[str]
    inner: frozenset[str] = frozenset()
    since: Version | None = None
    before: Version | None = None
    means: str = ""
    """What the pair means, for the chain: "memory.numa_stat is read"."""
    proof: frozenset[str] = frozenset()
    innermost: bool = False
    """The time is spent in `inner` itself, not in what it calls."""

    def applies(self, kernel: Version | None, profile: KernelProfile) -> bool:
        if kernel is None or self._in_mainline(kernel):
            return True
        return bool(self.proof) and profile.under(self.outer, self.proof) > 0

    def samples(self, profile: KernelProfile) -> int:
        if not self.inner:
            return profile.total(*self.outer)
        return profile.under(self.outer, self.inner, innermost=self.innermost)

    def of(self, profile: KernelProfile) -> KernelProfile:
        """Only those samples."""
        return profile.below(self.outer, self.inner, innermost=self.innermost)

    def _in_mainline(self, kernel: Version) -> bool:
        return (self.since is None or kernel >= self.since) and (self.before is None or kernel < self.before)


def signature(outer: str, inner: str = "", **more: object) -> Signature:
    """Frames written as words: signature("memcg_stat_show", "mem_cgroup_iter css_next_descendant_pre")."""
    words = {"proof": frozenset(str(more.pop("proof", "")).split())}
    return Signature(frozenset(outer.split()), frozenset(inner.split()), **words, **more)  # type: ignore[arg-type]


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
    counter: str | None = None
    weight: float = 1.0
    """What its confirmation is worth: less where it is not known what is usual on this node (excess.py)."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a pattern found in a case."""

    measurements: tuple[Measurement, ...]
    culprit: Actor | None = None
    summary: str = ""
    fix: Fix | None = None
    is_ordinary: bool = False
    """Healthy nodes do that, too: it is a note, unless somebody suffers from it."""
    is_harmful: bool = False
    """The hog was seen doing what delays others (closer_look.py)."""
    proof: Proof | None = None
    """How this form of it is known, where others of the pattern were seen and this one was not."""

    @property
    def weight(self) -> float:
        """What its best confirmation is worth; 0 where nothing confirms it."""
        return max((one.weight for one in self.measurements if one.says == "confirms"), default=0.0)


@dataclass(frozen=True, slots=True)
class Pattern:
    id: str
    title: str
    proof: Proof
    looks_like: str
    confirmed_by: str
    refuted_by: str
    remedy: str
    """What ends it for good."""
    examine: Callable[[Case], Evidence]
    hog: str = "The task whose samples hold the frames."
    culprit: str = "The hog itself."
    suspected_first: bool = False
    """People think of it first, whatever the evidence; so it is among the first that are shown as ruled out."""
    known_from: str = ""
    """Where the frames and the thresholds come from: a report, a commit, a measurement."""
    signatures: tuple[Signature, ...] = ()
    scope: Scope = "hog"
    """Whose samples the signatures are looked for in, beside the hog's own: on a large node the cores together always
    have something else to do, so that a share of theirs alone would go deaf."""
    also: frozenset[str] = frozenset()
    """Functions whose time is its doing as well, though they do not speak for it (ranking.py)."""
    least_share: float = 0.2
    """Of the kernel samples in that scope, or of the hog's; below it the frames do not speak for the pattern."""
    seen_on: tuple[str, ...] = ()
    """Kernels on which it was made to happen and recorded: "6.18", "4.19 (emulated)". Empty: known from others only."""
    symptoms: frozenset[str] = frozenset()
    """A pattern without frames is only considered when one of these symptoms is there."""
    numbers_tell: bool = False
    """What confirms it is rare enough to carry it, at 0.5 or less, where the kernel's functions were not seen."""
    stop_gap: str = ""
    """What makes the damage smaller until it is ended, in words, for where the case gives no better step."""
    no_stop_gap: str = ""
    """Why there is none, or none that is safe."""
    no_lasting: str = ""
    """Why nothing ends it for good."""
    repair: Repair = "NONE"
    """What a system that repairs nodes may do for it, where nothing on the node helps."""
    may_be: bool = False
    """Its symptom alone makes it a candidate, unconfirmed: nothing that a recording always holds would confirm it."""

    @property
    def reason(self) -> str:
        """As a Kubernetes event or an alert is named: ZombieMemcg."""
        return "".join(word.capitalize() for word in self.id.split("-"))

    def completed(self, fix: Fix) -> Fix:
        """With a stop-gap and a lasting fix, or why there is none: every plan has both."""
        parts = {step.part for step in fix.steps}
        found = list(fix.steps)
        if "stop-gap" not in parts:
            found.append(advice(self.stop_gap or f"no stop-gap: {self.no_stop_gap}", "stop-gap"))
        if "lasting" not in parts:
            found.append(advice(f"no lasting fix: {self.no_lasting}" if self.no_lasting else _as_step(self.remedy)))
        return Fix(fix.summary, tuple(found))

    def annotations(self) -> dict[str, str]:
        """Of an alert about this pattern."""
        return {"summary": self.title, "description": f"{self.looks_like} {self.remedy}", "page": f"patterns/{self.id}"}

    def sees(self, case: Case) -> bool:
        """Whether its frames could have been seen; where they could not, they speak neither for it nor against it."""
        return case.sees(self._profile(case))

    def considers(self, case: Case) -> bool:
        """Whether there is a symptom that it may be the cause of."""
        if self.id == FALLBACK:
            return any(symptom.detector.has_hog for symptom in case.group.symptoms)
        return not self.symptoms or bool(self.symptoms & case.kinds())

    def share(self, case: Case) -> tuple[float, Signature | None]:
        """The largest share of kernel samples that one of its signatures has, in its scope or in the hog's, and
        which."""
        found = [
            (profile.share(one.samples(profile)), one)
            for profile in self._profiles(case)
            for one in self.signatures
            if one.applies(case.facts.kernel, profile)
        ]
        return max(found, key=lambda pair: pair[0], default=(0.0, None))

    def cores(self, case: Case, one: Signature) -> float:
        """CPU that a signature's samples stand for; those without names are taken to be like the others."""
        samples = max(one.samples(profile) * profile.weight for profile in self._profiles(case))
        return samples / case.facts.hz / case.seconds

    def _profile(self, case: Case) -> KernelProfile:
        return case.profile if self.scope == "hog" else case.core_profile if self.scope == "core" else case.node_profile

    def _profiles(self, case: Case) -> tuple[KernelProfile, ...]:
        return (case.profile,) if self.scope == "hog" else (self._profile(case), case.profile)


def _as_step(sentence: str) -> str:
    """A sentence of the docs, as a step says it."""
    plain = sentence[:2].isupper() or not sentence[:1].isalpha()
    return (sentence if plain else sentence[0].lower() + sentence[1:]).removesuffix(".")


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


def counted(
    what: str,
    counter: str,
    count: Count | None,
    source: str,
    *,
    refutes_below: float | None = None,
) -> Measurement:
    """A counter during the incident: `what` is "page faults", `counter` "pgfault". A small rate may refute; how large a
    total has to be depends on the node, so none confirms here (excess.py).

    The value is what was added, as it can be summed up from the table; the rate stands in the sentence.
    """
    name = f"{what} ({counter})"
    if count is None:
        return Measurement(f"{name} were not counted", None, what, source, "nothing", counter=counter)
    says: Says = "refutes" if refutes_below is not None and count.rate < refutes_below else "nothing"
    return Measurement(counter_text(name, count), count.added, what, source, says, counter=counter)


def counter_text(name: str, count: Count) -> str:
    rate = f"{count.rate:,.0f}" if count.rate >= 10 or not count.added else f"{count.rate:.1f}"
    return f"{name}: {rate} a second, {count.added:,} in {count.seconds:.0f} s"


def cpu_below(case: Case, what: str, names: str, *, confirms_from: float) -> Measurement:
    """CPU that all tasks together spent below functions that serve one purpose only, so that the time is the proof."""
    cores = case.cores_in(*names.split())
    if cores is None:
        return Measurement(f"{what} was not sampled", None, "cores", "samples", "nothing")
    enough = True if cores >= confirms_from else None
    return cpu_used(f"{what} took {{}} for {case.seconds:.1f} s", cores, enough)


def cpu_used(what: str, cores: float | None, confirms: bool | None) -> Measurement:
    """CPU that some samples stand for: `what` is a sentence with {} where "0.42 of a CPU" goes."""
    value = None if cores is None else round(cores, 4)
    # Not format(): a sentence may hold the name of a task, and those may hold anything.
    return measured(what.replace("{}", f"{cores or 0:.2f} of a CPU"), value, "cores", "samples", confirms)


def level(what: str, value: int | None, unit: str, source: str, *, refutes_below: float) -> Measurement:
    """A gauge: `what` is a sentence with {} where the number goes. A low one may refute. A high one alone confirms
    nothing: large nodes have large numbers."""
    if value is None:
        return Measurement(what.format("an unknown number of"), None, unit, source, "nothing")
    says: Says = "refutes" if value < refutes_below else "nothing"
    return Measurement(what.format(f"{value:,}"), value, unit, source, says)
