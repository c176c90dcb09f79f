"""What happened: restarts of units and containers, lines of the kernel log, spans in which a source was blind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Tally
from zombiescope.kernel.log_formats import FORMATS
from zombiescope.query.events import of_frame
from zombiescope.store import schema
from zombiescope.store.event import Event
from zombiescope.store.log import Block, LogFrame

KERNEL_LOG = frozenset({"kmsg", "printk:console", "syslog", "journal"})
CONTAINERS = 8192
SERIOUS = frozenset(one.kind for one in FORMATS if one.severity == "critical")
"""Kinds of lines that alerts go by. They are there from the beginning, with 0: of a counter that appears with 1
Prometheus does not know that it rose."""


Shown = tuple[str, str, str]
"""Namespace, pod and container, as a person names it; the first two are empty outside of Kubernetes."""


class EventsAccount:
    def __init__(self, tally: Tally, since_us: int = 0) -> None:
        """What was before `since_us` was counted by another process, or before the agent began."""
        self._tally, self._since_us = tally, since_us
        for kind in sorted(SERIOUS):
            tally.add(families.KERNEL_EVENTS, 0, kind)
        self._runs: dict[str, int] = {}
        self._latest: dict[Shown, str] = {}
        """Container as a person names it -> the id that it had last."""
        self._blind_us: dict[str, tuple[int, int]] = {}
        """Source -> the span of its newest gap that is counted: each segment reports a gap that goes on again."""
        self._missing_us: dict[str, int] = {}
        """Source that is missing now -> since when."""

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
                self._tally.add(families.CONTAINER_RESTARTS, more, *shown)

    def _more_runs(self, identity: str, runs: int) -> int:
        before = self._runs.get(identity)
        return max(0, runs - 1) if before is None else max(0, runs - before)

    def _remember(self, identity: str, shown: Shown, runs: int) -> None:
        while len(self._runs) >= CONTAINERS:
            self._runs.pop(next(iter(self._runs)))
        while len(self._latest) >= CONTAINERS:
            self._latest.pop(next(iter(self._latest)))
        self._runs[identity] = max(runs, self._runs.get(identity, 0))
        self._latest[shown] = identity

    def miss(self, sources: Iterable[str], now_us: int) -> None:
        """They are missing now. The recorder reports a gap when it is over, or with the segment: that is minutes."""
        missing = set(sources)
        for source in missing:
            since_us = self._missing_us.setdefault(source, now_us)
            self._tally.add(families.GAPS, self._uncounted_s(source, since_us, now_us), source)
        self._missing_us = {source: at_us for source, at_us in self._missing_us.items() if source in missing}

    def _take_gaps(self, block: Block, counted: bool) -> None:
        for from_us, to_us, source in zip(*(block.column(one) for one in ("time", "end", "source")), strict=True):
            if from_us is None or to_us is None:
                continue
            seconds = self._uncounted_s(source or "?", from_us, to_us)
            if counted and seconds > 0:
                self._tally.add(families.GAPS, seconds, source or "?")

    def _uncounted_s(self, source: str, from_us: int, to_us: int) -> float:
        """How much of this span is not counted yet."""
        from_us, to_us = max(from_us, self._since_us), max(to_us, self._since_us)
        low_us, high_us = self._blind_us.pop(source, (from_us, from_us))
        if from_us > high_us:
            low_us = high_us = from_us
        new_us = max(0, low_us - from_us) + max(0, to_us - high_us)
        while len(self._blind_us) > families.SOURCES:
            self._blind_us.pop(next(iter(self._blind_us)))
        self._blind_us[source] = (min(low_us, from_us), max(high_us, to_us))
        return new_us / 1e6


def _container(identity: str, name: Any, namespace: Any, pod: Any) -> Shown:
    if namespace and pod:
        return (str(namespace), str(pod), str(name or ""))
    return ("", "", str(name or identity[:12]))
