"""What is drawn below the cores on the same axis of time: events, memory cgroups, pressure, GPUs, Python threads, the
charts of charts.py, and the gaps of the recording."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zombiescope.base.severity import SEVERITIES
from zombiescope.documents import events as event_documents
from zombiescope.documents import python as python_documents
from zombiescope.documents.charts import charts
from zombiescope.query.events import events
from zombiescope.query.gpus import series as gpu_series
from zombiescope.questions.filters import FilterQuestion
from zombiescope.questions.views import NO_FILTERS, THREADS, LanesQuestion
from zombiescope.questions.window import Window
from zombiescope.store import columns
from zombiescope.store.columns import Ints
from zombiescope.store.event import Event
from zombiescope.store.reader import Recording
from zombiescope.store.gaps import all_gaps

MOST_EVENTS = 2_000
MOST_MARKS = 500
_RESOURCES = ("cpu", "memory", "io")


def answer(recording: Recording, question: LanesQuestion) -> dict[str, Any]:
    """Raises QuestionError."""
    window = question.window.choose(recording)
    return document(recording, window, question.columns, question.filters, question.threads)


def document(
    recording: Recording, window: Window, most: int, filters: FilterQuestion = NO_FILTERS, threads: int = THREADS
) -> dict[str, Any]:
    """`most` points of each series; `filters` and `threads` are those of the Python lanes."""
    python, left_out = python_documents.lanes(recording, window, most, filters.chosen(), threads)
    found = events(recording, window.start_us, window.end_us)
    kept = _worst(found)
    return {
        "node": recording.name,
        "from": window.start_us / 1e6,
        "to": window.end_us / 1e6,
        "events": [event_documents.event(each) for each in kept],
        "events_left_off": len(found) - len(kept),
        "zombies": _zombies(recording, window, most),
        "pressure": _pressure(recording, window, most),
        "gpus": _gpus(recording, window, most),
        "charts": charts(recording, window, most),
        "python": python,
        "python_left_out": left_out,
        "gaps": [
            {"from": gap.from_us / 1e6, "to": gap.to_us / 1e6, "source": gap.source, "why": gap.why}
            for gap in all_gaps(recording, window.start_us, window.end_us)
        ],
    }


def _worst(found: Sequence[Event]) -> list[Event]:
    """The worst of them where there are too many, in the order of time. Marks are somebody's own and have room of their
    own, each user's the same: nobody can mark away what the kernel said, nor what others marked.

    Of those that are equally bad and do not all fit, some from everywhere: half an axis without any would be a lie.
    """
    if len(found) <= MOST_EVENTS:
        return list(found)
    ranks: dict[int, list[int]] = {}
    marks: dict[Any, list[int]] = {}
    for at, event in enumerate(found):
        if event.kind == "mark":
            marks.setdefault(event.fields.get("uid"), []).append(at)
        else:
            worse = SEVERITIES.index(event.severity) if event.severity in SEVERITIES else len(SEVERITIES)
            ranks.setdefault(worse, []).append(at)
    kept = _shared(list(marks.values()), MOST_MARKS)
    for rank in sorted(ranks, reverse=True):
        kept += _from_everywhere(ranks[rank], MOST_EVENTS - len(kept))
    return [found[at] for at in sorted(kept)]


def _shared(groups: list[list[int]], room: int) -> list[int]:
    """Of each the same number; what small ones leave is for the others."""
    kept: list[int] = []
    for left, group in zip(range(len(groups), 0, -1), sorted(groups, key=len), strict=True):
        kept += _from_everywhere(group, max(0, room - len(kept)) // left)
    return kept


def _from_everywhere(places: list[int], room: int) -> list[int]:
    count = min(room, len(places))
    return [places[each * len(places) // count] for each in range(count)]


def _zombies(recording: Recording, window: Window, most: int) -> dict[str, list[Any]]:
    """The last census in each step of time."""
    rows = recording.table("census", window.start_us, window.end_us, ("time", "total", "live", "dying"))
    time_us = columns.numbers(rows.column("time"))
    chosen = _last_of_steps(time_us, window, most)
    kept = columns.take(rows, chosen)
    return {
        "at": [at / 1e6 for at in time_us[chosen].tolist()],
        **{name: kept.column(name).to_pylist() for name in ("total", "live", "dying")},
    }


def _gpus(recording: Recording, window: Window, most: int) -> dict[str, Any]:
    """How busy the GPUs were: their mean, the least busy one, and the power of all."""
    found = gpu_series(recording, window.start_us, window.end_us, most)
    return {
        "at": [at_us / 1e6 for at_us in found.at_us],
        "count": found.count,
        "mean": found.mean,
        "lowest": found.lowest,
        "lowest_gpu": found.lowest_gpu,
        "power_w": found.power_w,
    }


def _last_of_steps(time_us: Ints, window: Window, most: int) -> Ints:
    step = (time_us - window.start_us) * most // max(1, window.end_us - window.start_us)
    return np.flatnonzero(np.diff(step, append=-1)) if len(step) else np.zeros(0, np.int64)


def _pressure(recording: Recording, window: Window, most: int) -> dict[str, list[Any]]:
    """The part of each step in which some task waited (PSI `some`), where it was worst; None where nobody looked."""
    series = columns.records(
        recording.table("series", window.start_us, window.end_us, ("series", "source", "name", "key"))
    )
    resources = {
        row["series"]: row["key"]
        for row in series
        if row["source"] == "pressure" and row["name"] == "some_us" and row["key"] in _RESOURCES
    }
    empty: dict[str, list[Any]] = {"at": [], **{resource: [] for resource in _RESOURCES}}
    if not resources:
        return empty
    rows = recording.table("counters", window.start_us, window.end_us, ("time", "series", "value"))
    number = columns.ids(rows.column("series"))
    read_us = np.unique(columns.numbers(rows.column("time")))
    wanted = np.isin(number, sorted(resources))
    time_us, number = columns.numbers(rows.column("time"))[wanted], number[wanted]
    ratio = columns.ids(rows.column("value"))[wanted] / (float(recording.node.get("interval_s") or 1) * 1e6)
    if not len(time_us):
        return empty
    span_us = max(1, window.end_us - window.start_us)
    steps = int(min(most, max(1, span_us // 1_000_000)))
    step = (time_us - window.start_us) * steps // span_us
    # A counter that stands still has no row; a step in which no counter at all has one was not looked at.
    read = np.isin(np.arange(steps), (read_us - window.start_us) * steps // span_us)
    found: dict[str, list[Any]] = {"at": [(window.start_us + at * span_us / steps) / 1e6 for at in range(steps)]}
    for resource in _RESOURCES:
        mine = np.isin(number, [each for each, key in resources.items() if key == resource])
        worst = np.zeros(steps)
        np.maximum.at(worst, step[mine], np.clip(ratio[mine], 0, 1))
        shown = worst.round(4).tolist() if resource in resources.values() else [None] * steps
        found[resource] = [value if seen else None for value, seen in zip(shown, read.tolist(), strict=True)]
    return found
