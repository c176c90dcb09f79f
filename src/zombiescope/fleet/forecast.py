"""Nodes that will be sick next: dying memory cgroups that grow, and when they reach what made others sick.

The threshold is the fleet's own: what the nodes had that fell ill of their zombies, when they did (the lower quartile,
so that the early ones count). Where nobody has fallen ill of it yet there is no threshold, and growth is all that is
said. The slope is that of the present boot: a reboot starts over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from zombiescope.base.time import HOUR_US
from zombiescope.fleet.statistics import IncidentFigures, NodeFigures

PATTERNS = frozenset({"zombie-memcg", "memcg-limit-reclaim", "cgroup-litter"})
LEAST_PER_HOUR = 10.0
LEAST_ONSETS = 3
HORIZON_H = 14 * 24.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """`hours`: until it has as many as made others sick; None where that is not known."""

    node: str
    dying: int
    per_hour: float
    hours: float | None


@dataclass(frozen=True, slots=True)
class Outlook:
    threshold: int | None
    learnt_from: int
    """Nodes."""
    nodes: tuple[Forecast, ...]


def outlook(
    nodes: Sequence[NodeFigures],
    incidents: Sequence[IncidentFigures],
    hours: Sequence[tuple[str, int, int | None, int | None]],
) -> Outlook:
    """Nodes that are not sick of it yet and grow; the soonest first."""
    onset: dict[str, int] = {}
    for incident in incidents:
        if incident.pattern in PATTERNS:
            onset[incident.node] = min(onset.get(incident.node, incident.from_us), incident.from_us)
    reached = sorted(
        dying
        for node, hour_us, _, dying in hours
        if dying is not None and node in onset and hour_us <= onset[node] < hour_us + HOUR_US
    )
    threshold = reached[len(reached) // 4] if len(reached) >= LEAST_ONSETS else None
    growing = [made for node in nodes if node.node not in onset and (made := _forecast(node, threshold)) is not None]
    growing.sort(key=lambda each: (each.hours is None, each.hours or 0.0, -each.per_hour, each.node))
    return Outlook(threshold, len(reached), tuple(growing))


def _forecast(node: NodeFigures, threshold: int | None) -> Forecast | None:
    if node.dying is None or node.dying_per_hour is None or node.dying_per_hour < LEAST_PER_HOUR:
        return None
    hours = None if threshold is None else max(0.0, (threshold - node.dying) / node.dying_per_hour)
    if hours is not None and hours > HORIZON_H:
        return None
    return Forecast(node.node, node.dying, round(node.dying_per_hour, 2), None if hours is None else round(hours, 2))
