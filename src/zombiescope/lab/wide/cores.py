"""The tables `cores` and `interrupts`: each core's own figures, moved to where it is on the wide node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.lab.wide.axis import NULL, Axis, Slots
from zombiescope.lab.wide.identity import Identity
from zombiescope.lab.wide.output import Lists, Rows, rows_of
from zombiescope.lab.wide.source import Source
from zombiescope.lab.wide.tile import Room, SeriesNumbers, Tile
from zombiescope.store import columns, schema
from zombiescope.store.columns import Ints

FIGURES = tuple(name for name in schema.CORES.names if name not in ("time", "interval_us", "cpu"))
_LONGEST = FIGURES.index("max_gap_us")
NEVER_US = np.iinfo(np.int64).max
_IN_USE = tuple(f"{mode}_ms" for mode in schema.CPU_MODES if mode not in ("idle", "guest", "guest_nice"))


class CoreFigures:
    """Of one recording: the figures of each core in each slot."""

    def __init__(self, source: Source) -> None:
        self._source = source
        rows = source.table("cores")
        tick = source.axis.tick_of(source.numbers(rows, "time"))
        core = np.searchsorted(source.cpus, source.numbers(rows, "cpu"))
        figures = np.full((len(source.axis), len(source.cpus), len(FIGURES)), NULL)
        for place, name in enumerate(FIGURES):
            figures[tick, core, place] = source.numbers(rows, name)
        self.seen: npt.NDArray[np.bool_] = np.zeros(figures.shape[:2], bool)
        self.seen[tick, core] = True
        self._figures = figures

    @cached_property
    def by_slot(self) -> Ints:
        """[slot, core, figure]; a late tick's longest gap ends in its last slot."""
        slots = self._source.slots
        shared = slots.shared(self._figures)
        longest = self._figures[slots.tick][:, :, _LONGEST]
        ends = (slots.piece == slots.pieces - 1)[:, None]
        shared[:, :, _LONGEST] = np.where(ends | (longest == NULL), longest, 0)
        return shared

    @cached_property
    def _used_ms(self) -> Ints:
        """[slot, core]: time in which the core had something to do or to wait for."""
        places = [FIGURES.index(name) for name in _IN_USE]
        used: Ints = np.maximum(self.by_slot[:, :, places], 0).sum(axis=2)
        return used

    def used_ms(self, tile: Tile, count: int) -> Ints:
        """Of the tile's cores together, in each of the first slots of the wide node."""
        used: Ints = self._used_ms[:, self._ranks(tile)].sum(axis=1)[tile.slots(count)]
        return used

    def _ranks(self, tile: Tile) -> list[int]:
        return [self._source.cpus.index(cpu) for cpu in tile.cores]

    def rows(self, tile: Tile, axis: Axis, wide: Slots, first: int, last: int) -> Rows:
        """The tile's rows of some ticks."""
        begin, end = int(wide.first[first]), int(wide.first[last]) if last < len(axis) else len(wide)
        used = tile.slots(end)[begin:]
        places = wide.first[first:last] - begin
        ranks = self._ranks(tile)
        known = self._without_strange_gaps(self.by_slot[used][:, ranks], tile, begin, end)
        figures = _together(_fitted(known, tile.room(wide, begin, end)), places)
        seen = np.logical_or.reduceat(self.seen[self._source.slots.tick[used]][:, ranks], places, axis=0)
        tick, core = np.nonzero(seen)
        cores = np.array(list(tile.cores.values()), np.int64)
        columns = [axis.end_us[first + tick], axis.length_us[first + tick], cores[core]]
        return Rows(schema.CORES, first + tick, [*columns, *figures[tick, core].T])

    def _without_strange_gaps(self, figures: Ints, tile: Tile, begin: int, end: int) -> Ints:
        """A gap that may have begun before the seconds that stand before it here belongs to others: a recorder that
        begins knows of none, and where a background begins again its own past is not there."""
        if tile.is_fault:
            return figures
        used = tile.slots(end)
        length_us = self._source.slots.length_us[used]
        before_us = np.cumsum(length_us) - length_us
        joints = np.flatnonzero(np.diff(used, prepend=used[0] - 1 if not tile.phase else -1) != 1)
        if not len(joints):
            return figures
        last = np.searchsorted(joints, np.arange(len(used)), "right") - 1
        since_us = np.where(last < 0, NEVER_US, before_us - before_us[joints[np.maximum(last, 0)]])[begin:, None]
        gaps = figures[:, :, _LONGEST]
        figures[:, :, _LONGEST] = np.where(gaps > since_us, NULL, gaps)
        return figures


def _fitted(figures: Ints, room: Room) -> Ints:
    """Less in a slot that is shorter; a gap is no count."""
    if (room == 1).all():
        return figures
    known = figures != NULL
    less = np.rint(np.where(known, figures, 0) * room[:, None, None]).astype(np.int64)
    less[:, :, _LONGEST] = figures[:, :, _LONGEST]
    fitted: Ints = np.where(known, less, NULL)
    return fitted


