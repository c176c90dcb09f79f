"""What is drawn below the cores on the same axis of time: events, memory cgroups, pressure, GPUs, Python threads, the
charts, and the gaps of the recording."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from zombiescope.base.severity import SEVERITIES
from zombiescope.documents import events as event_documents
from zombiescope.documents import python as python_documents
from zombiescope.query.delays import long_waits, named
from zombiescope.query.events import events
from zombiescope.query.gpus import series as gpu_series
from zombiescope.query.jobs import steps as training_steps
from zombiescope.questions.filters import FilterQuestion
from zombiescope.questions.views import NO_FILTERS, THREADS, LanesQuestion
from zombiescope.questions.window import Window
from zombiescope.store import columns, schema
from zombiescope.store.columns import Ints, Mask
from zombiescope.store.event import Event
from zombiescope.store.gaps import all_gaps
from zombiescope.store.reader import Recording

MOST_EVENTS = 2_000
MOST_MARKS = 500
MOST_WAITS, MOST_SCHEDULE_ROWS = 300, 300_000
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
        "delays": _delays(recording, window),
        "python": python,
        "python_left_out": left_out,
        "gaps": [
            {"from": gap.from_us / 1e6, "to": gap.to_us / 1e6, "source": gap.source, "why": gap.why}
            for gap in all_gaps(recording, window.start_us, window.end_us)
        ],
    }


def _delays(recording: Recording, window: Window) -> dict[str, Any]:
    """The longest waits for a core, from snapshots of the schedule."""
    waits, known, too_many = long_waits(recording, window.start_us, window.end_us, MOST_WAITS, MOST_SCHEDULE_ROWS)
    return {
        "waits": [
            {
                "from": one.from_us / 1e6, "to": one.to_us / 1e6, "cpu": one.cpu, "victim": named(one.victim),
                "by": None if one.by is None else named(one.by),
            }
            for one in waits
        ],
        "known": [{"from": one.from_us / 1e6, "to": one.to_us / 1e6, "cpu": one.cpu} for one in known],
        "too_many": too_many,
    }  # fmt: skip


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


# --- charts -----------------------------------------------------------------------------------------------------------
# Lanes that are lines over time: disks, network, memory, training steps. A further one is a function here and its name
# in CHARTS; the page places it by that name (ui/src/lanes/list.tsx).
#
# Each point is a step of the window. None where nothing was recorded in the step; a counter that does not move has no
# row, and is 0 in a step in which the recorder ticked.

Unit = Literal["bytes/s", "ratio", "s"]
Floats = npt.NDArray[np.float64]
_STACKED = re.compile(r"dm-|md|loop|zram|sr|nbd")
"""Block devices on top of others, whose traffic is counted below them again."""
GAUGE_US = 300_000_000
"""Gauges are written when they change, and again in every segment."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Equal parts of a window, at most as many as it has seconds."""

    recording: Recording
    start_us: int
    end_us: int
    count: int

    @classmethod
    def of(cls, recording: Recording, window: Window, most: int) -> Steps:
        seconds = max(1, (window.end_us - window.start_us) // 1_000_000)
        return cls(recording, window.start_us, window.end_us, int(min(most, seconds)))

    def at(self) -> list[float]:
        span_us = self.end_us - self.start_us
        return [(self.start_us + step * span_us / self.count) / 1e6 for step in range(self.count)]

    def of_times(self, time_us: Ints) -> Ints:
        steps: Ints = (time_us - self.start_us) * self.count // max(1, self.end_us - self.start_us)
        return steps

    def ticked(self) -> Mask:
        """In which of them the recorder read the cores, which it does at every tick."""
        rows = self.recording.table("cores", self.start_us, self.end_us, ("time",))
        found: Mask = np.isin(np.arange(self.count), self.of_times(columns.numbers(rows.column("time"))))
        return found

    def worst(self, time_us: Ints, values: Floats) -> Floats:
        """The highest value in each step; 0 without any, and not a number where the recorder did not tick."""
        found = np.zeros(self.count)
        np.maximum.at(found, self.of_times(time_us), values)
        found[~self.ticked()] = np.nan
        return found


Lines = dict[str, Floats]


def _disks(steps: Steps) -> Lines | None:
    """Bytes read and written by all devices."""
    if not any(part.count(schema.DISKS) for part in steps.recording.parts):
        return None
    wanted = ("time", "interval_us", "device", "read_bytes", "written_bytes")
    rows = steps.recording.table("disks", steps.start_us, steps.end_us, wanted)
    own = [not _STACKED.match(name or "") for name in columns.texts(rows.column("device"))]
    rows = columns.take(rows, np.flatnonzero(own))
    time_us, interval_us = (columns.numbers(rows.column(name)) for name in ("time", "interval_us"))
    return {
        line: _rate(steps, time_us, columns.numbers(rows.column(f"{line}_bytes")), interval_us)
        for line in ("read", "written")
    }


def _network(steps: Steps) -> Lines | None:
    """Bytes received and sent by the physical interfaces."""
    found: Lines = {}
    interval_us = np.int64(float(steps.recording.node.get("interval_s") or 1) * 1e6)
    for line, name in (("received", "rx_bytes"), ("sent", "tx_bytes")):
        time_us, moved = _counted(steps, "netdev", name, steps.start_us)
        if time_us is None:
            return None
        found[line] = _rate(steps, time_us, moved, np.full(len(moved), interval_us))
    return found


def _memory(steps: Steps) -> Lines | None:
    """The part of the memory that is neither free nor cache."""
    known = {}
    for name in ("mem_total_bytes", "mem_available_bytes"):
        time_us, value = _counted(steps, "meminfo", name, steps.start_us - GAUGE_US)
        if time_us is None or not len(time_us):
            return None
        known[name] = _held(steps, time_us, value)
    with np.errstate(invalid="ignore", divide="ignore"):
        used = 1 - known["mem_available_bytes"] / known["mem_total_bytes"]
    used[~steps.ticked()] = np.nan
    return {"used": used}


def _steps(steps: Steps) -> Lines | None:
    """How long the training steps took that programs reported and that began in each part: their median, and the
    longest. Not a number where none began."""
    if not any(part.count(schema.STEPS) for part in steps.recording.parts):
        return None
    told = [one for one in training_steps(steps.recording, steps.start_us, steps.end_us) if one.phase is None]
    place = steps.of_times(np.array([one.at_us for one in told], np.int64))
    took_s = np.array([one.took_us for one in told], float) / 1e6
    found = {"median": np.full(steps.count, np.nan), "longest": np.full(steps.count, np.nan)}
    for part in np.unique(place).tolist():
        mine = took_s[place == part]
        found["median"][part], found["longest"][part] = np.median(mine), mine.max()
    return found


CHARTS: dict[str, tuple[Unit, Callable[[Steps], Lines | None]]] = {
    "disk": ("bytes/s", _disks),
    "network": ("bytes/s", _network),
    "memory": ("ratio", _memory),
    "step time": ("s", _steps),
}


def charts(recording: Recording, window: Window, most: int) -> list[dict[str, Any]]:
    """Every chart that this recording has."""
    steps = Steps.of(recording, window, most)
    found = []
    for name, (unit, read) in CHARTS.items():
        lines = read(steps)
        if lines is None:
            continue
        shown = [{"name": line, "values": _listed(values)} for line, values in lines.items()]
        found.append({"name": name, "unit": unit, "at": steps.at(), "lines": shown})
    return found


def _listed(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else round(value, 4) for value in values.tolist()]


def _rate(steps: Steps, time_us: Ints, amounts: Ints, interval_us: Ints) -> Floats:
    """A second, of all devices together."""
    ticks, place = np.unique(time_us, return_inverse=True)
    sums = np.bincount(place, amounts / np.maximum(interval_us, 1) * 1e6, len(ticks))
    return steps.worst(ticks, sums.astype(np.float64))


def _counted(steps: Steps, source: str, name: str, since_us: int) -> tuple[Ints | None, Ints]:
    """Times and values of a counter of any key; no times where the node does not have it."""
    nothing = np.zeros(0, np.int64)
    series = columns.records(steps.recording.table("series", since_us, steps.end_us, ("series", "source", "name")))
    wanted = sorted({row["series"] for row in series if row["source"] == source and row["name"] == name})
    if not wanted:
        return None, nothing
    rows = steps.recording.table("counters", since_us, steps.end_us, ("time", "series", "value"))
    mine = np.isin(columns.ids(rows.column("series")), wanted)
    return columns.numbers(rows.column("time"))[mine], columns.numbers(rows.column("value"))[mine]


def _held(steps: Steps, time_us: Ints, value: Ints) -> Floats:
    """What a gauge was at the end of each step."""
    order = np.argsort(time_us, kind="stable")
    ends = steps.start_us + (np.arange(steps.count) + 1) * (steps.end_us - steps.start_us) // steps.count
    at = np.searchsorted(time_us[order], ends, side="right") - 1
    found = np.full(steps.count, np.nan)
    found[at >= 0] = value[order][at[at >= 0]]
    return found
