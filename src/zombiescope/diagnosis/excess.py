"""What an incident added to a counter, beside what is usual on this node: how fast it rose in the minute before.

A large healthy node starts hundreds of processes and takes millions of page faults in every second, so a total against
a constant holds there all the time and confirms whatever the frames suggest. What speaks for a cause is what the
incident *added* to what the node does anyway.

The recording's own past is the measure. Its busier readings count, because healthy work comes in waves, and what an
incident added has to stand out of their spread; and as much has to be the hog's own part, because on a large node
others begin in the same second. That part is its share of the samples in the functions that do the counting. Where
nothing was recorded before, or where the hog did the same then, there is no past to measure by: then its own part has
to be enough by itself, and confirms at half the weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zombiescope.base.baseline import Baseline
from zombiescope.diagnosis.case import Case
from zombiescope.diagnosis.facts import Count, Facts
from zombiescope.diagnosis.pattern import Measurement, Says, counter_text
from zombiescope.store.columns import Mask

Rates = npt.NDArray[np.float64]
PastRates = Callable[[Facts], Rates]
"""How fast a counter rose, reading by reading, in a window."""

LEAST_READINGS = 2
BUSIER = 90.0
"""Percentile of the readings of the past that is called usual; of a few it is their median, as the last of them may
hold the beginning of the incident."""
A_FEW = 10
STANDS_OUT = 3.0
"""Times the spread of the past."""
LEAST_SPREAD = 0.02
"""Of what is usual: readings of a second are never all alike."""
WITHOUT_PAST = 0.5
"""What a confirmation is worth where what is usual is not known."""
SAME_BEFORE = 0.5
"""Of its CPU in those functions: who had that much before the incident did the same thing then."""
LEAST_CORES = 0.05
"""Who is in those functions for less has nothing to do with the counter."""
CPUS_OF_CONSTANTS = 4
"""The constants were measured on machines of two to four cores; for want of anything better they grow with the node."""


def baseline(rates: Rates) -> Baseline | None:
    """A second of the node as it was before the incident; None where too little was read to call anything usual."""
    if len(rates) < LEAST_READINGS:
        return None
    return Baseline.of(rates.tolist(), 50.0 if len(rates) < A_FEW else BUSIER)


def added(usual: Baseline, rate: float) -> float:
    return usual.excess(rate, STANDS_OUT, STANDS_OUT * LEAST_SPREAD * usual.level)


def counter(source: str, name: str) -> PastRates:
    return lambda past: past.rates(source, name)


def interrupt(label: str) -> PastRates:
    return lambda past: past.interrupt_rates(label)


@dataclass(frozen=True, slots=True)
class Judgement:
    says: Says
    words: str = ""
    """What stands behind the number: "; 40,000 a second were usual before"."""
    weight: float = 1.0


def judge(
    case: Case, count: Count, past_rates: PastRates, functions: str, least: float, whose: Mask | None = None
) -> Judgement:
    """Whether a counter, during an incident, says that the incident did `least` or more of it a second.

    `functions` are those in which it is counted; without any it is the work of the node and not of a hog. `whose`:
    samples of whoever does it, where that is more than the hog.
    """
    if count.rate < least or _is_hardly_there(case, functions, whose):
        return Judgement("nothing")
    usual = None if case.past is None else baseline(past_rates(case.past))
    if usual is not None and added(usual, count.rate) >= least:
        return _by_what_was_added(case, count, usual, functions, least, whose)
    if usual is not None and not _did_the_same_before(case, functions):
        return Judgement("nothing", f"; {usual.level:,.0f} a second were usual before, so this says nothing")
    return _by_its_own_part(case, count, functions, least, whose)


def _by_what_was_added(
    case: Case, count: Count, usual: Baseline, functions: str, least: float, whose: Mask | None
) -> Judgement:
    """More than was usual; but on a large node others begin in the same second, so the hog's own part of it has to be
    enough, too."""
    part = own_part(case, functions, whose)
    words = f"; {usual.level:,.0f} a second were usual before"
    if part is None or part * count.rate >= least:
        return Judgement("confirms", words)
    return Judgement("nothing", f"{words}, and {part * count.rate:,.0f} are its own, by its part of the samples")


def _is_hardly_there(case: Case, functions: str, whose: Mask | None) -> bool:
    """Whether it was seen that it has next to nothing to do with them: then its past need not be read."""
    own = case.cores_in(*functions.split(), chosen=case.hog_samples if whose is None else whose) if functions else None
    return own is not None and own < LEAST_CORES


def own_rate(case: Case, count: Count, past_rates: PastRates, functions: str, whose: Mask | None = None) -> float:
    """What a second of the incident has of it beside what the node does anyway, for sentences about the hog."""
    usual = None if case.past is None else baseline(past_rates(case.past))
    if usual is not None and (excess := added(usual, count.rate)) > 0:
        return excess
    part = own_part(case, functions, whose)
    return count.rate if part is None else part * count.rate


def _by_its_own_part(case: Case, count: Count, functions: str, least: float, whose: Mask | None) -> Judgement:
    part = own_part(case, functions, whose)
    unknown = "; what is usual without it was not recorded"
    if part is None:  # nothing was seen of the functions: the constant, for as many cores as there are
        scaled = least * max(1.0, case.facts.cpus / CPUS_OF_CONSTANTS)
        return Judgement("confirms" if count.rate >= scaled else "nothing", unknown, WITHOUT_PAST)
    own = part * count.rate
    words = f"{unknown}; {own:,.0f} are its own, by its part of the samples" if functions else unknown
    return Judgement("confirms" if own >= least else "nothing", words, WITHOUT_PAST)


def own_part(case: Case, functions: str, whose: Mask | None = None) -> float | None:
    """Its part of all CPU time in these functions; None where that was not seen."""
    if not functions:
        return 1.0
    names = functions.split()
    own = case.cores_in(*names, chosen=case.hog_samples if whose is None else whose)
    everybody = case.cores_in(*names)
    if everybody is None or own is None:
        return None
    return own / everybody if everybody else 0.0


def _did_the_same_before(case: Case, functions: str) -> bool:
    """Whether whoever is the hog was in these functions as much before, so that the past is no measure for it."""
    if not functions:
        return False
    names = functions.split()
    now = case.cores_in(*names, chosen=case.hog_samples) or 0.0
    return now > 0 and case.cores_before(*names) >= SAME_BEFORE * now


def unusual(
    case: Case,
    what: str,
    counter_name: str,
    count: Count | None,
    past_rates: PastRates,
    functions: str = "",
    *,
    least: float,
    refutes_below: float | None = None,
    source: str = "counters",
    whose: Mask | None = None,
) -> Measurement:
    """A counter during the incident, judged by what the incident added: `what` is "page faults". A total that is small
    refutes on any node; a large one confirms only where it is more than this node usually has."""
    name = f"{what} ({counter_name})"
    if count is None:
        return Measurement(f"{name} were not counted", None, what, source, "nothing", counter=counter_name)
    if refutes_below is not None and count.rate < refutes_below:
        found = Judgement("refutes")
    else:
        found = judge(case, count, past_rates, functions, least, whose)
    text = counter_text(name, count) + found.words
    return Measurement(text, count.added, what, source, found.says, counter=counter_name, weight=found.weight)
