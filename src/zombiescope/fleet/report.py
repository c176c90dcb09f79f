"""What the sick nodes of a fleet share that the healthy ones lack: one answer for terminal, JSON, HTML and page.

A node is sick if it had an incident of at least `least` (warning) in the window. Its labels are those that it had when
it fell ill; a healthy node's are its last ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from zombiescope.base.severity import rank
from zombiescope.fleet import arrivals, clusters, forecast, labels, units
from zombiescope.fleet.arrivals import Arrival, Onset
from zombiescope.fleet.clusters import Cluster
from zombiescope.fleet.exact import ALPHA
from zombiescope.fleet.forecast import Outlook
from zombiescope.fleet.gather import Gathered
from zombiescope.fleet.labels import Comparison, Group, Outcome
from zombiescope.fleet.statistics import IncidentFigures, LabelSpan, NodeFigures
from zombiescope.fleet.units import UnitShare

LEAST_OF_A_CAUSE = 3
"""Nodes that a cause has at least, to be looked for in labels by itself."""
MOST_CAUSES = 8


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

    @property
    def sick(self) -> frozenset[str]:
        return frozenset(incident.node for incident in self.incidents)

    @property
    def worst(self) -> str | None:
        return max((incident.severity for incident in self.incidents), key=rank, default=None)

    @property
    def blind(self) -> list[NodeFigures]:
        """Nodes of which nothing was recorded in the window: neither sick nor healthy."""
        return [node for node in self.nodes if not node.recorded_s and node.node not in self.sick]

    @property
    def headline(self) -> str:
        sick, seen = len(self.sick), len(self.nodes) - len(self.blind)
        if not self.incidents:
            return f"no incident on {seen:,} of {len(self.nodes):,} nodes that were recorded"
        first = f"{sick:,} of {seen:,} nodes are sick"
        found = self.by.found
        if not found:
            return f"{first}; no label explains it better than chance"
        group = found[0]
        where = f"{group.affected:,} of {group.nodes:,} with {group.text}"
        rest = f"{group.rest_affected:,} of {group.rest_nodes:,} others"
        return f"{first}: {group.cause or 'an incident'} on {where}, and on {rest}"

    def document(self) -> dict[str, Any]:
        """As JSON: times in seconds."""
        return _document(self)


def make(gathered: Gathered, engine: str, by: Sequence[str] | None = None, least: str = "warning") -> FleetReport:
    statistics = gathered.statistics
    nodes = statistics.nodes()
    incidents = statistics.incidents(least)
    spans = statistics.label_spans()
    causes = _causes(incidents)
    sick = frozenset(incident.node for incident in incidents)
    seen = [node for node in nodes if node.recorded_s or node.node in sick]
    files, size_bytes, work_s = statistics.read()
    return FleetReport(
        gathered.listing.place, engine, statistics.start_us, statistics.end_us, tuple(nodes), tuple(incidents),
        tuple(causes), labels.compare(_labels_at_onset(seen, incidents, spans), _outcomes(incidents, causes), by),
        tuple(units.compare([node.node for node in seen], sick, statistics.units())),
        tuple(arrivals.arrivals(spans, incidents)),
        tuple(arrivals.onsets(incidents, statistics.start_us, statistics.end_us)),
        tuple(clusters.clusters(incidents)), forecast.outlook(nodes, incidents, statistics.hours()),
        tuple(statistics.damage()), files, size_bytes, work_s, gathered.fresh,
    )  # fmt: skip


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
    return CauseTotal(
        pattern, culprit, len({incident.node for incident in found}), len(found),
        round(sum(incident.job_lost_s for incident in found) / 3600, 4), round(sum(gpu), 2) if gpu else None,
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
        "nodes": [_node(node, node.node in sick) for node in report.nodes],
        "sick": len(sick), "blind": [node.node for node in report.blind],
        "incidents": [_incident(incident) for incident in report.incidents],
        "causes": [_cause(cause) for cause in report.causes],
        "by": [_group(group) for group in report.by.groups],
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


def _node(node: NodeFigures, is_sick: bool) -> dict[str, Any]:
    labels_ = node.labels
    said = {key: labels_.get(key) for key in ("image", "zone", "instance_type")}
    return {**_times(asdict(node)), **said, "sick": is_sick}


def _incident(incident: IncidentFigures) -> dict[str, Any]:
    made = _times(asdict(incident))
    return {**made, "frames": list(incident.frames)}


def _cause(cause: CauseTotal) -> dict[str, Any]:
    return _times(asdict(cause))


def _group(group: Group) -> dict[str, Any]:
    return {
        "label": group.label, "value": group.value,
        "terms": [{"label": each, "value": value} for each, value in group.terms],
        "cause": group.cause, "nodes": group.nodes, "affected": group.affected, "ratio": round(group.ratio, 4),
        "rest": {"nodes": group.rest_nodes, "affected": group.rest_affected},
        "lift": None if group.lift is None else round(group.lift, 2), "p_value": group.p_value,
        "p_corrected": group.p_corrected, "significant": group.significant,
        "also": [[{"label": each, "value": value} for each, value in terms] for terms in group.also],
        "explained_by": None if group.explained_by is None
        else [{"label": each, "value": value} for each, value in group.explained_by],
    }  # fmt: skip
