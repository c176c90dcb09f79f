"""From recordings to the recording of a wide node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.kernel.cpu import CpuPlace
from zombiescope.lab.wide import counters as cgroups
from zombiescope.lab.wide import events
from zombiescope.lab.wide.axis import Axis, Slots
from zombiescope.lab.wide.cores import CoreFigures, InterruptCounts, NodeSamples, Stacks, task_bases
from zombiescope.lab.wide.counters import Counters, NodeCounters
from zombiescope.lab.wide.events import rows_at, spread
from zombiescope.lab.wide.identity import Identity, fresh_pids, numbers_after
from zombiescope.lab.wide.output import SEGMENT_US, NodeWriter, Rows, rows_of
from zombiescope.lab.wide.source import Source, WidenError
from zombiescope.lab.wide.tile import SeriesNumbers, Tile, lay_out
from zombiescope.store import schema
from zombiescope.store.columns import Ints
from zombiescope.store.reader import Recording

__all__ = ["Spliced", "WidenError", "widen"]

MOST_CORES = 8192
_BY_SEGMENT = (
    schema.SAMPLES, schema.STACKS, schema.FRAMES, schema.TASKS, schema.SERIES, schema.CORES, schema.INTERRUPTS,
)  # fmt: skip
"""Tables that are made for a segment at a time."""
_OF_THE_FAULT = (schema.COST, schema.WAITING, schema.DISKS, schema.MOUNTS)
"""Of one recorder, and of disks and mounts that the other tiles do not have."""
_PACKAGE_CORES = 64
"""From more cores on, the wide node has two sockets."""


@dataclass(frozen=True, slots=True)
class Spliced:
    """What was written."""

    place: Path
    width: int
    fault_cores: tuple[int, ...]
    tiles: int
    """Of backgrounds."""
    samples: int
    seconds: float


def widen(
    fault: Recording,
    backgrounds: Sequence[Recording],
    width: int,
    directory: Path,
    *,
    at: int | None = None,
    apart_s: float | None = None,
) -> Spliced:
    """Writes a recording of `width` cores into a directory: the fault from core `at` on, the backgrounds in turn on all
    others. Copies of one begin anywhere in it, or at most `apart_s` from each other, as the parts of one job that
    starts and ends at once. Raises WidenError, OSError."""
    if not 0 < width <= MOST_CORES:
        raise WidenError(f"{width} cores", f"name 1 to {MOST_CORES}")
    first = Source(fault)
    sources = [first, *(Source(background) for background in backgrounds)]
    strange = next((one for one in sources if (one.hz, one.interval_us) != (first.hz, first.interval_us)), None)
    if strange is not None:
        own, theirs = (f"{one.hz} Hz every {one.interval_us / 1e6:g} s" for one in (first, strange))
        raise WidenError(f"{fault.store.place} was recorded with {own}, {strange.recording.store.place} with {theirs}")
    return _Splice(lay_out(first, sources[1:], width, at, apart_s), width).write(directory)


class _Splice:
    def __init__(self, tiles: Sequence[Tile], width: int) -> None:
        self._tiles, self._width = tiles, width
        self._fault = tiles[0].source
        self._axis, self._slots = self._fault.axis, self._fault.slots
        self._sources = {id(tile.source): tile.source for tile in tiles}
        self._cores = {key: CoreFigures(source) for key, source in self._sources.items()}
        self._interrupts = {key: InterruptCounts(source) for key, source in self._sources.items()}
        self._stacks = self._stacks_of_all()
        self._identities = _identities(tiles, self._stacks)
        self._numbers = SeriesNumbers()
        self._samples = 0

    def write(self, directory: Path) -> Spliced:
        samples = NodeSamples(self._tiles, self._stacks, self._identities, self._axis, self._slots)
        writer = NodeWriter(directory, self._node(), self._fault.boot_us)
        begins = list(_begins(self._axis.end_us, self._axis.length_us))
        whole = self._whole(begins)
        for first, last in zip(begins, [*begins[1:], len(self._axis)], strict=True):
            sampled = samples.rows(first, last, whole)
            self._samples += len(sampled[-1].tick)
            tables = [self._series(first), *sampled, *self._by_core(first, last), *whole]
            begins_us = int(self._axis.end_us[first] - self._axis.length_us[first])
            if first == 0:
                begins_us = min(begins_us, self._fault.recording.start_us)
            writer.segment(begins_us, self._walls_us()[first:last], first, tables)
        seconds = float(self._axis.length_us.sum()) / 1e6
        cores = tuple(self._tiles[0].cores.values())
        return Spliced(writer.path, self._width, cores, len(self._tiles) - 1, self._samples, seconds)

    def _walls_us(self) -> Ints:
        """When each frame is written; the last one ends the recording where the fault's ends."""
        walls_us = self._axis.end_us.copy()
        walls_us[-1] = max(self._fault.recording.end_us, *walls_us[-2:-1].tolist(), 0)
        return walls_us

    def _stacks_of_all(self) -> dict[int, Stacks]:
        found: dict[int, Stacks] = {}
        frame = stack = 0
        for key, source in self._sources.items():
            found[key] = Stacks(source, frame, stack)
            frame, stack = found[key].next_frame, found[key].next_stack
        return found

    def _whole(self, begins: Sequence[int]) -> list[Rows]:
        """Tables that are small enough to be made for the whole time."""
        tiles, who, axis, wide = self._tiles, self._identities, self._axis, self._slots
        counters = {key: Counters(source, backfill=source is not self._fault) for key, source in self._sources.items()}
        made = {
            schema.COUNTERS: NodeCounters(tiles, counters, self._cores, axis, wide).rows(self._numbers, begins),
            schema.CENSUS: cgroups.census(tiles, axis, wide),
            schema.LEAKS: cgroups.leaks(tiles, who, axis, wide),
            schema.CGROUP_STATS: cgroups.cgroup_stats(tiles, axis, wide),
            schema.EVENTS: events.events(tiles, who, axis, wide),
            schema.CONTAINERS: events.containers(tiles, who, axis, wide),
            schema.GAPS: events.gaps(tiles, who, axis, wide),
            schema.QUEUES: events.queues(tiles, axis, begins),
            schema.GPUS: gpus(tiles, who, axis, wide, begins),
            schema.GPU_PROCESSES: living(schema.GPU_PROCESSES, tiles, who, axis, wide, begins),
            schema.RANKS: living(schema.RANKS, tiles, who, axis, wide, begins),
            schema.GPU_SECONDS: gpu_seconds(tiles, who, axis, wide),
            **{
                table: self._of_every_tile(table)
                for table in (schema.PYTHON, schema.WHOLE_STACKS, schema.STEPS, schema.SCHEDULE, schema.CLOSER_LOOKS)
            },
            **{table: self._of_the_fault(table) for table in _OF_THE_FAULT},
        }
        forgotten = [table.name for table in schema.TABLES if table not in {*made, *_BY_SEGMENT}]
        if forgotten:
            raise WidenError(f"the table {forgotten[0]} cannot be widened", "declare in lab/wide/splice.py how it is")
        return list(made.values())

    def _by_core(self, first: int, last: int) -> list[Rows]:
        found = []
        for tile in self._tiles:
            key = id(tile.source)
            found.append(self._cores[key].rows(tile, self._axis, self._slots, first, last))
            found.append(self._interrupts[key].rows(tile, self._numbers, self._axis, self._slots, first, last))
        return found

    def _series(self, first: int) -> Rows:
        for tile in self._tiles:
            self._numbers.of(tile)
        rows = self._numbers.rows()
        return rows_of(schema.SERIES, [first] * len(rows), rows)

    def _of_the_fault(self, table: schema.Table) -> Rows:
        """What the recorder used, and who waited for what: a node has one recorder, and the fault's disks."""
        rows = self._fault.rows(table.name)
        ticks = self._axis.tick_of(np.array([row["time"] for row in rows], np.int64)).tolist()
        return rows_of(table, ticks, [tuple(row.values()) for row in rows])

    def _of_every_tile(self, table: schema.Table) -> Rows:
        """What was seen of threads, which every tile has its own of."""
        on_a_core, found = bool(table.meant("cpu")), []
        for tile, who in zip(self._tiles, self._identities, strict=True):
            own = [row for row in tile.source.rows(table.name) if not on_a_core or row["cpu"] in tile.cores]
            rows = [(row, row["time"]) for row in own] if tile.is_fault else events.spread(tile, own, self._slots)
            found += [who.row(table, row, at_us) for row, at_us in rows]
        return events.rows_at(table, self._axis, sorted(found, key=lambda row: int(row["time"])))

    def _node(self) -> dict[str, Any]:
        node, others = self._fault.node, [source.node for source in self._sources.values()][1:]
        missing = {str(one.get("source")): one for each in [*others, node] for one in each.get("missing") or ()}
        nics = {name: driver for each in [*others, node] for name, driver in (each.get("nics") or {}).items()}
        onto = [(tile.source.recording.name, list(tile.cores.values())) for tile in self._tiles[1:]]
        about = {
            "cores": list(self._tiles[0].cores.values()),
            "onto": [{"node": name, "cores": cores} for name, cores in onto],
        }
        return {
            **node,
            "node": node.get("node") or self._fault.recording.name,
            "cpus": {"online": list(range(self._width)), "possible": self._width, "topology": _topology(self._width)},
            "missing": list(missing.values()),
            "nics": nics,
            "widened": about,
        }


