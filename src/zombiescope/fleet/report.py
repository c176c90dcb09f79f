"""What the sick nodes of a fleet share that the healthy ones lack: one answer for terminal, JSON, HTML and page.

A node is in one of five states. It is sick if it had an incident of at least `least` (warning) in the window, and
healthy if it was judged and had none. It is not judged where the live diagnosis did not run or its incidents cannot be
read, and blind where nothing was recorded: neither is healthy, and neither is in a test. Copies of one recording are
one node. A sick node's labels are those that it had when it fell ill; a healthy node's are its last ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from zombiescope.base.severity import SEVERITIES, rank
from zombiescope.fleet import arrivals, clusters, forecast, labels, units
from zombiescope.fleet.arrivals import Arrival, Onset
from zombiescope.fleet.clusters import Cluster
from zombiescope.fleet.exact import ALPHA
from zombiescope.fleet.forecast import Outlook
from zombiescope.fleet.gather import Gathered
from zombiescope.fleet.inventory import Inventory
from zombiescope.fleet.judge import Verdict
from zombiescope.fleet.labels import Comparison, Group, Outcome
from zombiescope.fleet.numbers import AGE, Split, Variable, duration
from zombiescope.fleet.plan import Newest
from zombiescope.fleet.statistics import IncidentFigures, LabelSpan, NodeFigures
from zombiescope.fleet.units import UnitShare

LEAST_OF_A_CAUSE = 3
"""Nodes that a cause has at least, to be looked for in labels by itself."""
MOST_CAUSES = 8
MOST_FINDINGS = 3
"""In a headline."""
State = Literal["sick", "healthy", "not_judged", "blind", "copy"]


@dataclass(frozen=True, slots=True)
class CauseTotal:
    pattern: str
    culprit: str | None
    nodes: int
    incidents: int
    job_hours_lost: float
    gpu_seconds_lost: float | None
    """None where no GPU was recorded."""
    first_us: int
    last_us: int

    @property
    def name(self) -> str:
        return cause_name(self.pattern, self.culprit)


def cause_name(pattern: str, culprit: str | None) -> str:
    return f"{pattern} by {culprit}" if culprit else pattern


@dataclass(frozen=True, slots=True)
class FleetReport:
    place: str
    engine: str
    start_us: int
    end_us: int
    nodes: tuple[NodeFigures, ...]
    incidents: tuple[IncidentFigures, ...]
    causes: tuple[CauseTotal, ...]
    by: Comparison
    units: tuple[UnitShare, ...]
    arrivals: tuple[Arrival, ...]
    onsets: tuple[Onset, ...]
    clusters: tuple[Cluster, ...]
    outlook: Outlook
    damage: tuple[tuple[str, str, str], ...]
    files: int
    size_bytes: int
    work_s: float
    fresh: int
    copies: dict[str, str]
    """Node -> the node whose recording it is a copy of."""
    newest: dict[str, Newest]
    verdicts: dict[str, Verdict]
    """Of the nodes that this report diagnosed itself."""
    inventory: Inventory | None

    @property
    def sick(self) -> frozenset[str]:
        return frozenset(incident.node for incident in self.incidents)

    @property
    def worst(self) -> str | None:
        return max((incident.severity for incident in self.incidents), key=rank, default=None)

    def state(self, node: NodeFigures) -> State:
        return _state(node, self.sick, self.copies)

    def in_state(self, state: State) -> list[NodeFigures]:
        sick = self.sick
        return [node for node in self.nodes if _state(node, sick, self.copies) == state]

    @property
    def blind(self) -> list[NodeFigures]:
        """Nodes of which nothing was recorded in the window: neither sick nor healthy."""
        return self.in_state("blind")

    @property
    def not_judged(self) -> list[NodeFigures]:
        """Nodes that were recorded, and of which nobody knows whether they are healthy."""
        return self.in_state("not_judged")

    def why_blind(self, node: NodeFigures) -> str:
        newest = self.newest.get(node.node)
        if newest is None:
            return "it holds no recording"
        if newest.ahead_s is not None and newest.at_us >= self.end_us:
            return f"its clock is {duration(newest.ahead_s)} ahead of the store's"
        when = "newest" if newest.at_us < self.start_us else "next"
        return f"its {when} recording is {duration(abs(self.end_us - newest.at_us) / 1e6)} away from this window"

    @property
    def headline(self) -> str:
        """The finding in one sentence, and every node that is not in it."""
        counts = ((len(self.not_judged), "not judged"), (len(self.blind), "recorded nothing"))
        apart = [f"{count:,} {said}" for count, said in counts if count]
        rest = f" ({', '.join(apart)})" if apart else ""
        healthy, judged = len(self.in_state("healthy")), len(self.sick) + len(self.in_state("healthy"))
        if not self.incidents:
            return f"no incident on {healthy:,} of {len(self.nodes) - len(self.copies):,} nodes{rest}"
        first = f"{len(self.sick):,} of {judged:,} judged nodes are sick{rest}"
        found = self.by.found or ([self.by.first] if self.by.first is not None else [])
        if not found:
            return f"{first}; no label and no number explains it better than chance"
        return f"{first}: " + "; ".join(self._sentences(found))

    def _sentences(self, found: Sequence[Group]) -> Iterable[str]:
        yield sentence(found[0])
        told = next(
            (each for each in self.by.groups if each.explained_by == found[0].terms and each.because is not None), None
        )
        if told is not None:
            what = "is spared" if told.spared else "is sick"
            yield f"{told.text} {what} because {told.because}"
        causes = {found[0].cause}
        for group in found[1:MOST_FINDINGS]:
            if group.cause not in causes:
                causes.add(group.cause)
                yield sentence(group)

    def document(self) -> dict[str, Any]:
        """As JSON: times in seconds."""
        return _document(self)


def sentence(group: Group) -> str:
    """What a group shows, with every name of its nodes and with its nodes that were not judged."""
    what = group.cause or "an incident"
    not_judged = f", {group.not_judged:,} more not judged" if group.not_judged else ""
    where = (
        group.full_text if group.split is not None and group.split.variable.name == AGE else f"with {group.full_text}"
    )
    if group.spared:
        rest = f"{what} on {group.rest_affected:,} of {group.rest_nodes:,} nodes"
        return f"{rest}, but on {group.affected:,} of {group.nodes:,} {where}{not_judged}"
    rest = f"{group.rest_affected:,} of {group.rest_nodes:,} others"
    return f"{what} on {group.affected:,} of {group.nodes:,} {where}{not_judged}, and on {rest}"


def make(
    gathered: Gathered,
    engine: str,
    by: Sequence[str] | None = None,
    least: str = "warning",
    inventory: Inventory | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
) -> FleetReport:
    """`inventory`: labels from outside; `verdicts`: what was found on nodes that were diagnosed for this report."""
    statistics = gathered.statistics
    verdicts = dict(verdicts or {})
    span_s = (statistics.end_us - statistics.start_us) / 1e6
    nodes = [
        _known(_on_time(node, gathered.newest.get(node.node), span_s), inventory, verdicts.get(node.node))
        for node in statistics.nodes()
    ]
    every = [*statistics.incidents("info"), *(each for verdict in verdicts.values() for each in verdict.incidents)]
    copies = _copies(nodes, every)
    at_least = SEVERITIES[SEVERITIES.index(least) :]
    incidents = sorted(
        (each for each in every if each.severity in at_least and each.node not in copies),
        key=lambda each: (each.from_us, each.node, each.id or ""),
    )
    spans = [_joined(span, inventory) for span in statistics.label_spans() if span.node not in copies]
    causes = _causes(incidents)
    sick = frozenset(incident.node for incident in incidents)
    states = {node.node: _state(node, sick, copies) for node in nodes}
    judged = [node for node in nodes if states[node.node] in ("sick", "healthy")]
    unknown = [node for node in nodes if states[node.node] == "not_judged"]
    files, size_bytes, work_s = statistics.read()
    compared = labels.compare(
        _labels_at_onset(judged, incidents, spans), _outcomes(incidents, causes), by, variables(judged + unknown),
        {node.node: node.labels for node in unknown},
    )  # fmt: skip
    of_judged = [span for span in spans if states.get(span.node) in ("sick", "healthy")]
    ran = units.compare([node.node for node in judged], sick, statistics.units(), [node.node for node in unknown])
    return FleetReport(
        gathered.listing.place, engine, statistics.start_us, statistics.end_us, tuple(nodes), tuple(incidents),
        tuple(causes), compared, tuple(ran), tuple(arrivals.arrivals(of_judged, incidents)),
        tuple(arrivals.onsets(incidents, statistics.start_us, statistics.end_us)),
        tuple(clusters.clusters(incidents)),
        forecast.outlook([node for node in nodes if node.node not in copies], incidents, statistics.hours()),
        tuple(statistics.damage()), files, size_bytes, work_s, gathered.fresh, copies, gathered.newest, verdicts,
        inventory,
    )  # fmt: skip


def _state(node: NodeFigures, sick: frozenset[str], copies: Mapping[str, str]) -> State:
    if node.node in copies:
        return "copy"
    if node.node in sick:
        return "sick"
    if not node.recorded_s:
        return "blind"
    return "healthy" if node.not_judged is None else "not_judged"


def _known(node: NodeFigures, inventory: Inventory | None, verdict: Verdict | None) -> NodeFigures:
    """With labels from outside, and with the verdict of a diagnosis that was made for this report."""
    if inventory is not None:
        node = replace(node, labels={**node.labels, **inventory.of(node.node)})
    return node if verdict is None else replace(node, not_judged=verdict.why_not)


def _on_time(node: NodeFigures, newest: Newest | None, span_s: float) -> NodeFigures:
    """A node whose clock is further ahead than the window is long has its incidents somewhere else."""
    ahead_s = None if newest is None else newest.ahead_s
    if ahead_s is None or ahead_s <= span_s or node.not_judged is not None:
        return node
    return replace(node, not_judged=f"its clock is {duration(ahead_s)} ahead of the store's")


def _joined(span: LabelSpan, inventory: Inventory | None) -> LabelSpan:
    return span if inventory is None else replace(span, labels={**span.labels, **inventory.of(span.node)})


def _copies(nodes: Sequence[NodeFigures], incidents: Sequence[IncidentFigures]) -> dict[str, str]:
    """Nodes whose recording is that of another node: the same boot under the same name, or with the same incident. The
    one that is kept is in the directory of its own name, or the first. One that is in the directory of its own name is
    no copy, whatever others say of themselves: else a node could have another one left out."""
    boots = {node.node: node.boot for node in nodes}
    same: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    for node in nodes:
        if node.boot and node.name:
            same["name", node.boot, node.name].append(node.node)
    for incident in incidents:
        if incident.id and boots.get(incident.node):
            same["incident", boots[incident.node], incident.id, incident.from_us].append(incident.node)
    own = {node.node for node in nodes if node.name == node.node}
    found: dict[str, str] = {}
    for names in same.values():
        each, *rest = sorted(set(names), key=lambda name: (name not in own, name))
        kept = found.get(each, each)
        found |= {name: kept for name in rest if name not in found and name not in own}
    return found


def variables(nodes: Iterable[NodeFigures]) -> list[Variable]:
    """The numbers of nodes that are compared."""
    known = list(nodes)

    def values(name: str) -> dict[str, float]:
        return {node.node: float(value) for node in known if (value := getattr(node, name)) is not None}

    return [
        Variable(AGE, "age", "given", values("age_s"), is_time=True),
        Variable("cpus", "CPUs", "given", values("cpus")),
        Variable("dying", "dying cgroups", "course", values("most_dying")),
        Variable("memory_cgroups", "memory cgroups", "course", values("most_memory_cgroups")),
        Variable("boots", "boots", "course", values("boots")),
    ]


def _labels_at_onset(
    nodes: Sequence[NodeFigures], incidents: Sequence[IncidentFigures], spans: Sequence[LabelSpan]
) -> dict[str, dict[str, str]]:
    first: dict[str, int] = {}
    for incident in incidents:
        first.setdefault(incident.node, incident.from_us)
    found = {node.node: node.labels for node in nodes}
    for span in spans:
        at_us = first.get(span.node)
        if at_us is not None and span.from_us <= at_us <= span.to_us:
            found[span.node] = span.labels
    return found


def _causes(incidents: Sequence[IncidentFigures]) -> list[CauseTotal]:
    """By nodes, then by job hours lost."""
    grouped: dict[tuple[str, str | None], list[IncidentFigures]] = defaultdict(list)
    for incident in incidents:
        grouped[incident.cause].append(incident)
    totals = [_total(*cause, found) for cause, found in grouped.items()]
    return sorted(totals, key=lambda each: (-each.nodes, -each.job_hours_lost, each.pattern, each.culprit or ""))


def _total(pattern: str, culprit: str | None, found: Sequence[IncidentFigures]) -> CauseTotal:
    gpu = [incident.gpu_lost_s for incident in found if incident.gpu_lost_s is not None]
    jobs = math.fsum(incident.job_lost_s for incident in found)
    return CauseTotal(
        pattern, culprit, len({incident.node for incident in found}), len(found),
        round(jobs / 3600, 4), round(math.fsum(gpu), 2) if gpu else None,
        min(incident.from_us for incident in found), max(incident.to_us for incident in found),
    )  # fmt: skip


def _outcomes(incidents: Sequence[IncidentFigures], causes: Sequence[CauseTotal]) -> list[Outcome]:
    nodes: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for incident in incidents:
        nodes[incident.cause].add(incident.node)
    any_ = Outcome(None, frozenset(incident.node for incident in incidents))
    common = [cause for cause in causes if cause.nodes >= LEAST_OF_A_CAUSE][:MOST_CAUSES]
    return [any_, *(Outcome(cause.name, frozenset(nodes[cause.pattern, cause.culprit])) for cause in common)]


# --- as a document ---------------------------------------------------------------------------------------------------


def _document(report: FleetReport) -> dict[str, Any]:
    sick = report.sick
    return {
        "root": report.place, "engine": report.engine, "headline": report.headline,
        "window": {"from": report.start_us / 1e6, "to": report.end_us / 1e6},
        "nodes": [_node(report, node) for node in report.nodes],
        "sick": len(sick), "healthy": len(report.in_state("healthy")), "blind": [node.node for node in report.blind],
        "not_judged": [{"node": node.node, "why": node.not_judged} for node in report.not_judged],
        "copies": [{"node": node, "of": of} for node, of in sorted(report.copies.items())],
        "diagnosed_now": sorted(report.verdicts),
        "labels_left_out": {
            "nodes": sum(node.labels_left_out > 0 for node in report.nodes),
            "most": max((node.labels_left_out for node in report.nodes), default=0),
        },
        "inventory": None if report.inventory is None else report.inventory.document(report.nodes),
        "incidents": [_incident(incident) for incident in report.incidents],
        "causes": [_cause(cause) for cause in report.causes],
        "by": [_group(group) for group in report.by.groups],
        "course": [_group(group) for group in report.by.course],
        "numbers": [
            {"name": each.name, "noun": each.noun, "role": each.role, "is_time": each.is_time,
             "quarters": [asdict(quarter) for quarter in quarters]}
            for each, quarters in report.by.quarters
        ],
        "tried": report.by.tried, "values_left_out": report.by.left_out, "alpha": ALPHA,
        "units": [{**asdict(share), "significant": share.significant} for share in report.units],
        "arrivals": [_times({**asdict(each), "significant": each.significant}) for each in report.arrivals],
        "onsets": [_times(asdict(each)) for each in report.onsets],
        "clusters": [
            {**asdict(each), "path": list(each.path), "patterns": dict(each.patterns)} for each in report.clusters
        ],
        "forecast": {**asdict(report.outlook), "nodes": [asdict(each) for each in report.outlook.nodes]},
        "damage": [{"node": node, "day": day or None, "what": what} for node, day, what in report.damage],
        "read": {"files": report.files, "bytes": report.size_bytes, "core_seconds": round(report.work_s, 3),
                 "fresh_items": report.fresh},
    }  # fmt: skip


def _times(values: dict[str, Any]) -> dict[str, Any]:
    """Microseconds under their names without the unit, as seconds."""
    return {
        key.removesuffix("_us"): value / 1e6 if key.endswith("_us") and value is not None else value
        for key, value in values.items()
    }


def _node(report: FleetReport, node: NodeFigures) -> dict[str, Any]:
    labels_ = node.labels
    said = {key: labels_.get(key) for key in ("image", "zone", "instance_type")}
    state = report.state(node)
    newest = report.newest.get(node.node)
    ahead_s = max(
        (each for each in (node.ahead_s, None if newest is None else newest.ahead_s) if each is not None), default=None
    )
    why = {"blind": report.why_blind(node), "not_judged": node.not_judged, "copy": report.copies.get(node.node)}
    return {
        **_times(asdict(replace(node, ahead_s=ahead_s))), **said, "sick": state == "sick", "state": state,
        "why": why.get(state), "newest": None if newest is None else newest.at_us / 1e6,
    }  # fmt: skip


def _incident(incident: IncidentFigures) -> dict[str, Any]:
    made = _times(asdict(incident))
    return {**made, "frames": list(incident.frames)}


def _cause(cause: CauseTotal) -> dict[str, Any]:
    return _times(asdict(cause))


def _split(split: Split) -> dict[str, Any]:
    """`below` and `above`: the values of nodes that are nearest to the threshold."""
    return {
        "name": split.variable.name, "role": split.variable.role, "threshold": split.threshold, "below": split.below,
        "above": split.above, "is_above": split.is_above, "is_time": split.variable.is_time,
    }  # fmt: skip


def _group(group: Group) -> dict[str, Any]:
    return {
        "label": group.label, "value": group.value,
        "terms": [{"label": each, "value": value} for each, value in group.terms],
        "text": group.text, "sentence": sentence(group), "spared": group.spared, "not_judged": group.not_judged,
        "because": group.because, "split": None if group.split is None else _split(group.split),
        "cause": group.cause, "nodes": group.nodes, "affected": group.affected, "ratio": round(group.ratio, 4),
        "rest": {"nodes": group.rest_nodes, "affected": group.rest_affected},
        "lift": None if group.lift is None else round(group.lift, 2), "p_value": group.p_value,
        "p_corrected": group.p_corrected, "significant": group.significant,
        "also": [[{"label": each, "value": value} for each, value in terms] for terms in group.also],
        "explained_by": None if group.explained_by is None
        else [{"label": each, "value": value} for each, value in group.explained_by],
    }  # fmt: skip
