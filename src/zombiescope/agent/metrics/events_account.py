"""What happened: restarts of units and containers, lines of the kernel log, spans in which a source was blind."""

from __future__ import annotations

from typing import Any

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Tally
from zombiescope.kernel.log_formats import FORMATS
from zombiescope.recording import schema
from zombiescope.recording.event import Event
from zombiescope.recording.log import Block, LogFrame
from zombiescope.views.events import of_frame

KERNEL_LOG = frozenset({"kmsg", "printk:console", "syslog", "journal"})
CONTAINERS = 8192
SERIOUS = frozenset(one.kind for one in FORMATS if one.severity == "critical")
"""Kinds of lines that alerts go by. They are there from the beginning, with 0: of a counter that appears with 1
Prometheus does not know that it rose."""


class EventsAccount:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        for kind in sorted(SERIOUS):
            tally.add(families.KERNEL_EVENTS, 0, kind)
        self._runs: dict[str, int] = {}
        self._latest: dict[str, str] = {}
        """Container as a person names it -> the id that it had last."""
        self._blind_us: dict[tuple[str, str], int] = {}
        """(source, why) of a gap that goes on -> up to when it is counted: each segment tells it again."""

    def update(self, frame: LogFrame, counted: bool) -> None:
        for block in frame.blocks:
            if block.table is schema.CONTAINERS:
                self._take_containers(block, counted)
            elif block.table is schema.GAPS:
                self._take_gaps(block, counted)
        if counted:
            for event in of_frame(frame):
                self._take_event(event)

    def _take_event(self, event: Event) -> None:
        if event.kind == "unit_restart":
            unit, times = event.fields.get("unit"), event.fields.get("delta")
            self._tally.add(families.UNIT_RESTARTS, times if isinstance(times, int) and times > 0 else 1, str(unit))
        elif event.source in KERNEL_LOG:
            self._tally.add(families.KERNEL_EVENTS, 1, event.kind)

    def _take_containers(self, block: Block, counted: bool) -> None:
        names = ("id", "name", "namespace", "pod", "runs")
        for identity, name, namespace, pod, runs in zip(*(block.column(one) for one in names), strict=True):
            if not identity:
                continue
            shown = _container(identity, name, namespace, pod)
            more = self._more_runs(identity, runs or 0)
            # A runtime that makes a new container for each run (Kubernetes) keeps the name.
            if name and self._latest.get(shown, identity) != identity and identity not in self._runs:
                more += 1
            self._remember(identity, shown, runs or 0)
            if counted and more > 0:
                self._tally.add(families.CONTAINER_RESTARTS, more, shown)

    def _more_runs(self, identity: str, runs: int) -> int:
        before = self._runs.get(identity)
        return max(0, runs - 1) if before is None else max(0, runs - before)

    def _remember(self, identity: str, shown: str, runs: int) -> None:
        for known in (self._runs, self._latest):
            while len(known) >= CONTAINERS:
                known.pop(next(iter(known)))
        self._runs[identity] = max(runs, self._runs.get(identity, 0))
        self._latest[shown] = identity

    def _take_gaps(self, block: Block, counted: bool) -> None:
        names = ("time", "end", "source", "why")
        for from_us, to_us, source, why in zip(*(block.column(one) for one in names), strict=True):
            if from_us is None or to_us is None:
                continue
            key = (source or "?", why or "")
            new_us = to_us - max(from_us, self._blind_us.get(key, 0))
            if len(self._blind_us) > families.SOURCES:
                self._blind_us.pop(next(iter(self._blind_us)))
            self._blind_us[key] = max(to_us, self._blind_us.get(key, 0))
            if counted and new_us > 0:
                self._tally.add(families.GAPS, new_us / 1e6, source or "?")


def _container(identity: str, name: Any, namespace: Any, pod: Any) -> str:
    if namespace and pod:
        return f"{namespace}/{pod}/{name}" if name else f"{namespace}/{pod}"
    return str(name or identity[:12])
