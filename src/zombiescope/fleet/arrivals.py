"""Change points: what started when something arrived on a node, and hours in which many nodes fell ill at once.

A value of a label arrives on a node when the node runs with it and ran with another one before. Nodes are compared with
themselves: of those that were sick only before or only after, how many after? Were the arrival of no account, each
would be as likely as the other, in the proportion of the hours observed on either side (exact binomial test, corrected
for all arrivals that were tried). A value needs no healthy neighbours to be found, and a fleet that is all on one image
still shows that it began with it.

Hours: if the first incidents of nodes were spread evenly over an hour and those around it, how likely is it that so
many begin in that one? Clocks that are minutes apart move an onset by one hour at most, so hours are taken in pairs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from zombiescope.base.time import HOUR_US
from zombiescope.fleet import exact
from zombiescope.fleet.exact import ALPHA
from zombiescope.fleet.statistics import IncidentFigures, LabelSpan

LEAST_NODES = 3
_PAIR, _AROUND = (0, 1), (-2, -1, 2, 3)


@dataclass(frozen=True, slots=True)
class Arrival:
    label: str
    value: str
    nodes: int
    """On which it arrived in the window."""
    sick_after: int
    """Only after it; `sick_before`: only before."""
    sick_before: int
    first_us: int
    last_us: int
    p_value: float
    p_corrected: float

    @property
    def significant(self) -> bool:
        return self.p_corrected <= ALPHA


@dataclass(frozen=True, slots=True)
class Onset:
    """An hour in which many nodes had their first incident."""

    from_us: int
    to_us: int
    nodes: int
    of_nodes: int
    p_corrected: float

    @property
    def significant(self) -> bool:
        return self.p_corrected <= ALPHA


def arrivals(spans: Sequence[LabelSpan], incidents: Sequence[IncidentFigures]) -> list[Arrival]:
    """The least likely by chance first."""
    moments: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    observed: dict[str, tuple[int, int]] = {}
    before: dict[str, Mapping[str, str]] = {}
    for span in spans:
        first, last = observed.get(span.node, (span.from_us, span.to_us))
        observed[span.node] = min(first, span.from_us), max(last, span.to_us)
        known = before.get(span.node)
        for term in span.labels.items() if known is not None else ():
            if known is not None and known.get(term[0]) != term[1]:
                moments[term].setdefault(span.node, span.from_us)
        before[span.node] = span.labels
    sick: dict[str, list[int]] = defaultdict(list)
    for incident in incidents:
        sick[incident.node].append(incident.from_us)
    tried = [(term, at) for term, at in sorted(moments.items()) if len(at) >= LEAST_NODES]
    found = [_arrival(term, at, observed, sick) for term, at in tried]
    least = [0.0] * len(found)
    right = exact.corrected([each.p_value for each in found], least, least)
    made = [replace(each, p_corrected=p) for each, p in zip(found, right, strict=True)]
    return sorted(made, key=lambda each: (each.p_corrected, each.p_value, each.label, each.value))


def _arrival(
    term: tuple[str, str], at: Mapping[str, int], observed: Mapping[str, tuple[int, int]], sick: Mapping[str, list[int]]
) -> Arrival:
    only_after = only_before = 0
    time_after = time_all = 0
    for node, moment in at.items():
        first, last = observed[node]
        time_after += max(0, last - moment)
        time_all += max(1, last - first)
        ends = {time >= moment for time in sick.get(node, ())}
        only_after += ends == {True}
        only_before += ends == {False}
    p = exact.binomial_tail(only_after + only_before, only_after, min(1.0, time_after / time_all))
    p = p if only_after + only_before else 1.0
    return Arrival(*term, len(at), only_after, only_before, min(at.values()), max(at.values()), p, 1.0)


def onsets(incidents: Sequence[IncidentFigures], start_us: int, end_us: int) -> list[Onset]:
    """Pairs of hours in which more nodes fell ill than chance would have it; the worst first, none twice."""
    first: dict[str, int] = {}
    for incident in incidents:
        first[incident.node] = min(first.get(incident.node, incident.from_us), incident.from_us)
    hours = max(2, (end_us - start_us) // HOUR_US)
    counted = Counter((at - start_us) // HOUR_US for at in first.values() if start_us <= at < end_us)
    found = []
    for hour in sorted(counted):
        nodes, around = (sum(counted.get(hour + each, 0) for each in near) for near in (_PAIR, _AROUND))
        p = exact.binomial_tail(nodes + around, nodes, len(_PAIR) / (len(_PAIR) + len(_AROUND))) * hours
        # Who was sick all along has the first incident that is seen at the window's start.
        if hour >= len(_PAIR) and nodes >= LEAST_NODES and p <= ALPHA:
            at_us = start_us + hour * HOUR_US
            found.append(Onset(at_us, at_us + len(_PAIR) * HOUR_US, nodes, sum(counted.values()), min(1.0, p)))
    kept: list[Onset] = []
    for onset in sorted(found, key=lambda onset: (onset.p_corrected, onset.from_us)):
        if all(onset.to_us <= other.from_us or onset.from_us >= other.to_us for other in kept):
            kept.append(onset)
    return kept