def _together(figures: Ints, places: Ints) -> Ints:
    """Slots of one tick as one: sums, but the longest of the gaps."""
    known = figures != NULL
    counted = np.where(known, figures, 0)
    sums = np.add.reduceat(counted, places, axis=0)
    sums[:, :, _LONGEST] = np.maximum.reduceat(counted[:, :, _LONGEST], places, axis=0)
    together: Ints = np.where(np.logical_or.reduceat(known, places, axis=0), sums, NULL)
    return together


class InterruptCounts:
    """Of one recording: its table `interrupts`."""

    def __init__(self, source: Source) -> None:
        rows = source.table("interrupts")
        self._time, self._series, self._cpu, self._count = (
            source.numbers(rows, name) for name in ("time", "series", "cpu", "count")
        )

    def rows(self, tile: Tile, numbers: SeriesNumbers, axis: Axis, wide: Slots, first: int, last: int) -> Rows:
        begin, end = int(wide.first[first]), int(wide.first[last]) if last < len(axis) else len(wide)
        chosen, moved = tile.spread(self._time, wide, begin, end)
        core = moved_cores(tile.cores, self._cpu[chosen])
        chosen, moved, core = chosen[core >= 0], moved[core >= 0], core[core >= 0]
        tick = axis.tick_of(moved)
        series = numbers.of(tile)[self._series[chosen]]
        room = tile.room(wide, 0, len(wide))[wide.slot_of(moved)]
        counts = np.rint(self._count[chosen] * room).astype(np.int64)
        return Rows(schema.INTERRUPTS, tick, [axis.end_us[tick], series, core, counts])


def moved_cores(cores: dict[int, int], cpus: Ints) -> Ints:
    """The core of the wide node for each; -1 where it has none."""
    place = np.full(max([*cores, int(cpus.max(initial=0))]) + 1, -1, np.int64)
    place[list(cores)] = list(cores.values())
    found: Ints = np.where(cpus >= 0, place[np.maximum(cpus, 0)], -1)
    return found


# --- samples ----------------------------------------------------------------------------------------------------------
# The table `samples` and what explains it: frames and stacks of the recordings, and tasks of each tile.

_MOVED = ("time", "cpu", "task", "stack", "period")


class Stacks:
    """Of one recording: its samples, frames and stacks, with ids that begin after those of the recordings before."""

    def __init__(self, source: Source, first_frame: int, first_stack: int) -> None:
        rows = source.table("samples", *_MOVED)
        self.time, self.cpu, self.task, stack, self.period = (source.numbers(rows, name) for name in _MOVED)
        self.first_frame, self.first_stack = first_frame, first_stack
        self.stack = np.where(stack == NULL, NULL, stack + first_stack)
        self.tasks = source.rows("tasks")
        frames = source.rows("frames")
        self.frames = [(row["frame"] + first_frame, row["name"], row["module"], row["kind"]) for row in frames]
        stacks = source.table("stacks")
        self.stack_ids = columns.numbers(stacks.column("stack")) + first_stack
        self.stack_frames = _lists(stacks.column("frames"), first_frame)
        self.next_frame = max([first_frame - 1, *(frame[0] for frame in self.frames)]) + 1
        self.next_stack = int(self.stack_ids.max(initial=first_stack - 1)) + 1


def _lists(column: pa.ChunkedArray, first_frame: int) -> Lists:
    pieces = [columns.list_parts(chunk) for chunk in column.chunks]
    lengths = [np.zeros(0, np.int64), *(np.diff(offsets).astype(np.int64) for offsets, _ in pieces)]
    flat = [np.zeros(0, np.int64), *(columns.numbers(elements) + first_frame for _, elements in pieces)]
    return Lists(np.concatenate(lengths), np.concatenate(flat))


@dataclass(frozen=True, slots=True)
class TileTasks:
    first: int
    rows: list[tuple[Any, ...]]
    unsampled: Ints
    """Places of rows of tasks that no sample is of: parents, whose children are."""


def tasks_of(stacks: Stacks, identity: Identity, first: int) -> TileTasks:
    rows = [_task(row, identity, first) for row in stacks.tasks]
    ids = np.array([row["task"] for row in stacks.tasks], np.int64)
    return TileTasks(first, rows, np.flatnonzero(~np.isin(ids, stacks.task)))


def _task(row: dict[str, Any], who: Identity, first: int) -> tuple[Any, ...]:
    changed = {
        "task": row["task"] + first,
        "pid": who.pid(row["pid"]),
        "tid": who.pid(row["tid"]),
        "comm": who.comm(row["comm"]),
        "ppid": who.parent(row["ppid"]),
        "start_ticks": who.start_ticks(row["start_ticks"]),
    }
    return tuple({**row, **changed}[name] for name in schema.TASKS.names)


def task_bases(tiles: Sequence[Tile], stacks: Mapping[int, Stacks]) -> list[int]:
    """What is added to the tasks of each tile: every copy has tasks of its own."""
    lengths = [max([0, *(row["task"] + 1 for row in stacks[id(tile.source)].tasks)]) for tile in tiles]
    return [0, *accumulate(lengths)][: len(tiles)]


