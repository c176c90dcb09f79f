"""A generated recording as its recorder would have it now: the last minutes as log segments, not compacted yet.

The live doctor looks at the log; benchmarks.generate makes Parquet. The rows of a quarter of an hour are written again,
a frame for each second, in segments of two minutes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zombiescope.store import columns, log, schema
from zombiescope.store.reader import Recording
from zombiescope.store.segment_writer import SegmentWriter

SECOND_US = 1_000_000
SEGMENT_S = 120


def as_log(recording: Recording, place: Path, from_us: int, seconds: int) -> Path:
    """A recording in `place` of those seconds; answers its node's directory."""
    node_dir = place / f"node={recording.name}"
    shutil.rmtree(node_dir, ignore_errors=True)
    (node_dir / "log").mkdir(parents=True)
    (node_dir / "node.json").write_bytes(recording.store.read(f"{recording.prefix}node.json"))
    writer = SegmentWriter(node_dir / "log")
    for number, start in enumerate(range(0, seconds, SEGMENT_S)):
        _segment(recording, writer, number, from_us + start * SECOND_US, min(SEGMENT_S, seconds - start))
    return node_dir


def _segment(recording: Recording, writer: SegmentWriter, number: int, from_us: int, seconds: int) -> None:
    end_us = from_us + seconds * SECOND_US
    node = recording.node
    writer.start(from_us, {
        "format": schema.FORMAT, "node": recording.name, "boot": node["boot"], "hz": node["hz"], "seq": number,
        "event": node["event"], "interval_us": SECOND_US, "recorder_started_us": node["started_us"],
    })  # fmt: skip
    rows = {table: recording.table(table.name, from_us, end_us) for table in schema.TABLES}
    rows = {table: each for table, each in rows.items() if len(each)}
    samples = rows[schema.SAMPLES]
    rows[schema.STACKS] = _named(rows[schema.STACKS], "stack", columns.numbers(samples.column("stack")))
    rows[schema.TASKS] = _named(rows[schema.TASKS], "task", columns.numbers(samples.column("task")))
    frames = rows[schema.STACKS].column("frames").combine_chunks().flatten()
    rows[schema.FRAMES] = _named(rows[schema.FRAMES], "frame", columns.numbers(frames))
    for second in range(seconds):
        at_us = from_us + (second + 1) * SECOND_US
        blocks = [_block(table, each, at_us, first=second == 0) for table, each in rows.items()]
        writer.frame(at_us, at_us * 1000, [one for one in blocks if one], closes=second == seconds - 1)


def _named(rows: pa.Table, name: str, used: columns.Ints) -> pa.Table:
    """A segment has the names that occur in it."""
    return columns.take(rows, np.flatnonzero(np.isin(columns.numbers(rows.column(name)), np.unique(used))))


def _block(table: schema.Table, rows: pa.Table, at_us: int, *, first: bool) -> bytes:
    """The rows of one second; what has no time is in the first frame."""
    if table.time_column is not None:
        time = columns.numbers(rows.column(table.time_column))
        low, high = np.searchsorted(time, [at_us - SECOND_US, at_us])
        rows = rows.slice(low, high - low)
    elif not first:
        return b""
    if not len(rows):
        return b""
    return log.encode_columns(table, len(rows), [_values(column, rows) for column in table.columns], at_us)


def _values(column: schema.Column, rows: pa.Table) -> list[Any]:
    chosen = rows.column(column.name)
    if column.kind == "time":
        present = columns.present(chosen)
        return [one if there else None for one, there in zip(columns.numbers(chosen).tolist(), present, strict=True)]
    values: list[Any] = chosen.to_pylist()
    return values
