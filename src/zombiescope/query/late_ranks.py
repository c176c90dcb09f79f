"""The rank that did not come: who of a job was elsewhere while all the others waited for it in a collective.

In a collective all ranks leave together, so all step times are equal, whoever was late. What tells the late one is
where each rank is at one moment: a cell of a tenth of a second (activity.py) is *lost to* a rank if it is outside of
the collective while every other rank that was looked at waits inside. A rank is late where it has many such cells and
nobody else has a third as many: batches of uneven sizes are lost to one rank now and to another one then.

Nothing here compares clocks or durations. A rank that two processes claim is not judged, nor is the start of a job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import SECOND_US
from zombiescope.query import activity
from zombiescope.query.activity import CELL_US, CELLS, DEVICE, NAMES, UNKNOWN, WAITS_FOR_RANKS, Activity, Span
from zombiescope.query.jobs import Job, Rank, Step, jobs
from zombiescope.store.reader import Recording
from zombiescope.symbols.python import places

MOST_RANKS = 512
KNOWN_SHARE = 0.75
"""Of a job's ranks, that were looked at: fewer say nothing about a cell."""
SMOOTH_S = 5
LATE_RATIO = 0.12
"""Of the time, lost to one rank: less is within what a step varies."""
LATE_TIMES = 3.0
"""As much as any other rank."""
LATE_LEAST_S = 6
APART_S = 1
LATE_LEAST_TIMES = 3
"""How often it was late; or once for so long:"""
STALL_S = 10.0
SETTLED_US = 5 * SECOND_US
"""After a rank was first seen: it starts."""
HANG_S = 20.0
DEVICE_WAIT_S = 5
BRIDGED = 15
"""Cells: looks become rarer on a machine that has no time for them."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Late:
    """A rank that held the others up."""

    job: Job
    rank: Rank
    from_us: int
    to_us: int
    late_s: float
    """In which all others waited for it."""
    times: int
    """How often: about a step each, where steps are longer than a fifth of a second."""
    state: str
    """What it did most of that time: as the states of activity.py."""
    place: str | None
    """Where its main thread was."""
    native: str | None
    """And in which native function, where it waited."""
    why: str | None
    """What it waited for, where the kernel says."""
    others: int
    wait_place: str | None
    """Where the others waited."""
    wait_native: str | None
    steps: int | None
    """That were reported in that time."""
    is_stuck: bool
    """Nobody proceeds: it has been in that place since `from_us`."""
    phase: places.Phase | None
    """Where it was in no training step."""
    states: Mapping[str, float]
    """State -> seconds, while it was late."""

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6

    @property
    def ratio(self) -> float:
        return min(1.0, self.late_s / self.seconds) if self.seconds else 0.0

    @property
    def delay_s(self) -> float | None:
        """Of a step, where steps are known."""
        return self.late_s / self.steps if self.steps else None


@dataclass(frozen=True, slots=True)
class AllWait:
    """Every rank that was looked at waits in the collective, and nobody leaves it: what they wait for is not here."""

    job: Job
    from_us: int
    to_us: int
    ranks: int
    place: str | None
    native: str | None
    missing: int | None
    """Ranks of the job that are not in this recording."""

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6


@dataclass(frozen=True, slots=True)
class Grid:
    """The ranks of one job over the same cells."""

    job: Job
    span: Span
    ranks: tuple[Rank, ...]
    doing: tuple[Activity, ...]
    known: Mask
    waits: Mask

    @property
    def seconds(self) -> int:
        return self.span.cells // CELLS

    @property
    def judged(self) -> Mask:
        """Cells in which enough ranks were looked at."""
        found: Mask = self.known.sum(axis=0) >= max(2.0, KNOWN_SHARE * len(self.ranks))
        return found


def read(
    recording: Recording, start_us: int, end_us: int, wanted: Callable[[Job], bool] = lambda _: True
) -> list[Grid]:
    """Of every job of the window of which two ranks or more can be compared."""
    found = []
    for job in jobs(recording, start_us, end_us):
        if wanted(job) and len(job.ranks) > 1:
            made = grid(job, of_job(recording, job, start_us, end_us))
            if made is not None:
                found.append(made)
    return found


def of_job(recording: Recording, job: Job, start_us: int, end_us: int) -> dict[int, Activity]:
    """What the ranks of a job were doing."""
    pids = {one.pid for one in job.ranks}
    return activity.read(recording, pids, start_us, end_us)


def grid(job: Job, doing: Mapping[int, Activity], least: int = 2) -> Grid | None:
    """None where fewer ranks can be compared."""
    judged = [one for one in job.ranks if one.rank is not None and one.rank not in job.twice and one.pid in doing]
    judged = judged[:MOST_RANKS]
    if len(judged) < least:
        return None
    found = [doing[one.pid] for one in judged]
    cells = np.stack([one.cells for one in found])
    known = cells != UNKNOWN
    for row, one in enumerate(judged):  # it starts, or is gone
        span = found[0].span
        known[row, : max(0, span.cell(one.from_us + SETTLED_US))] = False
        if one.to_us is not None:
            known[row, max(0, span.cell(one.to_us)) :] = False
    waits = known & (np.isin(cells, WAITS_FOR_RANKS) | _long(cells == DEVICE))
    return Grid(job, found[0].span, tuple(judged), tuple(found), known, waits)


def _long(cells: Mask) -> Mask:
    """Runs of DEVICE_WAIT_S and more: no kernel of a training takes so long, so the device is in a collective."""
    found = np.zeros_like(cells)
    for row, each in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], each, [False]]).astype(np.int8)))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            found[row, first:last] = last - first >= DEVICE_WAIT_S * CELLS
    return found


def lost_to(made: Grid) -> Mask:
    """Of each rank, the cells in which it was elsewhere while all the others waited."""
    out = made.known & ~made.waits
    alone = made.judged & (out.sum(axis=0) == 1)
    found: Mask = out & alone
    return found


def shares(made: Grid) -> npt.NDArray[np.float64]:
    """Of each rank, the part of the time around each second that was lost to it."""
    lost = lost_to(made)
    enough = made.judged
    by_second = lost.reshape(len(made.ranks), made.seconds, CELLS).sum(axis=2).astype(float)
    seen = _smooth(enough.reshape(1, made.seconds, CELLS).sum(axis=2).astype(float))
    found = _smooth(by_second) / np.maximum(1.0, seen)
    found[:, seen[0] < CELLS] = 0.0
    return found


def late(made: Grid, steps: Sequence[Step] = ()) -> list[Late]:
    """In the order of time."""
    lost = lost_to(made)
    smooth = shares(made)
    found = []
    for row in range(len(made.ranks)):
        others = np.delete(smooth, row, axis=0).max(axis=0)
        held = (smooth[row] >= LATE_RATIO) & (smooth[row] >= LATE_TIMES * others)
        for first, last in _runs(held):
            one = _late(made, lost, row, first, last, steps)
            if one is not None:
                found.append(one)
    return sorted(found, key=lambda one: (one.from_us, -one.late_s))


def all_wait(made: Grid) -> list[AllWait]:
    """Times of HANG_S and more in which every rank was seen waiting, and in the same place."""
    enough = made.judged
    stands = (enough & (made.waits.sum(axis=0) == made.known.sum(axis=0))).reshape(made.seconds, CELLS)
    seen = enough.reshape(made.seconds, CELLS).sum(axis=1)
    held = (seen > 0) & (stands.sum(axis=1) == seen)
    found = []
    for first, last in _runs(held, apart=0):
        from_us, to_us = made.span.us(first * CELLS), made.span.us(last * CELLS)
        place = _places(made, range(len(made.ranks)), made.waits, first, last)
        stays = all(_stays(one, from_us, to_us) for one in made.doing)
        if last - first >= HANG_S and stays:
            size = made.job.world_size
            missing = None if size is None else max(0, size - len(made.ranks))
            native = _natives(made, range(len(made.ranks)), from_us, to_us)
            found.append(AllWait(made.job, from_us, to_us, len(made.ranks), place, native, missing))
    return found


def _late(made: Grid, lost: Mask, row: int, first: int, last: int, steps: Sequence[Step]) -> Late | None:
    cells = np.zeros(made.span.cells, bool)
    cells[first * CELLS : last * CELLS] = lost[row, first * CELLS : last * CELLS]
    at = np.flatnonzero(cells)
    if not len(at):
        return None
    totals = lost[:, first * CELLS : last * CELLS].sum(axis=1)
    times = int((np.diff(at) > 1).sum()) + 1
    longest_s = _longest(cells, made.judged) * CELL_US / 1e6
    from_us, to_us = made.span.us(int(at[0])), made.span.us(int(at[-1]) + 1)
    rivals = np.delete(totals, row).max(initial=0)
    lasts = to_us - from_us >= LATE_LEAST_S * SECOND_US and times >= LATE_LEAST_TIMES
    if totals[row] < LATE_TIMES * rivals or not (lasts or longest_s >= STALL_S):
        return None
    doing, rank = made.doing[row], made.ranks[row]
    seen, counts = np.unique(doing.cells[cells], return_counts=True)
    states = {NAMES[int(number)]: int(many) * CELL_US / 1e6 for number, many in zip(seen, counts, strict=True)}
    state = max(states, key=lambda name: states[name])
    where = doing.places(cells & (doing.cells == NAMES.index(state))).most_common(1)
    waiters = [each for each in range(len(made.ranks)) if each != row]
    place = _places(made, waiters, made.waits & cells[None, :], first, last)
    pids = {one.pid for one in made.ranks}
    mine = [one for one in steps if one.pid in pids and from_us <= one.at_us < to_us]
    many_steps = max(Counter(one.pid for one in mine).values(), default=0) or None
    stuck = longest_s >= HANG_S and longest_s >= 0.9 * (to_us - from_us) / 1e6
    why = doing.why(NAMES.index(state), from_us, to_us)
    return Late(
        made.job, rank, from_us, to_us, len(at) * CELL_US / 1e6, times, state, where[0][0] if where else None,
        doing.native_place(from_us, to_us), why, len(waiters), place, _natives(made, waiters, from_us, to_us),
        many_steps, stuck, _phase(doing, cells), states,
    )  # fmt: skip


def _phase(doing: Activity, cells: Mask) -> places.Phase | None:
    """Of most of the time that was lost to it."""
    votes: Counter[places.Phase | None] = Counter()
    edges = np.flatnonzero(np.diff(np.concatenate([[False], cells, [False]]).astype(np.int8)))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        votes[doing.phase(doing.span.us(first), doing.span.us(last))] += last - first
    return votes.most_common(1)[0][0]


def _places(made: Grid, rows: Sequence[int] | range, cells: Mask, first: int, last: int) -> str | None:
    """Where most of these ranks were."""
    chosen = np.zeros(made.span.cells, bool)
    chosen[first * CELLS : last * CELLS] = True
    found: Counter[str] = Counter()
    for row in rows:
        found += made.doing[row].places(cells[row] & chosen)
    return found.most_common(1)[0][0] if found else None


def _natives(made: Grid, rows: Sequence[int] | range, from_us: int, to_us: int) -> str | None:
    """In which native function most of these ranks waited."""
    found = Counter(place for row in rows if (place := made.doing[row].native_place(from_us, to_us)))
    return found.most_common(1)[0][0] if found else None


def _stays(doing: Activity, from_us: int, to_us: int) -> bool:
    """Whether its main thread was in one place all that time."""
    stacks = {each.frames for each in doing.doing if each.to_us > from_us and each.from_us < to_us}
    return len(stacks) == 1


def _smooth(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The sum of SMOOTH_S seconds around each."""
    half = SMOOTH_S // 2
    padded = np.pad(values, ((0, 0), (half, half)))
    found: npt.NDArray[np.float64] = np.lib.stride_tricks.sliding_window_view(padded, SMOOTH_S, axis=1).sum(axis=2)
    return found


def _runs(held: Mask, apart: int = APART_S) -> Iterator[tuple[int, int]]:
    """[first, last) of seconds; those that are `apart` or less from each other are one."""
    at = np.flatnonzero(held)
    if len(at):
        for part in np.split(at, np.flatnonzero(np.diff(at) > apart + 1) + 1):
            yield int(part[0]), int(part[-1]) + 1


def _longest(cells: Mask, judged: Mask) -> int:
    """The longest run of cells that are lost to it; BRIDGED that nobody could judge do not end one."""
    at = np.flatnonzero(cells)
    if not len(at):
        return 0
    against = np.cumsum(judged & ~cells)
    ends = (np.diff(at) > BRIDGED) | (np.diff(against[at]) > 0)
    return max(int(part[-1] - part[0]) + 1 for part in np.split(at, np.flatnonzero(ends) + 1))
