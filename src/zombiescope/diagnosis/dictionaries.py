"""What the ids in samples and counters stand for, read once for all windows that a diagnosis looks at.

Dictionaries belong to the parts of a recording, and a long window is looked through in twenty places that lie in the
same few parts. Names of series are few and kept of all parts; tasks and stacks only of those that were touched last,
because windows come in the order of time, each with moments before it that it is compared with (usual.py, excess.py),
and an hour of a large node has half a million stacks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from zombiescope.diagnosis.sample_index import TASK_COLUMNS, SampledTask
from zombiescope.node.containers.runtimes import is_claimed, verified_owner
from zombiescope.query import stacks
from zombiescope.query.stacks import Stacks
from zombiescope.store import container_names, schema
from zombiescope.store.part import Part
from zombiescope.store.reader import Recording

SeriesName = tuple[str, str, str | None, str]
"""Source, name, key and kind."""
_SERIES = ("series", "source", "name", "key", "kind")
KEPT = 4
"""A window, the minute before it, just before it, and long before it."""


class Dictionaries:
    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._series: dict[str, dict[int, SeriesName]] = {}
        self._tasks: dict[str, dict[int, SampledTask]] = {}
        self._touched_last: deque[tuple[str, ...]] = deque(maxlen=KEPT)
        self._functions = stacks.Functions()
        self._stacks: dict[tuple[str, ...], Stacks] = {}

    def series(self, start_us: int, end_us: int) -> dict[int, SeriesName]:
        """Those of the parts that a window touches: one that is not among them was not counted there."""
        found: dict[int, SeriesName] = {}
        for part in self._touched(schema.SERIES, start_us, end_us):
            if part.name not in self._series:
                self._series[part.name] = self._read_series(part)
            found |= self._series[part.name]
        return found

    def tasks(self, start_us: int, end_us: int) -> dict[int, SampledTask]:
        """With the names of their containers: only those that were sampled are looked up, however many there were."""
        parts = list(self._touched(schema.TASKS, start_us, end_us))
        self._touched_last.append(tuple(part.name for part in parts))
        kept = {name for names in self._touched_last for name in names}
        self._tasks = {name: tasks for name, tasks in self._tasks.items() if name in kept}
        for part in parts:
            if part.name not in self._tasks:
                self._tasks[part.name] = self._read_tasks(part)
        boxed = [tasks for part in parts if (tasks := self._tasks[part.name])]
        boxes = {task.container for tasks in boxed for task in tasks.values() if task.container}
        if boxes:
            names = container_names.read(self._recording, start_us, end_us, boxes)
            for tasks in boxed:
                _name(tasks, names)
        return {number: task for tasks in boxed for number, task in tasks.items()}

    def stacks(self, start_us: int, end_us: int) -> Stacks:
        """Every stack that a sample of a window may point to."""
        parts = tuple(part.name for part in self._touched(schema.STACKS, start_us, end_us))
        # Of more parts, but in the same order: those that come after are numbered after.
        parts = next((more for more in self._stacks if more[: len(parts)] == parts), parts)
        found = self._stacks.pop(parts, None)
        if found is None:
            while len(self._stacks) >= KEPT:
                self._stacks.pop(next(iter(self._stacks)))  # before the next is made
            found = stacks.load(self._recording, [(start_us, end_us)], self._functions)
        self._stacks[parts] = found  # the last is the one that was used last
        return found

    def _touched(self, table: schema.Table, start_us: int, end_us: int) -> Iterator[Part]:
        return (part for part in self._recording.parts if part.touches(table, start_us, end_us))

    def _read_series(self, part: Part) -> dict[int, SeriesName]:
        return {row[0]: row[1:] for row in self._rows(schema.SERIES, part, _SERIES)}

    def _read_tasks(self, part: Part) -> dict[int, SampledTask]:
        root = self._recording.node.get("cgroup_root")
        node = root if isinstance(root, str) else ""
        rows = self._rows(schema.TASKS, part, ("task", *TASK_COLUMNS))
        return {row[0]: _verified(SampledTask(*row[1:]), node) for row in rows}

    def _rows(self, table: schema.Table, part: Part, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
        for rows in self._recording.batches(table.name, None, None, names, parts=[part]):
            yield from zip(*(rows.column(name).to_pylist() for name in names), strict=True)


def _verified(task: SampledTask, node: str) -> SampledTask:
    """Recorders of before took the innermost container of a path, which a process in the outermost may choose."""
    if not task.container or not task.cgroup or not is_claimed(task.cgroup, node):
        return task
    who = verified_owner(task.cgroup, node)
    return task._replace(container=who.container, pod=who.pod_uid)


def _name(tasks: dict[int, SampledTask], names: container_names.ContainerNames) -> None:
    """In place: most have the name of the last window already."""
    for number, task in tasks.items():
        if task.container or task.pod:
            named = names.of(task.container, task.pod)
            if named != task.named:
                tasks[number] = task._replace(named=named)
