"""Writes what was imported as a recording, in the form that the recorder itself writes: log segments and node.json.

A segment holds one SampleRows, so a reader of five seconds decodes no more than that; whoever makes them keeps them
at MAX_ROWS. Everything is known before the first byte is written, so a segment has one frame, and its header says how
far its rows reach.

Imported into a directory that has a recording already, the new segments stand beside the old ones: files of one night
may be imported one after the other.
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zombiescope._native import has_negative
from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.imports.rows import ImportReport, SampleRows
from zombiescope.store import layout, node_directory, schema
from zombiescope.store.batch import Batch
from zombiescope.store.sample_event import EVENT_SOURCE
from zombiescope.store.segment_writer import SegmentWriter

MAX_ROWS = 1_000_000


class WriteError(UserError):
    """A segment could not be written."""


class ImportWriter:
    """The recording of one node, being imported."""

    def __init__(self, directory: Path, node: str, boot: str = "") -> None:
        """Raises UnsafePlaceError, and OSError when the directory cannot be made."""
        self.node = node
        self.boot = boot
        self.path = directory.resolve() / f"{layout.NODE_FOLDER}{node}"
        self._log = self.path / layout.LOG_FOLDER.rstrip("/")
        # A team may collect its recordings in one place; only root is worth being led astray.
        node_directory.prepare(self.path, shared=os.geteuid() != 0)
        safe_files.make_directory(self._log)
        self._batch = Batch()
        self._taken = {path.name for path in self._log.iterdir()}
        self._run_us: int | None = None
        self._seq = 0
        self._first_us: int | None = None
        self._last_us: int | None = None
        self._cpus: set[int] = set()
        self._events: dict[str, None] = {}
        self._weighted = False

    # --- samples -----------------------------------------------------------------------------------------------------

    def add(self, rows: SampleRows) -> None:
        """One segment of samples. Raises WriteError."""
        if not len(rows):
            return
        batch = self._batch
        samples = [rows.time_us, _known(rows.cpu), _known(rows.task), _known(rows.stack), rows.period, _events(rows)]
        batch.add_columns(schema.SAMPLES, len(rows), samples)
        stacks = array("q", range(len(rows.stack_lengths)))
        batch.add_columns(schema.STACKS, len(stacks), [stacks, (rows.stack_lengths, rows.stack_frames)])
        batch.extend(schema.FRAMES, [(number, *frame) for number, frame in enumerate(rows.frames)])
        batch.extend(schema.TASKS, [_task(number, task) for number, task in enumerate(rows.tasks)])
        for number, event in enumerate(rows.events):
            batch.add(schema.SERIES, (number, EVENT_SOURCE, event.name, None, event.kind))
            self._events.setdefault(event.name)
            self._weighted |= event.weighted
        self._cpus.update(set(rows.cpu) - {-1} if rows.cpus is None else rows.cpus)
        self._segment(*(rows.span_us or (min(rows.time_us), max(rows.time_us))))

    def add_table(self, table: schema.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows of a table that has a time column and no ids, as one segment. Raises WriteError."""
        if not rows:
            return
        self._batch.extend(table, list(rows))
        at = table.names.index(str(table.time_column))
        times = [row[at] for row in rows]
        if table is schema.CORES:
            self._cpus.update(row[table.names.index("cpu")] for row in rows)
        self._segment(min(times), max(times))

    def _segment(self, from_us: int, to_us: int) -> None:
        writer = SegmentWriter(self._log)
        start_us = self._free_name(from_us)
        self._run_us = start_us if self._run_us is None else self._run_us
        header = {
            "format": schema.FORMAT,
            "node": self.node,
            "boot": self.boot,
            "seq": self._seq,
            "recorder_started_us": self._run_us,
            "interval_us": to_us - from_us,
            "last_row_us": to_us,
        }
        self._seq += 1
        writer.start(start_us, header)
        writer.frame(to_us, 0, self._batch.take_blocks(to_us), closes=True)
        writer.close(to_us)
        if writer.failing is not None:
            raise WriteError(writer.failing, f"room and write permission in {self.path}")
        self._first_us = from_us if self._first_us is None else min(self._first_us, from_us)
        self._last_us = to_us if self._last_us is None else max(self._last_us, to_us)

    def _free_name(self, start_us: int) -> int:
        while (name := layout.segment_name(start_us)) in self._taken:
            start_us += 1
        self._taken.add(name)
        return start_us

    @property
    def span_us(self) -> tuple[int, int] | None:
        """From the first row to the last of what was added; None: nothing was."""
        return None if self._first_us is None or self._last_us is None else (self._first_us, self._last_us)

    # --- the end -----------------------------------------------------------------------------------------------------

    def finish(self, outcome: ImportReport, sources: Sequence[str]) -> None:
        """Writes node.json: who this is of, and what whoever reads it must know. Raises OSError."""
        path = self.path / layout.NODE_FILE
        before = _before(path)
        imported = before.get("imported", {})
        again = [name for name in sources if name != "-" and name in imported.get("files", ())]
        if again:
            outcome.note(
                f"{again[0]} {f'and {len(again) - 1} others were' if len(again) > 1 else 'was'} imported into this "
                "recording before: what is in both counts twice"
            )
        facts = dict(outcome.facts)
        count = facts.pop("cpus", 0)
        online = sorted({*self._cpus, *range(count), *before.get("cpus", {}).get("online", ())})
        node = {
            "format": schema.FORMAT,
            "node": self.node,
            "boot": self.boot,
            "started_us": self._first_us or 0,
            "cpus": {"online": online, "possible": max(online, default=-1) + 1, "topology": []},
            **{key: value for key, value in before.items() if key not in ("imported", "cpus")},
            **facts,
            "imported": {
                "files": [*imported.get("files", ()), *sources],
                "events": list(dict.fromkeys([*imported.get("events", ()), *self._events])),
                "weighted": self._weighted or bool(imported.get("weighted")),
                "idle_samples": outcome.idle_samples + imported.get("idle_samples", 0),
                "notes": list(dict.fromkeys([*imported.get("notes", ()), *outcome.notes])),
            },
        }
        layout.write_synced(path, json.dumps(node, indent=1).encode() + b"\n")


def _before(path: Path) -> dict[str, Any]:
    try:
        document = _json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _known(column: array[int]) -> array[int] | list[int | None] | None:
    """Without the -1 that stands for what the file does not say."""
    if not has_negative(column):
        return column
    unknown = column.count(-1)
    return None if unknown == len(column) else [None if value < 0 else value for value in column]


def _events(rows: SampleRows) -> array[int] | None:
    if rows.event is not None:
        return rows.event
    return array("q", bytes(8 * len(rows))) if rows.events else None


def _task(number: int, task: Any) -> tuple[Any, ...]:
    unknown = (None,) * 5
    return (number, task.pid, task.tid, task.comm, task.ppid, *unknown, task.cgroup, *(None,) * 4)
