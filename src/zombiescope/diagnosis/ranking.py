"""From patterns to causes: how sure, in which order, and what was ruled out.

    strength = 0.05                                     it was considered at all
             + 0.35 x min(1, share / 0.6)               how much of the kernel time its frames explain
             + 0.35 x confirmed                         its own measurement, or none; half where what is usual on this
                                                        node is not known
             + 0.15 x culprit named
             + 0.05 x nothing needed was unmeasured

Strength orders causes. Confidence is how often causes of that strength were right (calibration.py); it rises with it.

A pattern without frames (throttling, steal) has 0.35 for its symptom instead; the fallback, which explains nothing, has
none. Without a confirming measurement confidence stays at or below 0.5, and a pattern that is only known from
literature at or below 0.6. One refuting measurement removes a pattern; so does a share of frames below its least. A
confirmed cause stands before any that is not; but one that explains less of the hog's kernel time than something else
does is a part of what happened, and stands behind what is not known.

Blind is not refuted: where no stacks were taken, or the kernel's functions have no names, frames say nothing. Then a
pattern is carried by what confirms it and by a core that the kernel held or a card that spoke up, at or below 0.5, and
the chain says what was not seen; without such numbers it is neither named nor ruled out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

from zombiescope.base.severity import SEVERITIES
from zombiescope.diagnosis.calibration import calibrated
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.incident import Cause, Fix, Link, Proof, RuledOut
from zombiescope.diagnosis.kernel_profile import KernelProfile
from zombiescope.diagnosis.pattern import FALLBACK, Evidence, Measurement, Pattern, Signature
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.thresholds import (
    CONFIRMED_LEAST,
    FULL_EVIDENCE_SHARE,
    LITERATURE_MOST,
    PARTIAL_CAUSE_SHARE,
    RANKED_LEAST_CORES,
    UNCONFIRMED_MOST,
)
from zombiescope.model.plans.step import note
from zombiescope.store import steps
from zombiescope.store.columns import Mask

UNSURE = "nothing was measured that confirms this cause, so no command that changes the node is given: look first"
MOST_SYMPTOMS = 5
"""In a chain; the incident lists all of them."""


@dataclass(frozen=True, slots=True)
class Assessment:
    pattern: Pattern
    share: float
    signature: Signature | None
    finding: Evidence
    confirmed: bool
    strength: float
    is_part: bool = False
    """Something else has more of the kernel time."""


def confidence(pattern: Pattern, strength: float, proof: Proof | None = None) -> float:
    """How likely a cause is, within what its kind of evidence allows: what nothing confirms is never above what
    something does. The fallback claims nothing, so there is nothing to be sure of."""
    if pattern.id == FALLBACK:
        return strength
    if strength <= UNCONFIRMED_MOST:
        return round(min(calibrated(strength), UNCONFIRMED_MOST), 3)
    most = LITERATURE_MOST if (proof or pattern.proof) == "literature" else 1.0
    return round(min(max(calibrated(strength), CONFIRMED_LEAST), most), 3)


def rank(case: Case, patterns: list[Pattern]) -> tuple[tuple[Cause, ...], tuple[RuledOut, ...]]:
    """Causes, best first, and every pattern that was considered and refuted, with the number that did it."""
    judged: list[Assessment] = []
    ruled_out: list[RuledOut] = []
    order: dict[str, tuple[float, bool, str]] = {}
    for pattern in patterns:
        if not pattern.considers(case):
            continue
        steps.step(f"pattern {pattern.id}")
        share, signature = pattern.share(case)
        verdict = judge(case, pattern, share, signature)
        if isinstance(verdict, Assessment):
            judged.append(verdict)
        elif verdict is not None:
            ruled_out.append(verdict)
            order[pattern.id] = _suspected(pattern, share)
    judged = [_weighed(case, one) for one in judged]
    named = [one for one in judged if one.pattern.id != FALLBACK]
    if any(one.confirmed and not one.is_part for one in named):
        judged = named
    judged.sort(
        key=lambda one: (
            one.is_part, one.pattern.id == FALLBACK, -one.confirmed, one.finding.is_ordinary, -one.strength,
            one.pattern.id,
        )
    )  # fmt: skip
    ruled_out.sort(key=lambda one: order[one.pattern])
    causes = [_cause(case, one) for one in judged]
    if judged and judged[0].pattern.id == FALLBACK:
        parts = [one for one in judged if one.is_part and one.confirmed]
        causes[0] = replace(causes[0], chain=(*causes[0].chain, *(_part(case, one) for one in parts)))
    return tuple(causes), tuple(ruled_out)


def _part(case: Case, one: Assessment) -> Link:
    """What is known of a cause that is not: the part that a pattern explains."""
    fact = f"{one.finding.summary or one.pattern.title}: {one.share * 100:.0f}% of its kernel time"
    return Link("part", fact, round(one.share, 4), "ratio", case.from_us, "samples")


def _weighed(case: Case, one: Assessment) -> Assessment:
    """What is ordinary claims no harm, so it stands for whatever it explains."""
    larger = None if one.finding.is_ordinary or one.signature is None else larger_than(case, one.pattern)
    if larger is None:
        return one
    finding = replace(one.finding, measurements=(larger.measurement(), *one.finding.measurements))
    return replace(one, finding=finding, strength=min(one.strength, UNCONFIRMED_MOST), is_part=True)


def _suspected(pattern: Pattern, share: float) -> tuple[float, bool, str]:
    """What was ruled out in the order in which a person would ask: frames that were there, then the usual suspects."""
    return -round(share, 1), not pattern.suspected_first, pattern.id


def judge(case: Case, pattern: Pattern, share: float, signature: Signature | None) -> Assessment | RuledOut | None:
    """Of a pattern that may be the cause, by the share of the kernel time that a signature of it has. None: it has
    nothing to do with this case."""
    finding = pattern.examine(case)
    finding = replace(finding, culprit=case.blamed(finding.culprit))
    against = next((one for one in finding.measurements if one.says == "refutes"), None)
    if against is not None:
        return _refuted(pattern, against)
    if pattern.signatures and case.stolen is not None:
        because = f"no task held the core: {case.stolen * 100:.0f}% of it was stolen by the hypervisor"
        return RuledOut(pattern.id, because, round(case.stolen, 4), "ratio")
    confirmed = any(one.says == "confirms" for one in finding.measurements)
    if pattern.signatures and not pattern.sees(case):
        return _judge_blind(case, pattern, finding) if confirmed else None
    if pattern.signatures and pattern.scope == "hog" and not case.has_suspect and case.in_span.any():
        return RuledOut(pattern.id, "no task held a core in the kernel before it", 0.0, "cores")
    if pattern.signatures and share < pattern.least_share:
        because = (
            f"its functions have {share * 100:.1f}% of the kernel time" if share else "no samples in its functions"
        )
        return RuledOut(pattern.id, because, round(share, 4), "ratio")
    cores = pattern.cores(case, signature) if signature else 0.0
    if pattern.signatures and cores < RANKED_LEAST_CORES:
        return RuledOut(pattern.id, f"its functions used {cores:.3f} of a CPU", round(cores, 4), "cores")
    if not pattern.signatures and not confirmed and pattern.id != FALLBACK and not pattern.may_be:
        return None
    finding = _with_not_seen(case, pattern, finding)
    return Assessment(pattern, share, signature, finding, confirmed, _strength(pattern, share, finding, confirmed))


def _judge_blind(case: Case, pattern: Pattern, finding: Evidence) -> Assessment | None:
    """By its numbers alone, where those are enough and something shows that the kernel took the time."""
    applies = any(one.applies(case.facts.kernel, case.profile) for one in pattern.signatures)
    if not (pattern.numbers_tell and applies and case.kernel_took_time):
        return None
    finding = _with_not_seen(case, pattern, finding)
    finding = replace(finding, summary=f"probably {finding.summary or pattern.title}")
    strength = min(_strength(pattern, 0.0, finding, confirmed=True), UNCONFIRMED_MOST)
    return Assessment(pattern, 0.0, None, finding, True, strength)


def _with_not_seen(case: Case, pattern: Pattern, finding: Evidence) -> Evidence:
    if case.not_seen is None or not (pattern.signatures or pattern.id == FALLBACK):
        return finding
    blind = Measurement(case.not_seen, None, None, "samples", "nothing", step="not seen")
    return replace(finding, measurements=(*finding.measurements, blind))


def _refuted(pattern: Pattern, against: Measurement) -> RuledOut:
    return RuledOut(pattern.id, against.fact, against.value, against.value_unit)


def _strength(pattern: Pattern, share: float, finding: Evidence, confirmed: bool) -> float:
    frames = min(1.0, share / FULL_EVIDENCE_SHARE) if pattern.signatures else float(pattern.id != FALLBACK)
    complete = all(one.value is not None for one in finding.measurements)
    strength = 0.05 + 0.35 * frames + 0.35 * finding.weight + 0.15 * (finding.culprit is not None) + 0.05 * complete
    if not confirmed:
        strength = min(strength, UNCONFIRMED_MOST)
    if (finding.proof or pattern.proof) == "literature":
        strength = min(strength, LITERATURE_MOST)
    return round(strength, 3)


def _cause(case: Case, one: Assessment) -> Cause:
    finding = one.finding
    because = finding.summary or one.pattern.title
    return Cause(
        one.pattern.id,
        finding.proof or one.pattern.proof,
        confidence(one.pattern, one.strength, finding.proof),
        headline(case, because),
        case.hog,
        finding.culprit,
        case.frames,
        tuple(_chain(case, one)),
        _plan(one),
        because,
        strength=one.strength,
        is_ordinary=finding.is_ordinary,
        repair=one.pattern.repair,
        is_harmful=finding.is_harmful,
    )


def _plan(one: Assessment) -> Fix:
    """Of a cause that nothing confirms, only what looks: nobody changes a node for a guess."""
    fix = one.finding.fix or Fix(one.pattern.remedy)
    if one.strength > UNCONFIRMED_MOST or not any(step.kind == "change" for step in fix.steps):
        return one.pattern.completed(fix)
    steps = tuple(step for step in fix.steps if step.kind != "change")
    return Fix(fix.summary, (*one.pattern.completed(Fix(fix.summary, steps)).steps, note(UNSURE)))


def _chain(case: Case, one: Assessment) -> list[Link]:
    shown = sorted(case.group.symptoms, key=_weight)[:MOST_SYMPTOMS]
    links = [
        Link("symptom", symptom.text, round(symptom.seconds, 3), "s", symptom.from_us, symptom.detector.source)
        for symptom in sorted(shown, key=lambda symptom: symptom.from_us)
    ]
    hog = case.hog
    if case.hog_task is not None:
        fact = f"{hog.name} used {hog.cores or 0.0:.2f} of {case.facts.cpus} cores"
        if hog.baseline_cores is not None:
            fact += f" (usually {hog.baseline_cores:.2f})"
        links.append(Link("hog", fact, hog.cores, "cores", case.from_us, "samples"))
    if case.frames and (one.pattern.signatures or one.pattern.id == FALLBACK):
        path = case.frames[-4:] if one.signature is None else case.frames_of(one.signature.of(case.profile))[-4:]
        means = one.signature.means if one.signature else ""
        fact = " > ".join(path) + (f": {means}" if means else "")
        share = round(one.share, 4)
        links.append(
            Link("kernel function", fact, share, "ratio", case.from_us, "samples", path=path, means=means or None)
        )
    links += [_measured(measure, case.from_us) for measure in one.finding.measurements]
    if finding_culprit := one.finding.culprit:
        links.append(Link("culprit", finding_culprit.name, None, None, case.from_us, None))
    return links


def _measured(one: Measurement, from_us: int) -> Link:
    return Link(one.step, one.fact, one.value, one.value_unit, one.at_us or from_us, one.source, one.counter)


def _weight(symptom: Symptom) -> tuple[int, int, float]:
    return -SEVERITIES.index(symptom.severity), -symptom.detector.weight, -symptom.seconds


# --- headline ---------------------------------------------------------------------------------------------------------
# The first sentence of an incident: what was lost, then why. An engineer who is woken reads no further than that.


def headline(case: Case, because: str) -> str:
    """`because` after the cores that were lost; alone where none was, or where it says itself which core it is."""
    lost = [symptom for symptom in case.group.symptoms if symptom.detector.core_rank == 0]
    cores = sorted({symptom.cpu for symptom in lost if symptom.cpu is not None})
    if not cores or because.startswith("core "):
        return because
    seconds = max(symptom.seconds for symptom in lost)
    if len(cores) == 1:
        return f"core {cores[0]} starved for {seconds:.0f} s: {because}"
    return f"{len(cores)} cores starved for up to {seconds:.0f} s: {because}"


# --- partial causes ---------------------------------------------------------------------------------------------------
# A cause, or a part of what happened: a pattern that explains a fifth of the hog's kernel time is right about a fifth.
#
# A program that asks for many things does some of each, and one of them is often a pattern's. So a pattern is compared
# with the system calls (and faults) that it has next to nothing to do with. Where one of those alone has more of the
# kernel time than all that the pattern accounts for, what happened is not known, and the pattern stands behind that, at
# 0.5 or less, and says so.
#
# Only where the hog's own stacks are the pattern's: what it does to a whole core, or through kernel threads, is no
# share of its own time.


class Larger(NamedTuple):
    """What has more of the hog's kernel time than a pattern, and how much the two have."""

    what: str
    share: float
    pattern_share: float

    def measurement(self) -> Measurement:
        text = (
            f"only part of the explanation: {self.what} has {self.share * 100:.0f}% of its kernel time, this pattern "
            f"{self.pattern_share * 100:.0f}%"
        )
        return Measurement(text, round(self.pattern_share, 4), "ratio", "samples", "nothing")


