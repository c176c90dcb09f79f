"""The samples of a selection as every format needs them: with their task and their event; stacks with the same frames
are one.

A part of a recording has its own ids, so a thread that ran all day has one task id per part, and a stack likewise. Here
tasks and stacks that are equal have one number. Samples come part by part, so memory does not grow with the window;
what is kept are the dictionaries.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zombiescope.query.groups import groups
from zombiescope.query.levels import Level
from zombiescope.query.selection import Selection
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store import columns, container_names
from zombiescope.store.columns import Ints
from zombiescope.store.container_names import NAMELESS, NO_NAMES, ContainerName, ContainerNames, split_tag
from zombiescope.store.sample_event import EVENT_SOURCE, SampleEvent

DEFAULT_EVENT = "cpu-clock"
SECOND_NS = 1_000_000_000

_WORKLOADS = frozenset({"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet"})
"""Owners of a pod for which the semantic conventions have an attribute."""
_TASK_COLUMNS = ("pid", "tid", "comm", "unit", "container", "pod")


class ProfileTask(NamedTuple):
    """Who a sample belongs to; None is not known."""

    pid: int | None = None
    tid: int | None = None
    comm: str | None = None
    unit: str | None = None
    container: str | None = None
    pod: str | None = None
    named: ContainerName = NAMELESS
    """Its container's name, image and pod, where the recording knows them."""
    gpus: str | None = None
    """The numbers of the GPUs on which its process was: "0,3"."""

    @property
    def owner(self) -> str | None:
        """Its unit, or its container as people call it."""
        names = ContainerNames({self.container: self.named} if self.container else {}, {})
        found = names.owner(self.unit, self.container)
        return None if found is None else found[0]

    @property
    def service(self) -> str | None:
        """What a profile store calls it: the workload that owns the pod, else the container, else the unit."""
        if self.container:
            return (self.named.owner or "").partition("/")[2] or self.named.label or self.container
        return self.unit

    @property
    def container_labels(self) -> dict[str, str | tuple[str, ...]]:
        """What is known of its container, by the names of OpenTelemetry's semantic conventions."""
        image, tag = split_tag(self.named.image or "")
        labels: dict[str, str | tuple[str, ...] | None] = {
            "container.name": self.named.name,
            "container.image.name": image,
            "container.image.tags": (tag,) if tag else None,
            "k8s.pod.name": self.named.pod,
            "k8s.namespace.name": self.named.namespace,
        }
        kind, _, owner = (self.named.owner or "").partition("/")
        if kind in _WORKLOADS:
            labels[f"k8s.{kind.lower()}.name"] = owner
        return {key: value for key, value in labels.items() if value}


NOBODY = ProfileTask()


@dataclass(frozen=True, slots=True)
class SampleBatch:
    """Samples of one part, in the order of time. `cpu` and `period` are -1 where they are not known."""

    time_us: Ints
    cpu: Ints
    task: Ints
    """Position in ExportSamples.tasks."""
    stack: Ints
    """Position in ExportSamples.stacks, whose ids differ from part to part; numbers() says which are equal."""
    period: Ints
    event: Ints
    """Position in ExportSamples.events."""

    def __len__(self) -> int:
        return len(self.time_us)

    def cut(self, keep: Any) -> SampleBatch:
        """Only the rows that a mask or a slice names."""
        return SampleBatch(*(getattr(self, name)[keep] for name in self.__slots__))

    def joined(self, other: SampleBatch) -> SampleBatch:
        return SampleBatch(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in self.__slots__))


