"""What threads were doing in Python in a window: line by line, and over time.

Read from `python`, whose stacks are frames of kind "python". A look is a moment; what lies between two looks is not
known, so shares are of looks. None is not measured.

Code is a person's own unless it comes from the standard library or an installed package: of a thread that waits inside
of a library the line is told from which a person's own code called it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from zombiescope.store import columns, schema
from zombiescope.store.reader import Recording

LIBRARY = ("site-packages/", "dist-packages/", "python3.", "<")
MOST_ROWS = 200_000
WAITS = frozenset("SDI")
"""States in which a thread is not on a core and does not want to be."""


class PythonFrame(NamedTuple):
    name: str
    file: str
    line: int

    @property
    def is_own(self) -> bool:
        return not self.file.startswith(LIBRARY)

    @property
    def place(self) -> str:
        """train.py:112"""
        return f"{self.file.rpartition('/')[2]}:{self.line}"


Frames = tuple[PythonFrame, ...]
"""Outermost first."""


def own(frames: Frames) -> tuple[PythonFrame, PythonFrame | None]:
    """The innermost frame of somebody's own code, and what it called; the innermost of all where there is none."""
    for at in range(len(frames) - 1, -1, -1):
        if frames[at].is_own:
            return frames[at], frames[at + 1] if at + 1 < len(frames) else None
    return frames[-1], None


@dataclass(frozen=True, slots=True)
class Doing:
    """Looks in a row that saw the same."""

    from_us: int
    to_us: int
    looks: int
    state: str | None
    frames: Frames

    @property
    def waits(self) -> bool | None:
        return None if self.state is None else self.state in WAITS


@dataclass(slots=True)
class PythonThread:
    pid: int
    tid: int
    comm: str | None = None
    doing: list[Doing] = field(default_factory=list)

    @property
    def looks(self) -> int:
        return sum(each.looks for each in self.doing)

    @property
    def waiting_ratio(self) -> float | None:
        """Of the looks that saw its state."""
        known = [each for each in self.doing if each.state is not None]
        looks = sum(each.looks for each in known)
        return sum(each.looks for each in known if each.waits) / looks if looks else None

    def places(self) -> Counter[tuple[PythonFrame, PythonFrame]]:
        """The innermost frame, and the innermost of somebody's own code."""
        found: Counter[tuple[PythonFrame, PythonFrame]] = Counter()
        for each in self.doing:
            found[each.frames[-1], own(each.frames)[0]] += each.looks
        return found

    def stacks(self) -> Counter[Frames]:
        found: Counter[Frames] = Counter()
        for each in self.doing:
            found[each.frames] += each.looks
        return found


def threads(
    recording: Recording,
    start_us: int,
    end_us: int,
    wanted: Callable[[int, int, str | None], bool] | None = None,
    every: int = 1,
) -> list[PythonThread]:
    """Those that were looked at in the window, most looks first; `wanted`: of pid, tid and name. `every`: only every
    n-th row is read (thinning())."""
    found: dict[tuple[int, int], PythonThread] = {}
    for pid, tid, comm, doing in _rows(recording, start_us, end_us, every):
        thread = found.get((pid, tid))
        if thread is None:
            thread = found[pid, tid] = PythonThread(pid, tid)
        thread.comm = comm or thread.comm
        thread.doing.append(doing)
    kept = [each for each in found.values() if wanted is None or wanted(each.pid, each.tid, each.comm)]
    return sorted(kept, key=lambda each: (-each.looks, each.pid, each.tid))


def thinning(recording: Recording, start_us: int, end_us: int) -> int:
    """Every how many rows are to be read, so that twelve hours take seconds."""
    rows = sum(len(batch) for batch in recording.batches("python", start_us, end_us, ("time",)))
    return max(1, -(-rows // MOST_ROWS))


def _rows(recording: Recording, start_us: int, end_us: int, every: int) -> Iterator[tuple[int, int, str | None, Doing]]:
    table = recording.table("python", start_us, end_us)
    rows = columns.records(table if every == 1 else columns.take(table, np.arange(0, len(table), every)))
    if not rows:
        return
    named = named_stacks(recording, schema.PYTHON, start_us, end_us, {row["stack"] for row in rows})
    for row in rows:
        functions, lines = named.get(row["stack"]), row["lines"] or ()
        if not functions or row["tid"] is None:
            continue
        padded = [*lines, *(0 for _ in range(len(functions) - len(lines)))]
        frames = tuple(PythonFrame(*each, line) for each, line in zip(functions, padded, strict=False))
        until_us = row["time"] if row["until"] is None else row["until"]
        doing = Doing(row["time"], until_us, row["looks"] or 1, row["state"] and row["state"][0], frames)
        yield row["pid"] or row["tid"], row["tid"], row["comm"], doing


Named = list[tuple[str, str]]
"""Name and file of each function."""


def named_stacks(
    recording: Recording, table: schema.Table, start_us: int, end_us: int, wanted: set[int | None]
) -> dict[int, Named]:
    """Of those parts that have rows of this table."""
    found: dict[int, Named] = {}
    for part in recording.parts:
        if not part.touches(table, start_us, end_us) or not part.count(table):
            continue
        stacks = [row for each in recording.batches("stacks", parts=[part]) for row in columns.records(each)]
        stacks = [row for row in stacks if row["stack"] in wanted]
        used = {frame for row in stacks for frame in row["frames"] or ()}
        frames = {
            row["frame"]: (row["name"] or "?", row["module"] or "?")
            for each in recording.batches("frames", parts=[part])
            for row in columns.records(each)
            if row["frame"] in used
        }
        for row in stacks:
            found[row["stack"]] = [frames.get(frame, ("?", "?")) for frame in row["frames"] or ()]
    return found