def larger_than(case: Case, pattern: Pattern) -> Larger | None:
    """In the hog's own time, and in that of the hog with all that was started with it: children that do one thing
    may have a parent that does nothing but make them."""
    if pattern.scope != "hog" or not pattern.signatures:
        return None
    own = _larger(case, pattern, case.profile)
    if own is None or _larger(case, pattern, case.facts.samples.profile(case.family)) is None:
        return None
    return own


def _larger(case: Case, pattern: Pattern, profile: KernelProfile) -> Larger | None:
    mine = _accounted(case, pattern, profile)
    own = profile.share(int(profile.counts[mine].sum()))
    for name, count in _asked_for(profile, mine).most_common(1):
        if (share := profile.share(count)) > own:
            return Larger(name, share, own)
    return None


def _accounted(case: Case, pattern: Pattern, profile: KernelProfile) -> Mask:
    """Which stacks are a pattern's doing."""
    rows = profile.known.with_function(pattern.also)
    for one in pattern.signatures:
        if one.applies(case.facts.kernel, profile):
            rows = rows | (one.of(profile).counts > 0)
    return rows


def _asked_for(profile: KernelProfile, mine: Mask) -> Counter[str]:
    """Samples by what the kernel was entered for, of what a pattern has nothing to do with."""
    everything, without = profile.calls(), profile.calls(~mine)
    return Counter(
        {name: count for name, count in everything.items() if count - without[name] < PARTIAL_CAUSE_SHARE * count}
    )