def _used_by(kind: str, tick: Ints, stack: Ints, beside: Sequence[Rows], first: int, last: int) -> tuple[Ints, Ints]:
    """The ids of one kind that samples and rows beside them use, each with its tick, in their order."""
    ticks, stacks = [tick], [stack]
    for rows in beside:
        for name in (column.name for column in rows.table.id_columns if column.ids == kind):
            inside = (rows.tick >= first) & (rows.tick < last)
            held = rows.columns[rows.table.names.index(name)]
            numbers = np.array([NULL if one is None else one for one in held], np.int64)
            ticks.append(rows.tick[inside])
            stacks.append(numbers[inside])
    tick, stack = np.concatenate(ticks), np.concatenate(stacks)
    order = np.argsort(tick, kind="stable")
    return tick[order], stack[order]


class NodeSamples:
    """Of the wide node, a segment at a time."""

    def __init__(
        self, tiles: Sequence[Tile], stacks: dict[int, Stacks], identities: Sequence[Identity], axis: Axis, wide: Slots
    ) -> None:
        self._tiles, self._stacks, self._axis, self._wide = tiles, stacks, axis, wide
        self._tasks: list[TileTasks] = []
        for tile, identity, first in zip(tiles, identities, task_bases(tiles, stacks), strict=True):
            self._tasks.append(tasks_of(stacks[id(tile.source)], identity, first))

    def rows(self, first: int, last: int, beside: Sequence[Rows] = ()) -> list[Rows]:
        """Samples of some ticks, and every stack and task at its first use among them; stacks also at that by rows of
        other tables, which stand `beside` the samples."""
        moved = [self._moved(tile, own, first, last) for tile, own in zip(self._tiles, self._tasks, strict=True)]
        tick, time, cpu, task, stack, period = (np.concatenate(column) for column in zip(*moved, strict=True))
        order = np.argsort(time, kind="stable")
        tick, time, cpu, task, stack, period = (column[order] for column in (tick, time, cpu, task, stack, period))
        series = np.full(len(time), NULL)
        samples = Rows(schema.SAMPLES, tick, [time, cpu, task, stack, period, series])
        stacks = self._used_stacks(*_used_by("stack", tick, stack, beside, first, last))
        tasks = self._used_tasks(first, *_used_by("task", tick, task, beside, first, last))
        return [*self._frames(first), *stacks, *tasks, samples]

    def _moved(self, tile: Tile, own: TileTasks, first: int, last: int) -> tuple[Ints, ...]:
        stacks, count = self._stacks[id(tile.source)], len(self._axis)
        if tile.is_fault:  # all of it, also what came before the first tick and after the last
            tick = self._axis.tick_of(stacks.time)
            chosen = np.flatnonzero((tick >= first) & (tick < last))
            moved = stacks.time[chosen]
        else:
            begin, end = int(self._wide.first[first]), int(self._wide.first[last]) if last < count else len(self._wide)
            chosen, moved = tile.spread(stacks.time, self._wide, begin, end)
        cpu = moved_cores(tile.cores, stacks.cpu[chosen])
        kept = cpu >= 0
        chosen, moved, cpu = chosen[kept], moved[kept], cpu[kept]
        task = stacks.task[chosen]
        task = np.where(task == NULL, NULL, task + own.first)
        return self._axis.tick_of(moved), moved, cpu, task, stacks.stack[chosen], stacks.period[chosen]

    def _frames(self, first: int) -> list[Rows]:
        frames = [frame for stacks in self._stacks.values() for frame in stacks.frames]
        return [rows_of(schema.FRAMES, [first] * len(frames), frames)]

    def _used_stacks(self, tick: Ints, stack: Ints) -> list[Rows]:
        used, first_use = np.unique(stack, return_index=True)
        found = []
        for stacks in self._stacks.values():
            order = np.argsort(stacks.stack_ids)
            ids = stacks.stack_ids[order]
            mine = np.isin(used, ids)
            places = order[np.searchsorted(ids, used[mine])]
            if len(places):
                at = tick[first_use[mine]]
                found.append(Rows(schema.STACKS, at, [stacks.stack_ids[places], stacks.stack_frames.take(places)]))
        return found

    def _used_tasks(self, first: int, tick: Ints, task: Ints) -> list[Rows]:
        used, first_use = np.unique(task, return_index=True)
        known = {int(number): int(at) for number, at in zip(used, tick[first_use], strict=True)}
        rows, ticks = [], []
        for own in self._tasks:
            beside = {own.rows[place][0] for place in own.unsampled.tolist()}
            for row in own.rows:
                at = first if row[0] in beside else known.get(row[0], -1)
                if at >= 0:
                    rows.append(row)
                    ticks.append(at)
        return [Rows(schema.TASKS, np.array(ticks, np.int64), list(zip(*rows, strict=True)))] if rows else []
