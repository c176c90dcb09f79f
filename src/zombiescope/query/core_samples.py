"""From ids to names: tasks and stacks of some samples, from the dictionaries of the parts they are in."""

from __future__ import annotations

import numpy as np

from zombiescope.query.segment_names import TASK_COLUMNS, NamedTask
from zombiescope.store.columns import Ints, numbers, take, texts
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import NamedFrame


def samples_of_core(
    recording: Recording, cpu: int, start_us: int, end_us: int
) -> list[tuple[NamedTask | None, list[NamedFrame]]]:
    """Each sample of one core in a (short) window: who, and the stack, outermost frame first."""
    rows = recording.table("samples", start_us, end_us, ("cpu", "task", "stack"))
    rows = take(rows, np.flatnonzero(numbers(rows.column("cpu")) == cpu))
    task_ids, stack_ids = rows.column("task").to_pylist(), rows.column("stack").to_pylist()
    tasks = tasks_by_id(recording, set(task_ids), start_us, end_us)
    stacks = stacks_by_id(recording, set(stack_ids), start_us, end_us)
    return [(tasks.get(task), stacks.get(stack, [])) for task, stack in zip(task_ids, stack_ids, strict=True)]


def tasks_by_id(recording: Recording, ids: set[int | None], start_us: int, end_us: int) -> dict[int, NamedTask]:
    rows = recording.table("tasks", start_us, end_us, TASK_COLUMNS)
    rows = take(rows, np.flatnonzero(_among(numbers(rows.column("task")), ids)))
    columns = [rows.column(name).to_pylist() for name in TASK_COLUMNS]
    return {task: NamedTask(*rest) for task, *rest in zip(*columns, strict=True)}


def stacks_by_id(recording: Recording, ids: set[int | None], start_us: int, end_us: int) -> dict[int, list[NamedFrame]]:
    rows = recording.table("stacks", start_us, end_us)
    rows = take(rows, np.flatnonzero(_among(numbers(rows.column("stack")), ids)))
    stacks = dict(zip(rows.column("stack").to_pylist(), rows.column("frames").to_pylist(), strict=True))
    used = {frame for frames in stacks.values() for frame in frames}
    names = frames_by_id(recording, used, start_us, end_us)
    unknown = NamedFrame("?", "unknown")
    return {stack: [names.get(frame, unknown) for frame in frames] for stack, frames in stacks.items()}


def frames_by_id(
    recording: Recording, ids: set[int | None], start_us: int, end_us: int
) -> dict[int | None, NamedFrame]:
    rows = recording.table("frames", start_us, end_us, ("frame", "name", "kind"))
    rows = take(rows, np.flatnonzero(_among(numbers(rows.column("frame")), ids)))
    frames, names, kinds = (
        rows.column("frame").to_pylist(),
        texts(rows.column("name")),
        texts(rows.column("kind")),
    )
    return {
        frame: NamedFrame(name or "?", kind or "unknown")
        for frame, name, kind in zip(frames, names, kinds, strict=True)
    }


def _among(values: Ints, ids: set[int | None]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return np.isin(values, np.fromiter((number for number in ids if number is not None), np.int64))