def _begins(ends_us: Ints, lengths_us: Ints) -> Iterator[int]:
    """The ticks with which segments begin."""
    start_us = None
    for tick, (end_us, length_us) in enumerate(zip(ends_us.tolist(), lengths_us.tolist(), strict=True)):
        if start_us is None or end_us - start_us > SEGMENT_US:
            start_us = end_us - length_us
            yield tick


def _identities(tiles: Sequence[Tile], stacks: Mapping[int, Stacks]) -> list[Identity]:
    """`stacks`: by id of the source, which says where its ids begin."""
    sources = {id(tile.source): tile.source for tile in tiles}
    pids, cards = ({key: one.known(meaning) for key, one in sources.items()} for meaning in ("pid", "gpu"))
    fault = tiles[0]
    fresh = numbers_after(pids[id(fault.source)])
    free = numbers_after({-1, *cards[id(fault.source)]})
    bases = task_bases(tiles, stacks)
    found = [Identity(fault.cores, None, ids={"stack": 0, "frame": 0, "task": 0})]
    for tile, first_task in zip(tiles[1:], bases[1:], strict=True):
        key = id(tile.source)
        found.append(
            Identity(
                tile.cores,
                fresh_pids(pids[key], fresh),
                _ticks(fault, tile),
                gpus={gpu: next(free) for gpu in sorted(cards[key])},
                ids={"stack": stacks[key].first_stack, "frame": stacks[key].first_frame, "task": first_task},
                number=tile.number,
            )
        )
    return found


