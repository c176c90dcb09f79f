"""Recorded seconds of a healthy load, laid end to end until they are an hour.

Nobody can wait for an hour of every load at every width, and a doctor that is wrong once in an hour is wrong all day.
A recording is written again and again, each turn as long after the one before as it lasted: times and both clocks go
on, and so do numbers that count from the start of the recorder (memory cgroups, who is charged with them). Whoever was
there from the beginning of the recording to its end is the same process or container in every turn; all others are new
ones, with pids and ids of their own, started as long after those of the turn before.

What it cannot show is what takes longer than the recording: a leak, a cache that fills up, a load that changes. Where
a turn ends and the next begins, levels jump back to where they were, and a job that ended begins again.
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from zombiescope.store import columns, layout, schema
from zombiescope.store.log import Block, LogFrame, SegmentReader, encode_columns
from zombiescope.store.reader import Recording
from zombiescope.store.segment_writer import SegmentWriter

SUMS: Mapping[str, tuple[str, ...]] = {
    "census": ("created", "removed", "released", "lost"),
    "leaks": ("created", "removed", "released"),
}
"""Numbers that only grow, and what they are counted for."""
_BY = {"census": "hierarchy", "leaks": "path"}
ONCE = ("recorder", "mark", "sysfs")
"""Sources of events that happen once, whatever is repeated."""
_THERE = 4
"""Who is seen in the first and in the last quarter of a recording was there all the time."""
_PIDS = ("pid", "tid", "ppid")


class Repetition:
    """Of a recording whose log holds all of it, as `widen` writes one."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._place = Path(recording.store.place) / recording.prefix
        self._start_us = recording.start_us
        self.seconds = (recording.end_us - recording.start_us) / 1e6
        """Of one turn."""
        self._growth = {name: self._grown(name) for name in SUMS}

    def write(self, node_dir: Path, seconds: float) -> Iterator[int]:
        """Frame by frame into a node's directory, until it is so long; after each, when it was. Raises OSError."""
        log = node_dir / layout.LOG_FOLDER.rstrip("/")
        log.mkdir(parents=True)
        shutil.copy(self._place / layout.NODE_FILE, node_dir)
        writer = SegmentWriter(log)
        sequence = turn = 0
        end_us = self._start_us + round(seconds * 1e6)
        while True:
            for header, frames in self._segments:
                shift_us = turn * round(self.seconds * 1e6)
                begins_us = int(header["started_us"]) + shift_us
                if begins_us >= end_us:
                    writer.close(end_us)
                    return
                writer.start(begins_us, {**header, "started_us": begins_us, "seq": sequence})
                sequence += 1
                for frame in frames:
                    wall_us = frame.wall_us + shift_us
                    blocks = [block for each in frame.blocks if (block := self._moved(each, wall_us, shift_us, turn))]
                    writer.frame(wall_us, frame.monotonic_ns + shift_us * 1000, blocks, closes=frame is frames[-1])
                    if writer.failing is not None:
                        raise OSError(writer.failing)
                    yield wall_us
            turn += 1

    @cached_property
    def _segments(self) -> list[tuple[dict[str, Any], list[LogFrame]]]:
        found = []
        for path in sorted((self._place / layout.LOG_FOLDER).glob("*.seg")):
            reader = SegmentReader(io.BytesIO(path.read_bytes()))
            found.append((reader.header, list(reader.frames())))
        return found

    # --- rows of another turn ----------------------------------------------------------------------------------------

    def _moved(self, block: Block, wall_us: int, shift_us: int, turn: int) -> bytes:
        table = block.table
        values = {column.name: _values(column, block) for column in table.columns}
        rows = block.rows
        if turn and table.name == "events":
            kept = [row for row, source in enumerate(values["source"]) if source not in ONCE]
            values, rows = {name: [of[row] for row in kept] for name, of in values.items()}, len(kept)
        if not rows:
            return b""
        if turn:
            self._renew(table, values, shift_us, turn)
        return encode_columns(table, rows, list(values.values()), wall_us)

    def _renew(self, table: schema.Table, values: dict[str, Any], shift_us: int, turn: int) -> None:
        """In place: as it would be in this turn."""
        for column in table.columns:
            held = values[column.name]
            if column.kind == "time" and held is not None:
                values[column.name] = [at if at is None or self._is_older(column, at) else at + shift_us for at in held]
            elif column.kind == "text" and held is not None and self._short_ids:
                values[column.name] = [self._named(text, turn) for text in held]
        if table.name in SUMS:
            self._go_on(table.name, values, turn)
        elif table is schema.CORES:
            self._begin_anew(values, shift_us)
        elif table is schema.TASKS:
            self._renew_tasks(values, shift_us, turn)

    def _is_older(self, column: schema.Column, at_us: int) -> bool:
        """What began before the recording did begins no second time."""
        return column.name in ("started", "since") and at_us < self._start_us

    def _begin_anew(self, values: dict[str, Any], shift_us: int) -> None:
        """A gap that may have begun before the turn did was a gap of other seconds than those that are there now."""
        if values["max_gap_us"] is None:
            return
        ticks = zip(values["time"], values["interval_us"], values["max_gap_us"], strict=True)
        begin_us = self._start_us + shift_us
        values["max_gap_us"] = [
            None if gap is None or gap > at - length - begin_us else gap for at, length, gap in ticks
        ]

    def _go_on(self, table: str, values: dict[str, Any], turn: int) -> None:
        keys = values[_BY[table]]
        for name in SUMS[table]:
            if values[name] is not None:
                grown = [self._growth[table].get((key, name), 0) for key in keys]
                pairs = zip(values[name], grown, strict=True)
                values[name] = [value if value is None else value + turn * more for value, more in pairs]

    def _renew_tasks(self, values: dict[str, Any], shift_us: int, turn: int) -> None:
        step, short = turn * self._pid_step, self._short_pids
        started = zip(values["pid"], values["start_ticks"] or [None] * len(values["pid"]), strict=True)
        ticks = shift_us * int(self._recording.node.get("user_hz") or 100) // 1_000_000
        values["start_ticks"] = [at + ticks if at is not None and pid in short else at for pid, at in started]
        new = [pid in short for pid in values["pid"]]
        for name in _PIDS:
            if values[name] is not None:
                of = zip(values[name], new, strict=True)
                mine = name == "tid"  # a thread is as new as its process
                values[name] = [
                    number + step if number and (fresh if mine else number in short) else number for number, fresh in of
                ]

    def _named(self, text: str | None, turn: int) -> str | None:
        return text and self._ids.sub(lambda found: _other_id(found[0], turn), text)

    # --- who is new in every turn ------------------------------------------------------------------------------------

    @cached_property
    def _short_pids(self) -> frozenset[int]:
        """Processes that were sampled, and not all the time; none of the kernel's."""
        samples, tasks = (self._recording.numpy(name) for name in ("samples", "tasks"))
        known = zip(*(tasks[name] for name in ("task", "pid", "ppid")), strict=True)
        seen = {int(task): (pid, ppid) for task, pid, ppid in known}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        times = samples["time"].astype(np.int64).tolist()
        for at_us, task in zip(times, samples["task"].tolist(), strict=True):
            pid, ppid = seen.get(task, (0, 0))
            if pid > 2 and ppid != 2:  # 2 is kthreadd
                first.setdefault(int(pid), at_us)
                last[int(pid)] = at_us
        quarter_us = self.seconds * 1e6 / _THERE
        begin_us, end_us = self._start_us + quarter_us, self._start_us + self.seconds * 1e6 - quarter_us
        return frozenset(pid for pid in first if first[pid] > begin_us or last[pid] < end_us)

    @cached_property
    def _pid_step(self) -> int:
        pids = self._recording.numpy("tasks", columns=("pid", "tid"))
        return int(max((np.nanmax(of, initial=0) for of in pids.values()), default=0)) + 1

    @cached_property
    def _short_ids(self) -> tuple[str, ...]:
        """Containers that began in the recording, or ended in it."""
        last = {row["id"]: row for row in columns.records(self._recording.table("containers")) if row["id"]}
        began = {name for name, row in last.items() if row["started"] and row["started"] >= self._start_us}
        ended = {name for name, row in last.items() if row["exited"] and row["exited"] >= self._start_us}
        return tuple(sorted(began | ended))

    @cached_property
    def _ids(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._short_ids)))

    def _grown(self, table: str) -> dict[tuple[Any, str], int]:
        """By how much each number grew in the recording."""
        first: dict[tuple[Any, str], int] = {}
        last: dict[tuple[Any, str], int] = {}
        for row in columns.records(self._recording.table(table)):
            for name in SUMS[table]:
                if row[name] is not None:
                    first.setdefault((row[_BY[table]], name), row[name])
                    last[row[_BY[table]], name] = row[name]
        return {key: last[key] - value for key, value in first.items()}


def _other_id(known: str, turn: int) -> str:
    return hashlib.sha256(f"{known}/{turn}".encode()).hexdigest()[: len(known)]


def _values(column: schema.Column, block: Block) -> Any:
    """As encode_columns takes them; numbers stay an array."""
    held: Sequence[Any] | None = block.columns[column.name]
    if held is None or isinstance(held, array):
        return held
    return list(held)