class ExportSamples:
    """The samples of one selection, for a format to write."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.node = selection.recording.node
        self.name = selection.recording.name
        self._number_of: dict[bytes, int] = {}
        self._numbers = np.full(self.stacks.count, -1, np.int64)
        self._rows: list[int] = []
        self._tasks: dict[ProfileTask, int] = {}
        self._task_of = self._read_tasks()
        self._events: dict[SampleEvent, int] = {SampleEvent(str(self.node.get("event") or DEFAULT_EVENT)): 0}
        self._event_of = self._read_events()
        self.count = 0
        """Samples that were handed out so far, weights included."""

    # --- what the numbers mean ---------------------------------------------------------------------------------------

    @property
    def stacks(self) -> Stacks:
        return self.selection.stacks

    @cached_property
    def tasks(self) -> tuple[ProfileTask, ...]:
        return tuple(self._tasks)

    @cached_property
    def events(self) -> tuple[SampleEvent, ...]:
        return tuple(self._events)

    @cached_property
    def period_ns(self) -> int | None:
        """The time that one sample of the recorder's clock stands for; None where the rate is not known."""
        hz = self.node.get("hz")
        return round(SECOND_NS / hz) if isinstance(hz, int | float) and hz > 0 else None

    def _read_tasks(self) -> Ints:
        """Task id -> position in `tasks`; a later row of the same task knows more and replaces the earlier one."""
        recording = self.selection.recording
        rows = recording.table("tasks", *self.selection.span, ("task", *_TASK_COLUMNS))
        ids = columns.numbers(rows.column("task"))
        task_of = np.zeros(int(ids.max(initial=-1)) + 1, np.int64)
        latest: dict[int, ProfileTask] = {}
        values = [rows.column(name).to_pylist() for name in _TASK_COLUMNS]
        boxes = {identity for identity in values[_TASK_COLUMNS.index("container")] if identity}
        names = container_names.read(recording, *self.selection.span, boxes) if boxes else NO_NAMES
        gpus = self._read_gpus()
        for task, *known in zip(ids.tolist(), *values, strict=True):
            if task >= 0:
                who = ProfileTask(*known)
                latest[task] = who._replace(named=names.of(who.container, who.pod), gpus=gpus.get(who.pid))
        self._tasks[NOBODY] = 0
        for task, who in latest.items():
            task_of[task] = self._tasks.setdefault(who, len(self._tasks))
        return task_of

    def owners(self, by: Level) -> list[str]:
        """Whose each of `tasks` is, named as in the flame graph and the table of who ran."""
        found = groups(self.selection, by)
        names = [found.all[0].name] * len(self.tasks)
        for task, place in enumerate(self._task_of.tolist()):
            if place:
                names[place] = found.all[int(found.of_task[task])].name
        return names

    def _read_gpus(self) -> dict[int | None, str]:
        """Process -> its GPUs. A pid that two processes had in one window counts for both: it is a label."""
        rows = self.selection.recording.table("gpu_processes", *self.selection.span, ("pid", "gpu"))
        found: dict[int, set[int]] = {}
        numbers = (columns.numbers(rows.column(name)).tolist() for name in ("pid", "gpu"))
        for pid, gpu in zip(*numbers, strict=True):
            found.setdefault(pid, set()).add(gpu)
        return {pid: ",".join(map(str, sorted(held))) for pid, held in found.items()}

    def _read_events(self) -> Ints:
        """Series id -> position in `events`."""
        rows = self.selection.recording.table("series", *self.selection.span, ("series", "source", "name", "kind"))
        ids = columns.numbers(rows.column("series"))
        event_of = np.zeros(int(ids.max(initial=-1)) + 1, np.int64)
        texts = (columns.texts(rows.column(name)) for name in ("source", "name", "kind"))
        for series, source, name, kind in zip(ids.tolist(), *texts, strict=True):
            if series >= 0 and source == EVENT_SOURCE:
                event = SampleEvent.stored(name or DEFAULT_EVENT, kind)
                event_of[series] = self._events.setdefault(event, len(self._events))
        return event_of

    # --- samples -----------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[SampleBatch]:
        """Every selected sample once, part by part; within a part in the order of time."""
        for time_us, cpu, task, stack, period, series in self.selection.columns(
            "time", "cpu", "task", "stack", "period", "series"
        ):
            batch = SampleBatch(
                time_us,
                cpu,
                _looked_up(self._task_of, task),
                self.stacks.rows_of(stack),
                period,
                _looked_up(self._event_of, series),
            )
            if bool(np.any(time_us[1:] < time_us[:-1])):
                batch = batch.cut(np.argsort(time_us, kind="stable"))
            self.count += int(self.weights(batch).sum())
            yield batch

    def everything(self) -> SampleBatch:
        """All samples at once in the order of time, for a format that groups them over parts; 48 bytes each. In `stack`
        are the numbers of numbers()."""
        batches = list(self.batches())
        nothing = np.zeros(0, np.int64)
        joined = SampleBatch(
            *(np.concatenate([nothing, *(getattr(batch, name) for batch in batches)]) for name in SampleBatch.__slots__)
        )
        rows = joined.cut(np.argsort(joined.time_us, kind="stable"))
        return replace(rows, stack=self.numbers(rows.stack))

    def weights(self, batch: SampleBatch) -> Ints:
        """How many samples each row stands for."""
        weighted = np.fromiter((event.weighted for event in self.events), bool, len(self.events))
        if not weighted.any():
            return np.ones(len(batch), np.int64)
        return np.where(weighted[batch.event] & (batch.period >= 0), batch.period, 1)

    def periods(self, batch: SampleBatch) -> Ints:
        """What each sample stands for in the unit of its event: nanoseconds of CPU for a clock. -1 is not known."""
        clocks = np.fromiter((event.is_clock for event in self.events), bool, len(self.events))
        return np.where((batch.period < 0) & clocks[batch.event], self.period_ns or -1, batch.period)

    # --- stacks ------------------------------------------------------------------------------------------------------

    def numbers(self, rows: Ints) -> Ints:
        """Stacks by number, equal ones with the same; numbers count from 0 in the order of their first use."""
        found = self._numbers[rows]
        if (found < 0).any():
            flat, starts, ends = self.stacks.flat, self.stacks.starts, self.stacks.ends
            for row in np.unique(rows[found < 0]).tolist():
                key = flat[starts[row] : ends[row]].tobytes()
                number = self._number_of.setdefault(key, len(self._number_of))
                if number == len(self._rows):
                    self._rows.append(row)
                self._numbers[row] = number
            found = self._numbers[rows]
        return found

    @property
    def distinct(self) -> int:
        """How many stacks have a number so far."""
        return len(self._rows)

    def functions(self, number: int) -> list[int]:
        """The stack with this number as positions in stacks.functions, outermost first."""
        row = self._rows[number]
        found: list[int] = self.stacks.flat[self.stacks.starts[row] : self.stacks.ends[row]].tolist()
        return found


def _looked_up(table: Ints, ids: Ints) -> Ints:
    """table[id], and 0 for what is not known."""
    known = (ids >= 0) & (ids < len(table))
    return np.where(known, table[np.where(known, ids, 0)], 0) if len(table) else np.zeros(len(ids), np.int64)


def module_of(function: Function) -> str:
    """The module for a reader of a profile: the kernel has one too, under the name that perf gives it."""
    if function.kind == "kernel":
        return "[kernel.kallsyms]"
    if function.kind == "module":
        return f"[{(function.module or '?').strip('[]')}]"
    return function.module or ""
