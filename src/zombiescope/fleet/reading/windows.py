"""Incident windows of a day, as far as they were shipped: stacks, events and leaks, counted.

Samples are read part by part and only three of their columns; what leaves here is a count for each stack, in all and
on cores that the kernel held at that second (store/thresholds.py). A node with a thousand times as many samples as
another takes a thousand times as long and no more memory than its largest part; of its stacks the MOST_STACKS hottest
are kept, and the rest is counted as one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from zombiescope.base import json as _json
from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.fleet import tables
from zombiescope.fleet.plan import Item, ItemStore
from zombiescope.fleet.reading.identity import MOST_OF_A_NAME, MOST_OF_A_TEXT
from zombiescope.fleet.reading.rollups import MOST_HOURS, booted
from zombiescope.fleet.tables import Rows
from zombiescope.query import stacks
from zombiescope.query.stacks import Stacks
from zombiescope.store import columns
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.layout import ROLLUP_FOLDER
from zombiescope.store.part import Part
from zombiescope.store.reader import Recording
from zombiescope.store.stacks import KERNEL_KINDS
from zombiescope.store.thresholds import KERNEL_COLUMNS, SATURATED_RATIO

MOST_STACKS, MOST_EVENTS, MOST_LEAKS, MOST_SPANS = 2000, 200, 200, 10_000
_MOST_US = 253_402_300_799_000_000
REST = "(other stacks)"
_KEYS = ("xid", "unit", "interface", "device", "path", "gpu")
"""Fields of an event that say what it is about, the first that is there."""


def read(store: ItemStore, item: Item, rows: Rows, damage: list[str]) -> None:
    """Fills in stacks, events and leaks; nothing where no window of this day was shipped."""
    if not any(file.name.startswith(("log/", "date=")) for file in item.files):
        return
    try:
        recording = Recording(store, "", item.node)
        for segment in recording.segments:
            segment.growing = False  # here it is whole, or it was shipped half-written
        try:
            _recorded(recording, item, rows)
            _counted(recording, rows)
        finally:
            damage += [f"{each.file}: {each.what}" for each in recording.damage if each.file != "node.json"]
            for segment in recording.segments:
                segment.close()
    except (OSError, ValueError, pa.ArrowException) as error:
        damage.append(f"windows of {item.day}: {error}")


def _recorded(recording: Recording, item: Item, rows: Rows) -> None:
    """When the node was recorded and booted, as its samples say. Their hours count where no rollup tells of them."""
    spans = [span for part in recording.parts for span in part.spans() if 0 < span.from_us <= span.to_us < _MOST_US]
    for span in spans[:MOST_SPANS]:
        booted_us = booted(span.to_us, span.to_monotonic_ns)
        rows["boots"].append((span.boot[:MOST_OF_A_NAME], booted_us, span.from_us, span.to_us))
    if any(file.name.startswith(ROLLUP_FOLDER) for file in item.files):
        return
    seconds: dict[tuple[int, str], int] = {}
    for span in spans[:MOST_SPANS]:
        hour_us = span.from_us // HOUR_US * HOUR_US
        while hour_us < span.to_us and len(seconds) < MOST_HOURS:
            inside_us = min(span.to_us, hour_us + HOUR_US) - max(span.from_us, hour_us)
            key = (hour_us, span.boot[:MOST_OF_A_NAME])
            seconds[key] = seconds.get(key, 0) + inside_us
            hour_us += HOUR_US
    rows["hours"] += [
        tables.row("hours", {"hour_us": hour_us, "boot": boot, "seconds": -(-time_us // SECOND_US)})
        for (hour_us, boot), time_us in seconds.items()
    ]


def _counted(recording: Recording, rows: Rows) -> None:
    found: Counter[str] = Counter()
    starved: Counter[str] = Counter()
    for part in recording.parts:
        _add_stacks(recording, part, found, starved)
    rows["stacks"] = list(_hottest(found, starved))
    rows["events"] = _events(recording)
    rows["leaks"] = _leaks(recording)


def _add_stacks(recording: Recording, part: Part, found: Counter[str], starved: Counter[str]) -> None:
    span = (part.start_us - 10 * SECOND_US, _end_us(part))
    known: Stacks | None = None
    lost = _lost_seconds(recording, part)
    for batch in recording.batches("samples", columns=("time", "cpu", "stack"), parts=[part]):
        if known is None:
            known = stacks.load(recording, [span])
            names, idle = _names(known), known.idle()
        rows = known.rows_of(columns.ids(batch.column("stack")))
        kept = ~idle[rows]
        held = kept & _on_lost(batch, lost)
        for counter, mask in ((found, kept), (starved, held)):
            counts = np.bincount(rows[mask], minlength=known.count)
            for row in np.flatnonzero(counts).tolist():
                counter[names[row]] += int(counts[row])


def _end_us(part: Part) -> int:
    spans = part.spans()
    return max((span.to_us for span in spans), default=part.start_us) + 1


def _names(known: Stacks) -> list[str]:
    shown = [
        ("[k]" if function.kind in KERNEL_KINDS else "") + function.name[:MOST_OF_A_NAME].replace(";", ":")
        for function in known.functions
    ]
    return [
        ";".join(shown[number] for number in known.flat[start:end].tolist()) or "?"
        for start, end in zip(known.starts.tolist(), known.ends.tolist(), strict=True)
    ]


def _lost_seconds(recording: Recording, part: Part) -> Ints:
    """Core and second, as one number, in which the kernel held a core."""
    wanted = ("time", "cpu", "interval_us", *KERNEL_COLUMNS)
    pieces = []
    for batch in recording.batches("cores", columns=wanted, parts=[part]):
        kernel_ms = sum(_numbers(batch, name) for name in KERNEL_COLUMNS)
        interval_us = np.maximum(_numbers(batch, "interval_us"), 1)
        lost = kernel_ms * 1000 >= SATURATED_RATIO * interval_us
        # A row is about the interval that ends at its time.
        pieces.append(_core_second(_numbers(batch, "time")[lost] - 1, _numbers(batch, "cpu")[lost]))
    return np.unique(np.concatenate(pieces)) if pieces else np.zeros(0, np.int64)


def _on_lost(batch: pa.Table, lost: Ints) -> Mask:
    if not len(lost):
        return np.zeros(len(batch), bool)
    return np.isin(_core_second(_numbers(batch, "time"), _numbers(batch, "cpu")), lost)


def _core_second(times_us: Ints, cpus: Ints) -> Ints:
    return times_us // SECOND_US * 65536 + cpus


def _numbers(batch: pa.Table, name: str) -> Ints:
    """0 for what is missing: of a core without a reading nobody says that it was lost."""
    return np.concatenate([_of(chunk) for chunk in batch.column(name).chunks] or [np.zeros(0, np.int64)])


def _of(chunk: pa.Array) -> Ints:
    plain = chunk.cast(pa.int64()).fill_null(0)
    return np.frombuffer(plain.buffers()[1], np.int64)[plain.offset : plain.offset + len(plain)]


def _hottest(found: Counter[str], starved: Counter[str]) -> Iterator[tuple[Any, ...]]:
    ranked = sorted(found, key=lambda name: (-starved[name], -found[name], name))
    for name in ranked[:MOST_STACKS]:
        yield name, found[name], starved[name]
    rest = ranked[MOST_STACKS:]
    if rest:
        yield REST, sum(found[name] for name in rest), sum(starved[name] for name in rest)


def _events(recording: Recording) -> list[tuple[Any, ...]]:
    grouped: dict[tuple[str, str | None], list[Any]] = {}
    for batch in recording.batches("events", columns=("time", "kind", "severity", "text", "fields")):
        for event in columns.records(batch):
            kind, key, at_us = event["kind"] or "?", _key(event["fields"]), event["time"] or 0
            known = grouped.get((kind, key))
            if known is None:
                if len(grouped) < MOST_EVENTS:
                    text = (event["text"] or "")[:MOST_OF_A_TEXT]
                    grouped[kind, key] = [event["severity"], text, 1, at_us, at_us]
                continue
            known[2] += 1
            known[3], known[4] = min(known[3], at_us), max(known[4], at_us)
    return [(kind[:MOST_OF_A_NAME], key, *known) for (kind, key), known in grouped.items()]


def _key(fields: str | None) -> str | None:
    try:
        said = _json.loads(fields or "{}")
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    return next((str(said[name])[:MOST_OF_A_NAME] for name in _KEYS if said.get(name) not in (None, "")), None)


def _leaks(recording: Recording) -> list[tuple[Any, ...]]:
    last: dict[str, tuple[Any, ...]] = {}
    for batch in recording.batches("leaks", columns=("time", "path", "dying", "created", "unit", "container", "comm")):
        for leak in columns.records(batch):
            path = (leak["path"] or "")[:MOST_OF_A_TEXT]
            who = leak["unit"] or leak["container"] or leak["comm"]
            if path and (path in last or len(last) < MOST_LEAKS):
                last[path] = (path, leak["dying"], leak["created"], who, leak["time"])
    return list(last.values())
