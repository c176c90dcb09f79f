"""One job over several nodes: its ranks on one axis, whatever their clocks say, and who was late among all of them.

Ranks of a job leave a collective together, on every node. So the moments in which ranks stop waiting are a clock that
all nodes share: each node is shifted against the first by the offset at which most of these moments meet, to a tenth
of a second. Where programs report steps (zombiescope.step) the same step's beginning is used instead, to the
millisecond. Where neither tells, the offset is null and the nodes' own clocks are believed.

A job is the same on two nodes if its id is; ids that only mean something on one machine (127.0.0.1, children of a pid)
are never joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
import numpy.typing as npt

from zombiescope.model.answer import Document, Field
from zombiescope.query import late_ranks
from zombiescope.query.activity import CELL_US, CELLS, UNKNOWN, Activity, Span
from zombiescope.query.jobs import Job, Rank, Step, jobs, steps
from zombiescope.query.late_ranks import Grid
from zombiescope.store.reader import Recording

MOST_OFFSET_S = 30
LEAST_EDGES = 8
CLEAR = 1.5
"""The best offset has so many times as many moments in common as the next one that is not beside it."""
LEAST_STEPS = 5
_LOCAL = ("127.", "localhost", "::1", "[::1]")


@dataclass(frozen=True, slots=True)
class JobRank:
    """A rank over the window: for how long all others waited for it, and for how long it waited itself."""

    rank: Annotated[int | None, Field("rank", "count")]
    node: Annotated[str, Field("node")]
    pid: Annotated[int, Field("pid")]
    comm: str | None
    seen_s: float
    waited_s: Annotated[float, Field("waited", "duration", means="in a collective")]
    late_s: Annotated[float, Field("others waited", "duration", means="in which all others waited for it")]
    steps: int | None
    step_s: Annotated[float | None, Field("step", "duration", means="the median, as the program reported them")]


@dataclass(frozen=True, slots=True)
class JobNode:
    node: str
    ranks: list[int]
    clock_offset_s: Annotated[float | None, Field(means="against the first node; null where nothing tells it")]
    by: Annotated[str | None, Field(means="steps or collectives")]


@dataclass(frozen=True, slots=True)
class LateRank:
    rank: int | None
    node: str
    pid: int
    from_us: int
    to_us: int
    late_s: float
    times: int
    state: str
    place: str | None
    native: Annotated[str | None, Field(means="the native function in which it waited")]
    is_stuck: bool
    phase: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """All ranks that were looked at wait, and the one that did not come is in none of these recordings."""

    from_us: int
    to_us: int
    ranks: int
    place: str | None
    missing: int | None


@dataclass(frozen=True, slots=True)
class JobReport(Document):
    job: str
    kind: str
    world_size: int | None
    from_us: int
    to_us: int
    nodes: list[JobNode]
    ranks: list[JobRank]
    late: list[LateRank]
    all_wait: list[Waiting]


@dataclass(frozen=True, slots=True)
class NodeJob:
    """What one recording knows of the job."""

    node: str
    job: Job
    grid: Grid | None
    steps: list[Step]


def of_node(recording: Recording, name: str, start_us: int, end_us: int) -> list[NodeJob]:
    """Jobs that are called so, in one recording."""
    found = []
    for job in jobs(recording, start_us, end_us):
        if job.is_called(name):
            doing = late_ranks.of_job(recording, job, start_us, end_us)
            pids = {one.pid for one in job.ranks}
            told = [one for one in steps(recording, start_us, end_us) if one.pid in pids]
            found.append(NodeJob(recording.name, job, late_ranks.grid(job, doing, least=1), told))
    return found


def is_local(job: Job) -> bool:
    """Whether its id means nothing on another machine."""
    name = job.id.partition("/")[2]
    return name.startswith((*_LOCAL, "children of "))


def together(found: Sequence[NodeJob]) -> JobReport:
    """Of recordings of one job, one at least; those without a rank that was looked at say nothing."""
    usable = [one for one in found if one.grid is not None]
    if not usable:
        first = found[0].job
        return JobReport(first.id, first.kind, first.world_size, 0, 0, [], [], [], [])
    anchor = usable[0]
    offsets = [(0.0, None), *(_offset(anchor, one) for one in usable[1:])]
    nodes = [
        JobNode(one.node, sorted(rank.rank for rank in one.job.ranks if rank.rank is not None),
                0.0 if at == 0 else offset, by)
        for at, (one, (offset, by)) in enumerate(zip(usable, offsets, strict=True))
    ]  # fmt: skip
    grid, where = _merged(usable, [offset or 0.0 for offset, _ in offsets])
    told = [replace(step, at_us=step.at_us - round((offset or 0.0) * 1e6))
            for one, (offset, _) in zip(usable, offsets, strict=True) for step in one.steps]  # fmt: skip
    lost = late_ranks.lost_to(grid)
    ranks = [_rank(grid, row, where[row], lost[row], usable) for row in range(len(grid.ranks))]
    late = [
        LateRank(one.rank.rank, where[grid.ranks.index(one.rank)], one.rank.pid, one.from_us, one.to_us, one.late_s,
                 one.times, one.state, one.place, one.native, one.is_stuck, one.phase, one.why)
        for one in late_ranks.late(grid, told)
    ]  # fmt: skip
    waits = [Waiting(one.from_us, one.to_us, one.ranks, one.place, one.missing) for one in late_ranks.all_wait(grid)]
    span = grid.span
    ordered = sorted(ranks, key=lambda one: (-one.late_s, one.rank or 0))
    return JobReport(
        anchor.job.id, anchor.job.kind, anchor.job.world_size, span.start_us, span.end_us, nodes, ordered, late, waits
    )


def _rank(grid: Grid, row: int, node: str, lost: npt.NDArray[np.bool_], found: Sequence[NodeJob]) -> JobRank:
    one = grid.ranks[row]
    mine = [step.took_us for each in found if each.node == node for step in each.steps if step.pid == one.pid]
    median = float(np.median(mine)) / 1e6 if mine else None
    seen, waited, late = (int(cells.sum()) * CELL_US / 1e6 for cells in (grid.known[row], grid.waits[row], lost))
    return JobRank(one.rank, node, one.pid, one.comm, seen, waited, late, len(mine) or None, median)


# --- clocks -----------------------------------------------------------------------------------------------------------


def _offset(first: NodeJob, other: NodeJob) -> tuple[float | None, str | None]:
    """How far the other's clock is ahead, and by what that is known."""
    by_step = _by_steps(first.steps, other.steps)
    if by_step is not None:
        return by_step, "steps"
    by_edges = None if first.grid is None or other.grid is None else _by_edges(first.grid, other.grid)
    return (None, None) if by_edges is None else (by_edges, "collectives")


