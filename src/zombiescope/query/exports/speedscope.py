"""speedscope's file format (www.speedscope.app/file-format-schema.json): one `sampled` profile for each core.

A core runs one task at a time, so its samples in the order of time are what it did: speedscope's time-ordered view
shows it, with gaps where the core had nothing to do. By process, thread or owner that order is lost when several cores
work for one, so there a sample counts what it stands for, and gaps are left out.

The format writes every stack out in full: a file is large, and the viewer reads no more than 512 MB. A frame there is a
name, a file, a line and a column, and has no kind: a Python function is known by its file alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from typing import BinaryIO

import numpy as np

from zombiescope.query.exports.formats import By
from zombiescope.query.exports.interner import Interner
from zombiescope.query.exports.samples import ExportSamples, SampleBatch, module_of
from zombiescope.store.columns import Ints

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
ROWS_AT_ONCE = 1 << 14


def write(samples: ExportSamples, out: BinaryIO, *, by: By = "core", title: str = "") -> None:
    rows = samples.everything()
    frames: Interner[int] = Interner()
    texts = _Stacks(samples, frames)
    head = {"$schema": SCHEMA, "name": title or samples.name, "exporter": f"zombiescope {version('zombiescope')}"}
    out.write(json.dumps(head).removesuffix("}").encode() + b', "activeProfileIndex": 0, "profiles": [')
    groups = sorted(_groups(samples, rows, by), key=lambda group: -len(group[1]))
    for number, (name, chosen) in enumerate(groups):
        out.write(b",\n" if number else b"\n")
        for piece in _profile(samples, rows.cut(chosen), name, texts, in_time=by == "core"):
            out.write(piece.encode())
    functions = (samples.stacks.functions[position] for position in frames)
    named = (
        {"name": each.name, "file": module_of(each)} if module_of(each) else {"name": each.name} for each in functions
    )
    out.write(b'],\n"shared": {"frames": [' + ",\n".join(map(json.dumps, named)).encode() + b"]}}\n")


def _groups(samples: ExportSamples, rows: SampleBatch, by: By) -> Iterator[tuple[str, Ints]]:
    if by == "core":
        for cpu in np.unique(rows.cpu).tolist():
            yield f"core {cpu}" if cpu >= 0 else "core not known", np.flatnonzero(rows.cpu == cpu)
        return
    named: Interner[str] = Interner()
    number_of = np.array([named.position(owner) for owner in samples.owners(by)], np.int64)
    group_of = number_of[rows.task]
    order = np.argsort(group_of, kind="stable")
    bounds = np.searchsorted(group_of[order], np.arange(len(named) + 1))
    for number, group in enumerate(named):
        chosen = order[bounds[number] : bounds[number + 1]]
        if len(chosen):
            yield group, chosen


def _profile(samples: ExportSamples, rows: SampleBatch, name: str, texts: _Stacks, *, in_time: bool) -> Iterator[str]:
    event = samples.events[int(rows.event[0])]
    stacks, weights, unit = rows.stack, samples.weights(rows), "none"
    if event.is_clock and samples.period_ns is not None:
        unit = "microseconds"
        weights = np.full(len(rows), round(samples.period_ns / 1000), np.int64)
        if in_time:
            stacks, weights = _with_gaps(rows, weights)
    head = {
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": int(weights.sum()),
    }
    yield json.dumps(head).removesuffix("}") + ', "samples": ['
    for first in range(0, len(stacks), ROWS_AT_ONCE):
        part = stacks[first : first + ROWS_AT_ONCE].tolist()
        yield ("," if first else "") + ",".join([texts.of(stack) for stack in part])
    yield f'], "weights": {json.dumps(weights.tolist(), separators=(",", ":"))}}}'


def _with_gaps(rows: SampleBatch, weights: Ints) -> tuple[Ints, Ints]:
    """Between two samples that are further apart than one stands for, an empty stack (-1) for the rest of the time."""
    apart = np.append(np.diff(rows.time_us), weights[-1:])
    worked = np.minimum(weights, np.maximum(apart, 1))
    stacks = np.stack([rows.stack, np.full(len(rows), -1, np.int64)], 1).ravel()
    lengths = np.stack([worked, apart - worked], 1).ravel()
    keep = (stacks >= 0) | (lengths > 0)
    return stacks[keep], lengths[keep]


class _Stacks:
    """Stacks as JSON lists of positions in the shared table of frames."""

    def __init__(self, samples: ExportSamples, frames: Interner[int]) -> None:
        self._samples = samples
        self._frames = frames
        self._texts: dict[int, str] = {-1: "[]"}

    def of(self, number: int) -> str:
        found = self._texts.get(number)
        if found is None:
            positions = map(self._frames.position, self._samples.functions(number))
            found = self._texts[number] = f"[{','.join(map(str, positions))}]"
        return found