def _ticks(fault: Tile, tile: Tile) -> int:
    """What is added to when its processes began, in clock ticks; 0 where nobody knows when a machine was booted."""
    boots = fault.source.boot_us, tile.source.boot_us
    if boots[0] is None or boots[1] is None:
        return 0
    up_us = int(fault.source.slots.start_us[0]) - boots[0]
    theirs_us = tile.start_us - boots[1]
    return (up_us - theirs_us) * int(fault.source.node.get("user_hz") or 100) // 1_000_000


def _topology(width: int) -> list[dict[str, Any]]:
    packages = 1 if width <= _PACKAGE_CORES else 2
    places = [CpuPlace(cpu, cpu * packages // width, cpu, (cpu,), cpu * packages // width) for cpu in range(width)]
    return [asdict(place) for place in places]


# --- gpus -------------------------------------------------------------------------------------------------------------
# GPUs on the wide node: each tile brings the cards of its machine, under numbers of their own, with its processes.
#
# What the driver counts since the boot never falls on one card, also where a background begins again.

_CARD = ("uuid", "pci")
_COUNTED = (
    "ecc_corrected", "ecc_uncorrected", "remapped_corrected", "remapped_uncorrected", "nvlink_errors",
    "nvlink_recoveries", "pcie_replays", "pcie_errors",
)  # fmt: skip

_Row = dict[str, Any]


def gpus(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots, begins: Sequence[int]) -> Rows:
    found = list(tiles[0].source.rows("gpus"))
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        highest: dict[tuple[int, str], int] = {}
        for row in _states(schema.GPUS, tile, axis, wide, begins):
            moved = who.row(schema.GPUS, row, row["time"])
            moved |= {name: who.card(row[name]) for name in _CARD}
            found.append(moved | {name: _never_less(highest, moved, name) for name in _COUNTED})
    return rows_at(schema.GPUS, axis, _in_order(found))


def _never_less(highest: dict[tuple[int, str], int], row: _Row, name: str) -> int | None:
    if row[name] is None:
        return None
    key = (row["gpu"], name)
    highest[key] = max(highest.get(key, 0), row[name])
    return highest[key]


def living(
    table: schema.Table,
    tiles: Sequence[Tile],
    identities: Sequence[Identity],
    axis: Axis,
    wide: Slots,
    begins: Sequence[int],
) -> Rows:
    """Processes that are said again in every segment until they end."""
    found = list(tiles[0].source.rows(table.name))
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        states = _states(table, tile, axis, wide, begins)
        found += [who.row(table, row, row["time"]) for row in states]
    return rows_at(table, axis, _in_order(found))


def gpu_seconds(tiles: Sequence[Tile], identities: Sequence[Identity], axis: Axis, wide: Slots) -> Rows:
    """Rows are of whole seconds of Unix time: of two that come to lie in one, the later one is taken."""
    found = list(tiles[0].source.rows("gpu_seconds"))
    for tile, who in zip(tiles[1:], identities[1:], strict=True):
        own: dict[tuple[int, int], _Row] = {}
        for row, at_us in spread(tile, tile.source.rows("gpu_seconds"), wide):
            second_us = -(-at_us // SECOND_US) * SECOND_US
            own[row["gpu"], second_us] = who.row(schema.GPU_SECONDS, row, second_us)
        found += own.values()
    return rows_at(schema.GPU_SECONDS, axis, _in_order(found))


def _states(table: schema.Table, tile: Tile, axis: Axis, wide: Slots, begins: Sequence[int]) -> Iterator[_Row]:
    """Rows of a table of states at their new times, and where a segment begins all that hold there."""
    rows = tile.source.rows(table.name)
    current: dict[tuple[Any, ...], _Row] = {}
    for row in rows:
        if row["time"] <= tile.start_us:
            _hold(current, table, row)
        else:
            current.setdefault(_key(table, row), row)
    segments = [int(axis.end_us[tick]) for tick in begins]
    for row, at_us in spread(tile, rows, wide):
        while segments and segments[0] <= at_us:
            begins_us = segments.pop(0)
            yield from ({**held, "time": begins_us} for held in current.values())
        _hold(current, table, row)
        yield {**row, "time": at_us}
    for begins_us in segments:
        yield from ({**held, "time": begins_us} for held in current.values())


def _key(table: schema.Table, row: _Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in table.holds_by)


def _hold(current: dict[tuple[Any, ...], _Row], table: schema.Table, row: _Row) -> None:
    if row.get("ended"):
        current.pop(_key(table, row), None)
    else:
        current[_key(table, row)] = row


def _in_order(rows: list[_Row]) -> list[_Row]:
    return sorted(rows, key=lambda row: int(row["time"]))