def _by_steps(first: Sequence[Step], other: Sequence[Step]) -> float | None:
    """Ranks begin a step together, when they leave the collective of the one before: the median of the differences."""
    began: list[dict[tuple[str | None, int], int]] = []
    for told in (first, other):
        known: dict[tuple[str | None, int], list[int]] = {}
        for step in told:
            if step.number is not None:
                known.setdefault((step.phase, step.number), []).append(step.at_us)
        began.append({key: int(np.median(times)) for key, times in known.items()})
    both = began[0].keys() & began[1].keys()
    return float(np.median([began[1][key] - began[0][key] for key in both])) / 1e6 if len(both) >= LEAST_STEPS else None


def _by_edges(first: Grid, other: Grid) -> float | None:
    """The offset at which most moments in which ranks stop waiting meet; None where none stands out."""
    one, two = _leaves(first), _leaves(other)
    if len(one) < LEAST_EDGES or len(two) < LEAST_EDGES:
        return None
    base = first.span.start_us
    times = (one, two + (other.span.start_us - base) // CELL_US)
    most = MOST_OFFSET_S * CELLS
    counts = np.zeros(2 * most + 1, np.int64)
    for at in times[0]:
        near = times[1][np.abs(times[1] - at) <= most] - at + most
        np.add.at(counts, near, 1)
    smooth = np.convolve(counts, [1, 1, 1], "same")
    best = int(np.argmax(smooth))
    rest = np.delete(smooth, range(max(0, best - 3), min(len(smooth), best + 4)))
    if smooth[best] < LEAST_EDGES or smooth[best] < CLEAR * max(1, int(rest.max(initial=0))):
        return None
    return float((best - most) * CELL_US / 1e6)


def _leaves(grid: Grid) -> npt.NDArray[np.int64]:
    """Cells after waits of a second and more that all ranks of a node left: steps alike in length tell no offset."""
    together = (grid.waits | ~grid.known).all(axis=0) & grid.known.any(axis=0)
    edges = np.diff(np.concatenate([[False], together, [False]]).astype(np.int8))
    begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    found: npt.NDArray[np.int64] = ends[ends - begins >= 2]
    return found


# --- one axis ---------------------------------------------------------------------------------------------------------


def _merged(found: Sequence[NodeJob], offsets: Sequence[float]) -> tuple[Grid, list[str]]:
    """All ranks in the cells of the first node's clock, and the node of each."""
    grids = [one.grid for one in found if one.grid is not None]
    shifts = [round(offset * 1e6 / CELL_US) for offset in offsets]
    starts = [grid.span.start_us - shift * CELL_US for grid, shift in zip(grids, shifts, strict=True)]
    ends = [start + grid.span.cells * CELL_US for start, grid in zip(starts, grids, strict=True)]
    span = Span.of(min(starts), max(ends))
    ranks: list[Rank] = []
    doing: list[Activity] = []
    known, waits, nodes = [], [], []
    for one, grid, shift, start in zip(found, grids, shifts, starts, strict=True):
        at = (start - span.start_us) // CELL_US
        place = slice(at, at + grid.span.cells)
        for row, rank in enumerate(grid.ranks):
            cells = np.full(span.cells, UNKNOWN, np.int8)
            cells[place] = grid.doing[row].cells[: span.cells - at]
            masks = [np.zeros(span.cells, bool) for _ in range(2)]
            masks[0][place], masks[1][place] = grid.known[row], grid.waits[row]
            back_us = -shift * CELL_US
            moved = tuple(replace(each, from_us=each.from_us + back_us, to_us=each.to_us + back_us)
                          for each in grid.doing[row].doing)  # fmt: skip
            ranks.append(rank)
            said = tuple((a + back_us, b + back_us, state, what) for a, b, state, what in grid.doing[row].waits)
            natives = tuple(replace(each, at_us=each.at_us + back_us) for each in grid.doing[row].natives)
            doing.append(Activity(rank.pid, span, cells, moved, said, natives))
            known.append(masks[0])
            waits.append(masks[1])
            nodes.append(one.node)
    job = replace(found[0].job, ranks=tuple(ranks))
    return Grid(job, span, tuple(ranks), tuple(doing), np.stack(known), np.stack(waits)), nodes
