"""Which samples of a recording are looked at: a window, and filters.

Filters are resolved to the ids of tasks and stacks first, once; what is done for each sample is then a look-up in
an array. Samples come part by part, so that memory does not grow with the window.

A filter keeps whole samples and never cuts a stack:
    cpus, pids, tids   the sample was taken there
    comms, units       the task's name or unit matches one of the patterns (`*` and `?` as in a shell)
    containers         the id begins with what was given, or its name or image matches
    pods               the pod's name, namespace/name or uid matches
    images             the image matches: all of it or its end, with or without the tag
    mode               "kernel": the sample was taken inside the kernel; "user": outside of it
    match, also        a regular expression that is found in the name of at least one frame; of both, each in some frame
    event              samples of this event; an import may hold several, and then it is the first one of them
    python             true: only samples of which is known what their thread did in Python; false: without that, the
                       machine's stacks as they were taken; otherwise with Python functions where they are known
    idle               samples of cores that had nothing to do, which an import keeps, are left out unless this is set
Within one filter any value will do; of several filters all must hold. A sample whose task is not known passes no
filter on tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import numpy as np
import pyarrow as pa

from zombiescope.query import python_frames
from zombiescope.query.expression import Expression, found_in
from zombiescope.query.python_frames import Looks
from zombiescope.query.stacks import Span, Stacks
from zombiescope.query.whole_frames import Copies
from zombiescope.store import columns, container_names, schema
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.container_names import fits_container, fits_image, fits_pod
from zombiescope.store.parquet_part import ParquetPart
from zombiescope.store.part import Part
from zombiescope.store.reader import Recording
from zombiescope.store.sample_event import EVENT_SOURCE

Mode = Literal["kernel", "user"]


@dataclass(frozen=True, slots=True)
class Filters:
    cpus: frozenset[int] = frozenset()
    pids: frozenset[int] = frozenset()
    tids: frozenset[int] = frozenset()
    comms: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    containers: tuple[str, ...] = ()
    pods: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    mode: Mode | None = None
    match: Expression | None = None
    event: str | None = None
    idle: bool = False
    python: bool | None = None
    every_event: bool = False
    """All events of an import, for whoever distinguishes them."""
    also: Expression | None = None

    @property
    def on_tasks(self) -> bool:
        return bool(self.pids or self.tids or self.comms or self.units or self.on_containers)

    @property
    def on_containers(self) -> bool:
        return bool(self.containers or self.pods or self.images)

    @property
    def on_stacks(self) -> bool:
        return self.mode is not None or self.match is not None or self.also is not None or self.python is True


EVERYTHING = Filters()


@dataclass(frozen=True, slots=True)
class Rows:
    """Selected samples of one part, column by column; -1 is a stack or a core that is not known."""

    time_us: Ints
    cpu: Ints
    stack: Ints

    def __len__(self) -> int:
        return len(self.time_us)


class Selection:
    """The samples of one window that pass the filters. Nothing is read before it is asked for."""

    def __init__(
        self,
        recording: Recording,
        start_us: int,
        end_us: int,
        filters: Filters = EVERYTHING,
        known: Stacks | None = None,
    ) -> None:
        self.recording = recording
        self.start_us = start_us
        self.end_us = end_us
        self.filters = filters
        self._stacks = known

    @property
    def span(self) -> Span:
        return self.start_us, self.end_us

    @property
    def stacks(self) -> Stacks:
        if self._stacks is None:
            self._stacks = python_frames.load(self.recording, [self.span])
        return self._stacks

    def any_at(self, at_us: int) -> bool:
        """Whether a sample, selected or not, was taken in this microsecond."""
        return any(len(rows) for rows in self.recording.batches("samples", at_us, at_us + 1, ("time",)))

    def batches(self) -> Iterator[Rows]:
        """The selected samples, part by part; within a part in the order of time, or core by core."""
        for time_us, cpu, stack in self.columns("time", "cpu", "stack"):
            yield Rows(time_us, cpu, stack)

    def within(self, start_us: int, end_us: int) -> Selection:
        """The same filters in a part of the window."""
        return Selection(self.recording, start_us, end_us, self.filters, self._stacks)

    def columns(self, *names: str, parts: Sequence[Part] | None = None) -> Iterator[tuple[Ints, ...]]:
        """Only these columns of the selected samples, part by part: what is not asked for is not read from disk."""
        keeps = self._keeps()
        read = {*names, *keeps}
        looks = self.looks if "stack" in read else None
        if looks is not None:
            read |= {"time", "task"}
        for batch in self.recording.batches("samples", self.start_us, self.end_us, sorted(read), parts=parts):
            values = {name: columns.ids(batch.column(name)) for name in read}
            if looks is not None:
                values["stack"] = looks.ids(values["time"], values["task"], values["stack"])
            kept = np.ones(len(batch), bool)
            for name, keep in keeps.items():
                kept &= keep(values[name])
            if kept.all():
                yield tuple(values[name] for name in names)
            elif kept.any():
                yield tuple(values[name][kept] for name in names)

    def _keeps(self) -> dict[str, Callable[[Ints], Mask]]:
        """Column -> which of its values pass."""
        keeps: dict[str, Callable[[Ints], Mask]] = {}
        if self.filters.cpus:
            cpus = sorted(self.filters.cpus)
            keeps["cpu"] = lambda cpu: np.isin(cpu, cpus)
        if self.filters.on_tasks:
            tasks = _tasks(self.recording, self.span, self.filters)
            keeps["task"] = lambda task: _holds(tasks, task)
        imported = ImportFacts.of(self.recording)
        if self.filters.on_stacks or (imported.idle and not self.filters.idle):
            wanted = _wanted_stacks(self.stacks, self.filters)
            keeps["stack"] = lambda stack: np.asarray(wanted[self.stacks.rows_of(stack)], bool)
        event = self.filters.event or (None if self.filters.every_event else imported.event)
        if event is not None:
            series = _series(self.recording, self.span, event)
            keeps["series"] = lambda ids: _holds(series, ids)
        return keeps

    @property
    def looks(self) -> Looks | Copies | None:
        """Which samples have completed stacks, or Python functions on them unless those are not wanted."""
        looks = self.stacks.looks
        return looks.base.looks if self.filters.python is False and isinstance(looks, Looks) else looks

    @property
    def countable(self) -> bool:
        """Whether every sample of the window counts once, as summaries count them; filters on stacks aside."""
        asked = self.filters.cpus or self.filters.on_tasks or self.filters.event
        return not asked and "imported" not in self.recording.node

    def counts(self) -> Ints:
        """How often each stack of `stacks` was sampled."""
        total = np.zeros(self.stacks.count, np.int64)
        if ImportFacts.of(self.recording).weighted:
            for stack, weight in self.columns("stack", "period"):
                np.add.at(total, self.stacks.rows_of(stack), weight)
            return total
        rest: list[Part] = []
        for part in self.recording.parts:
            summary = self._summary(part)
            if summary is None:
                rest.append(part)
            else:
                rows = self.stacks.rows_of(columns.ids(summary.column("stack")))
                np.add.at(total, rows, columns.numbers(summary.column("samples")))
        if self.filters.on_stacks:
            total[~_wanted_stacks(self.stacks, self.filters)] = 0
        for (stack,) in self.columns("stack", parts=rest):
            ids, samples = _tally(stack)
            np.add.at(total, self.stacks.rows_of(ids), samples)
        return total

    def _summary(self, part: Part) -> pa.Table | None:
        """How often a part that is wholly in the window sampled each stack, if it says so."""
        if not self.countable or not isinstance(part, ParquetPart):
            return None
        times = part.span_of(schema.SAMPLES)
        if times is None or times[0] < self.start_us or times[1] >= self.end_us:
            return None
        if self.looks is not None and (part.count(schema.PYTHON) or part.count(schema.WHOLE_STACKS)):
            return None
        return self.recording.summary(part, "stack_counts")


@dataclass(frozen=True, slots=True)
class ImportFacts:
    """What node.json says of a recording that was imported; a recording of our own has none of it."""

    events: tuple[str, ...] = ()
    weighted: bool = False
    """A row stands for as many samples as its period says."""
    idle: bool = False
    """Samples of idle cores may be among the others."""

    @property
    def event(self) -> str | None:
        """The one that is shown when nobody names one."""
        return self.events[0] if len(self.events) > 1 else None

    @classmethod
    def of(cls, recording: Recording) -> ImportFacts:
        said = recording.node.get("imported")
        if not isinstance(said, dict):
            return cls()
        events = said.get("events")
        names = tuple(str(name) for name in events) if isinstance(events, list) else ()
        return cls(names, bool(said.get("weighted")), True)


def _tally(ids: Ints) -> tuple[Ints, Ints]:
    """The distinct ids, -1 among them, and how often each is there."""
    if not len(ids):
        return ids, ids
    low = int(ids.min())
    counted = np.bincount(ids - low)
    there = np.flatnonzero(counted)
    return there + low, counted[there]


def _holds(mask: Mask, ids: Ints) -> Mask:
    """mask[id], false for ids beyond it."""
    known = (ids >= 0) & (ids < len(mask))
    held = np.zeros(len(ids), bool)
    held[known] = mask[ids[known]]
    return held


def _wanted_stacks(known: Stacks, filters: Filters) -> Mask:
    keep = np.ones(known.count, bool)
    for expression in (filters.match, filters.also):
        if expression is not None:
            keep &= known.where(found_in(expression, [function.name for function in known.functions]))
    if filters.mode is not None:
        keep &= known.in_kernel() == (filters.mode == "kernel")
        keep[-1] = False  # a sample without a stack was taken who knows where
    if not filters.idle:
        keep &= ~known.idle()
    if filters.python:
        keep &= python_frames.has_python(known)
    return keep


def _series(recording: Recording, span: Span, event: str) -> Mask:
    """Series id -> whether it is this event."""
    rows = recording.table("series", *span, ("series", "source", "name"))
    ids = columns.numbers(rows.column("series"))
    named = zip(columns.texts(rows.column("source")), columns.texts(rows.column("name")), strict=True)
    passes = np.zeros(int(ids.max(initial=-1)) + 1, bool)
    passes[ids] = [source == EVENT_SOURCE and name == event for source, name in named]
    return passes


def _tasks(recording: Recording, span: Span, filters: Filters) -> Mask:
    """Task id -> whether it passes. A later row of the same task knows more and replaces the earlier one."""
    rows = recording.table("tasks", *span, ("task", "pid", "tid", "comm", "unit", "container", "pod"))
    ids = columns.numbers(rows.column("task"))
    keep = np.ones(len(rows), bool)
    for name, wanted in (("pid", filters.pids), ("tid", filters.tids)):
        if wanted:
            keep &= np.isin(columns.ids(rows.column(name)), sorted(wanted))
    for name, patterns, fits in (
        ("comm", filters.comms, fnmatchcase),
        ("unit", filters.units, fnmatchcase),
    ):
        if patterns:
            keep &= _fitting(columns.texts(rows.column(name)), patterns, fits)
    if filters.on_containers:
        keep &= _contained(recording, span, rows, filters)
    passes = np.zeros(int(ids.max(initial=-1)) + 1, bool)
    known = ids >= 0
    passes[ids[known]] = keep[known]
    return passes


def pids_of(recording: Recording, span: Span, filters: Filters) -> frozenset[int]:
    """The processes of the tasks that pass."""
    passes = _tasks(recording, span, filters)
    rows = recording.table("tasks", *span, ("task", "pid"))
    kept = _holds(passes, columns.ids(rows.column("task")))
    return frozenset(columns.ids(rows.column("pid"))[kept].tolist()) - {-1}


def _fitting(texts: list[str | None], patterns: tuple[str, ...], fits: Callable[[str, str], bool]) -> Mask:
    verdict = {text: text is not None and any(fits(text, each) for each in patterns) for text in set(texts)}
    return np.fromiter((verdict[text] for text in texts), bool, len(texts))


def _contained(recording: Recording, span: Span, rows: pa.Table, filters: Filters) -> Mask:
    """The tasks whose container, pod and image pass."""
    pairs = list(zip(columns.texts(rows.column("container")), columns.texts(rows.column("pod")), strict=True))
    names = container_names.read(recording, *span, {container for container, _ in pairs if container})

    def passes(container: str | None, pod: str | None) -> bool:
        known = names.of(container, pod)
        checks = (
            (filters.containers, lambda text: bool(container) and fits_container(container or "", known, text)),
            (filters.pods, lambda text: fits_pod(pod or "", known, text)),
            (filters.images, lambda text: fits_image(known, text)),
        )
        return all(not wanted or any(map(fits, wanted)) for wanted, fits in checks)

    verdict = {pair: passes(*pair) for pair in set(pairs)}
    return np.fromiter((verdict[pair] for pair in pairs), bool, len(pairs))
