"""Where the GPU seconds went: every second of every GPU, to what it did or to what it waited for.

    wall = busy + host + data + core + collective + storage + throttled + stopped + broken + unused + unknown

`busy` is what NVML says: the part of the second in which a kernel ran. The rest of the second is what its processes
were doing (activity.py), in the parts in which their looks saw it; what no look saw is `unknown` and is never spread
over the others. `unused`: nobody was on the GPU. `throttled`: the driver held its clocks down for heat or for the power
brake, whether it worked or not. A GPU that is lost, or that has to be reset, is `broken`.

Where several processes (or jobs) share a GPU, each has an equal part of its wall time, and what the GPU did is
`unknown`, for NVML does not say which of them it worked for; what they waited for is known of each.

A second without a row was not measured. Under MIG the driver gives no utilisation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.model.answer import HIDDEN, Field
from zombiescope.query import activity, gpu_use
from zombiescope.query.activity import CELLS, Activity
from zombiescope.query.gpu_use import SLOWED, GpuSeries, Tenant, tenants
from zombiescope.query.jobs import Job, Rank, jobs
from zombiescope.store import columns
from zombiescope.store.reader import Recording

By = Literal["job", "process", "gpu"]
Floats = npt.NDArray[np.float64]

STATES = ("data", "core", "collective", "storage", "throttled", "stopped", "broken", "unknown", "host", "unused")
"""What a GPU-second can be instead of busy."""
CHUNK_US = 600 * SECOND_US
LATE_US = 40 * SECOND_US
LOOKS_OF_A_SECOND = 3
"""So many cells stand for a whole second; of fewer each is a third of it."""
_BROKEN = ("lost", "reset_required", "unreadable")
_OF_ACTIVITY = {
    activity.HOST: "host", activity.CORE: "core", activity.COLLECTIVE: "collective", activity.BACKWARD: "collective",
    activity.DATA: "data", activity.STORAGE: "storage", activity.STOPS: "stopped", activity.DEVICE: "host",
}  # fmt: skip
"""Waiting for the device while the device is idle is the time between two of its kernels: the program's own. What
waits in no known place is unknown."""


@dataclass(frozen=True, slots=True)
class Waited:
    """Seconds in which a GPU did nothing, by what it waited for; together with busy_s they are wall_s."""

    data: Annotated[float, Field(means="the next batch")]
    core: Annotated[float, Field(means="a core: its process wanted to run and did not")]
    collective: Annotated[float, Field(means="other ranks")]
    storage: Annotated[float, Field(means="a file or object store, or the kernel for a disk or server")]
    throttled: Annotated[float, Field(means="heat or the power brake: its clocks were held down")]
    stopped: Annotated[float, Field(means="its process, or one that feeds it, was stopped by a signal")]
    broken: Annotated[float, Field(means="the GPU is lost or has to be reset")]
    unknown: Annotated[float, Field(means="not known; never spread over the others")]
    host: Annotated[float, Field(means="its own process, which ran on a core")]
    unused: Annotated[float, Field(means="no process used it")]


@dataclass(frozen=True, slots=True)
class GpuSeconds:
    """One line of the account. What a line is not about is null."""

    gpu: Annotated[int | None, Field("gpu", "count")]
    job: Annotated[
        str | None,
        Field("job", means="slurm/ID, ray/ID, torchrun/RUN, kubernetes/NAMESPACE/OWNER; else pod, container or unit"),
    ]
    rank: Annotated[int | None, Field("rank", "count")]
    pid: Annotated[int | None, Field("pid")]
    comm: Annotated[str | None, Field("program")]
    pod: Annotated[str | None, Field(means="namespace/name, where it is known")]
    namespace: Annotated[str | None, HIDDEN]
    owner: Annotated[str | None, HIDDEN]
    gpus: Annotated[int, Field("gpus", "count")]
    wall_s: Annotated[float, Field("wall", "duration")]
    busy_s: Annotated[float, Field("busy", "duration")]
    waited: Waited


Phase = Literal["start", "evaluation", "checkpoint", "end"]


@dataclass(frozen=True, slots=True)
class IdleSpan:
    """A GPU that was in use and did next to nothing for a while."""

    gpu: int
    from_us: int
    to_us: int
    seconds: float
    usual: Annotated[float, Field(means="percent, the median of the minute before")]
    job: str | None
    rank: int | None
    pid: int | None
    phase: Annotated[Phase | None, Field(means="what the job was doing; null: a training step, or not known")]
    state: Annotated[str, Field(means="most of it: as the keys of waited")]
    text: str


@dataclass(frozen=True, slots=True)
class Account:
    rows: tuple[GpuSeconds, ...]
    idle: tuple[IdleSpan, ...]


@dataclass(slots=True)
class _Line:
    key: tuple[Any, ...]
    who: dict[str, Any]
    wall_s: float = 0.0
    busy_s: float = 0.0
    gpus: set[int] = field(default_factory=set)
    waited: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STATES, 0.0))


@dataclass(frozen=True, slots=True)
class _Process:
    """A process on a GPU, and who it is."""

    tenant: Tenant
    job: str
    rank: Rank | None
    namespace: str | None
    owner: str | None


class _Known:
    """All that an account is made of, read once."""

    def __init__(self, recording: Recording, start_us: int, end_us: int) -> None:
        self.start_us = start_us // SECOND_US * SECOND_US
        self.end_us = -(-end_us // SECOND_US) * SECOND_US
        span = (self.start_us, self.end_us)
        self.series = gpu_use.load(recording, *span)
        self.past = gpu_use.load(recording, self.start_us - 60 * SECOND_US, self.end_us) if self.series else {}
        found = tenants(recording, *span)
        self.states = _gpu_states(recording, *span)
        for gpu in self.states:
            self.series.setdefault(gpu, _nothing(gpu, *span))
        self.jobs = jobs(recording, *span)
        ranked = {one.pid: (job, one) for job in self.jobs for one in job.ranks}
        self.processes = [_process(one, ranked.get(one.pid)) for one in found]
        pids = {one.pid for one in found}
        self.doing = activity.read(recording, pids, *span) if pids else {}

    @property
    def seconds(self) -> int:
        return (self.end_us - self.start_us) // SECOND_US

    def on(self, gpu: int, second: int) -> list[_Process]:
        from_us = self.start_us + second * SECOND_US
        return [
            one for one in self.processes if one.tenant.gpu == gpu and one.tenant.overlaps(from_us, from_us + SECOND_US)
        ]


def account(recording: Recording, start_us: int, end_us: int, by: By = "job") -> Account:
    """`end_us` is not part of the window; it is of whole seconds. What the driver has not said yet at the end of a
    recording that goes on is left out."""
    end_us = _said_until(recording, start_us, end_us)
    lines: dict[tuple[Any, ...], _Line] = {}
    idle: list[IdleSpan] = []
    for from_us in range(start_us, end_us, CHUNK_US):  # so that a day costs time, not memory
        known = _Known(recording, from_us, min(end_us, from_us + CHUNK_US))
        for gpu in sorted(known.series):
            for second in range(known.seconds):
                _charge(lines, known, gpu, second, by)
        idle += _idle_spans(known)
    rows = sorted((_row(line) for line in lines.values()), key=lambda row: (-row.wall_s, row.gpu or 0, row.pid or 0))
    return Account(tuple(rows), tuple(idle))


def _charge(lines: dict[tuple[Any, ...], _Line], known: _Known, gpu: int, second: int, by: By) -> None:
    """One second of one GPU, to each of its processes an equal part."""
    there = known.on(gpu, second)
    groups: dict[Any, list[_Process]] = {}
    for one in there:
        groups.setdefault(one.job if by == "job" else one.tenant.pid, []).append(one)
    if not there or by == "gpu":
        shares = [_second(known, gpu, second, there, alone=True)]
        mine: list[list[_Process]] = [there]
    else:
        mine = list(groups.values())
        shares = [_second(known, gpu, second, each, alone=len(mine) == 1) for each in mine]
    for each, (busy, waited) in zip(mine, shares, strict=True):
        line = _line(lines, gpu, each, by)
        part = 1.0 / len(mine)
        line.wall_s += part
        line.busy_s += busy * part
        line.gpus.add(gpu)
        for state, value in waited.items():
            line.waited[state] += value * part


def _second(
    known: _Known, gpu: int, second: int, there: Sequence[_Process], *, alone: bool
) -> tuple[float, dict[str, float]]:
    """(busy, waited) of a second, together 1."""
    state = known.states.get(gpu, [])
    at_us = known.start_us + (second + 1) * SECOND_US - 1
    if _state_at(state, at_us) in _BROKEN:
        return 0.0, {"broken": 1.0}
    figures = known.series[gpu].figures
    used = float(figures["utilisation"][second])
    if np.isnan(used):
        return 0.0, {"unknown": 1.0}
    throttled = min(1.0, sum(float(np.nan_to_num(figures[name][second])) for name in SLOWED) / 1e9)
    busy = max(0.0, min(1.0, used / 100))
    if not there:
        return 0.0, {"unused": 1.0 - busy, "unknown": busy} if busy else {"unused": 1.0}
    held = min(throttled, 1.0)
    waited = {"throttled": held}
    busy, rest = busy * (1 - held), (1 - busy) * (1 - held)
    if not alone:
        waited["unknown"], busy = busy, 0.0
    for name, part in _shares(known, second, there).items():
        waited[name] = waited.get(name, 0.0) + rest * part
    waited["unknown"] = waited.get("unknown", 0.0) + 1.0 - busy - sum(waited.values())
    return busy, {name: max(0.0, value) for name, value in waited.items() if value > 1e-12}


def _shares(known: _Known, second: int, there: Sequence[_Process]) -> dict[str, float]:
    """Of the processes on it, what they did in the second; at most 1, the rest was not looked at."""
    found: dict[str, float] = {}
    for one in there:
        for name, part in second_of(known.doing[one.tenant.pid], second).items():
            found[name] = found.get(name, 0.0) + part / len(there)
    return found


def second_of(doing: Activity, second: int) -> dict[str, float]:
    """State -> part of one second, without what is not known."""
    part = doing.cells[second * CELLS : (second + 1) * CELLS]
    seen = part[part != activity.UNKNOWN]
    if not len(seen):
        return {}
    weight = min(1.0, len(seen) / LOOKS_OF_A_SECOND) / len(seen)
    found: dict[str, float] = {}
    for number, many in zip(*np.unique(seen, return_counts=True), strict=True):
        name = _OF_ACTIVITY.get(int(number))
        if name is not None:
            found[name] = found.get(name, 0.0) + weight * int(many)
    return found


def _line(lines: dict[tuple[Any, ...], _Line], gpu: int, there: Sequence[_Process], by: By) -> _Line:
    first = there[0] if there else None
    key: tuple[Any, ...]
    who: dict[str, Any] = {"gpu": gpu}
    if by == "gpu":
        key = (gpu,)
        jobs_there = {one.job for one in there}
        who["job"] = jobs_there.pop() if len(jobs_there) == 1 else None
    elif first is None:
        key = ("unused", gpu)
    elif by == "process":
        key = (gpu, first.tenant.pid, first.tenant.start_ticks)
        who |= {"job": first.job, "rank": first.rank and first.rank.rank, "pid": first.tenant.pid,
                "comm": first.tenant.comm, "pod": first.tenant.named.pod_path or first.tenant.pod,
                "namespace": first.namespace, "owner": first.owner}  # fmt: skip
    else:
        key = ("job", first.job)
        pods = {one.tenant.named.pod_path or one.tenant.pod for one in there}
        comms = {one.tenant.comm for one in there}
        who = {"gpu": gpu, "job": first.job, "comm": comms.pop() if len(comms) == 1 else None,
               "pod": pods.pop() if len(pods) == 1 else None, "namespace": first.namespace,
               "owner": first.owner}  # fmt: skip
    return lines.setdefault(key, _Line(key, who))


def _row(line: _Line) -> GpuSeconds:
    who = {name: line.who.get(name) for name in ("job", "rank", "pid", "comm", "pod", "namespace", "owner")}
    gpu = line.who["gpu"] if len(line.gpus) == 1 else None
    waited = Waited(**{name: round(value, 3) for name, value in line.waited.items()})
    return GpuSeconds(gpu=gpu, **who, gpus=len(line.gpus), wall_s=round(line.wall_s, 3), busy_s=round(line.busy_s, 3),
                      waited=waited)  # fmt: skip


def _process(one: Tenant, ranked: tuple[Job, Rank] | None) -> _Process:
    named = one.named
    if ranked is not None:
        job, rank = ranked
        return _Process(one, job.id, rank, named.namespace, named.owner or job.id)
    if named.owner:
        return _Process(
            one, f"kubernetes/{named.namespace or 'default'}/{named.owner}", None, named.namespace, named.owner
        )
    return _Process(one, named.pod_path or one.job, None, named.namespace, one.unit or one.comm)


# --- what was measured ------------------------------------------------------------------------------------------------


def _said_until(recording: Recording, start_us: int, end_us: int) -> int:
    """Rows of seconds come up to LATE_US after them."""
    end_us = max(start_us + 1, end_us // SECOND_US * SECOND_US)
    broken = any(
        state in _BROKEN for states in _gpu_states(recording, start_us, end_us).values() for _, state in states
    )
    if broken or end_us <= recording.end_us - LATE_US:
        return end_us  # a broken GPU has no rows, and that is no delay
    last_us = 0
    for batch in recording.batches("gpu_seconds", end_us - LATE_US, end_us + 1, ("time",)):
        last_us = max(last_us, int(columns.numbers(batch.column("time")).max(initial=0)))
    return max(start_us + 1, last_us) if last_us else end_us


def _nothing(gpu: int, start_us: int, end_us: int) -> GpuSeries:
    seconds = max(1, (end_us - start_us) // SECOND_US)
    return GpuSeries(gpu, start_us, {name: np.full(seconds, np.nan) for name in (*gpu_use.LEVELS, *SLOWED)})


def _gpu_states(recording: Recording, start_us: int, end_us: int) -> dict[int, list[tuple[int, str | None]]]:
    """Of each GPU that is known in the window, its states in the order of time."""
    rows = columns.records(recording.table("gpus", start_us - HOUR_US, end_us, ("time", "gpu", "state")))
    found: dict[int, list[tuple[int, str | None]]] = {}
    for row in rows:
        if row["gpu"] is not None:
            found.setdefault(row["gpu"], []).append((row["time"], row["state"]))
    return found


def _state_at(states: Sequence[tuple[int, str | None]], at_us: int) -> str | None:
    return next((state for time_us, state in reversed(states) if time_us <= at_us), None)


# --- idle GPUs, in a sentence -----------------------------------------------------------------------------------------

IDLE_LEAST_S = 3
IDLE_RATIO = 0.3
"""Of its usual use."""
LEAVES_S = 10
"""A process that leaves its GPU so soon was at its end."""
_FOR = {
    "data": "waits for the next batch", "core": "waits for a core", "collective": "waits for other ranks",
    "storage": "waits for storage", "stopped": "is itself stopped by a signal (SIGSTOP)",
    "host": "computes on the host", "unknown": "does something that is not known",
}  # fmt: skip


def _idle_spans(known: _Known) -> Iterator[IdleSpan]:
    for gpu, series in sorted(known.past.items()):
        use = series.figures["utilisation"]
        before = (known.start_us - series.start_us) // SECOND_US
        for first, last in gpu_use.falls(use):
            if last - first < IDLE_LEAST_S or last <= before:
                continue
            usual = _usual(use, first)
            if usual is None or float(np.nanmean(use[first:last])) > IDLE_RATIO * usual:
                continue
            from_us, to_us = series.at_us(first), series.at_us(last)
            there = [one for one in known.processes if one.tenant.gpu == gpu]
            there = [one for one in there if one.tenant.overlaps(from_us - SECOND_US, from_us + SECOND_US)]
            yield _idle(known, gpu, from_us, to_us, usual, there)


def _usual(use: Floats, first: int) -> float | None:
    past = use[max(0, first - 60) : first]
    past = past[~np.isnan(past)]
    return float(np.median(past)) if len(past) >= gpu_use.LEAST_PAST_S else None


def _idle(known: _Known, gpu: int, from_us: int, to_us: int, usual: float, there: Sequence[_Process]) -> IdleSpan:
    seconds = (to_us - from_us) / 1e6
    head = f"GPU {gpu} idle for {seconds:.0f} s (usually {usual:.0f}%)"
    if not there:
        text = f"{head}: no process uses it"
        return IdleSpan(gpu, from_us, to_us, seconds, usual, None, None, None, "end", "unused", text)
    lead = max(there, key=lambda one: one.tenant.memory_bytes or 0)
    doing = known.doing[lead.tenant.pid]
    cells = np.zeros(doing.span.cells, bool)
    cells[doing.span.between(from_us, to_us)] = True
    totals: dict[str, float] = {}
    for second in range(doing.span.cells // CELLS):
        if cells[second * CELLS]:
            for name, part in second_of(doing, second).items():
                totals[name] = totals.get(name, 0.0) + part
    state = max(totals, key=lambda name: totals[name]) if sum(totals.values()) >= seconds * 0.3 else "unknown"
    phase = _phase(doing, lead.tenant, from_us, to_us)
    where = doing.places(cells).most_common(1)
    number = lead.rank.rank if lead.rank is not None else None
    which = f"pid {lead.tenant.pid}" if number is None else f"rank {number}, pid {lead.tenant.pid}"
    who = f"{lead.tenant.comm or 'its process'} ({which})"
    workers = doing.workers_text(from_us, to_us) if state in ("data", "storage", "stopped", "unknown") else None
    own = state != "stopped" or workers is None
    said = f"{who} {_FOR[state if own else 'data']}" + (f" in {where[0][0]}" if where else "")
    why = doing.why(activity.STORAGE, from_us, to_us) if state == "storage" and workers is None else None
    text = "; ".join([f"{head}: {said}", *(one for one in (why, workers) if one)]) + (f" ({phase})" if phase else "")
    return IdleSpan(
        gpu, from_us, to_us, seconds, round(usual, 1), lead.job, number, lead.tenant.pid, phase, state, text
    )


def _phase(doing: Activity, tenant: Tenant, from_us: int, to_us: int) -> Phase | None:
    """Start, evaluation, checkpoint and end of a job are no training steps: named functions of libraries and of the
    usual trainers say so, or that the process leaves its GPU."""
    if tenant.to_us is not None and tenant.to_us <= to_us + LEAVES_S * SECOND_US:
        return "end"
    return doing.phase(from_us, to_us)
