"""GPUs that fell idle while the process that used them lives: since when, and what is known of those who feed it.

That a GPU does nothing is no symptom: the end of a job, an evaluation, a checkpoint, a notebook whose cell is done and
an inference server without requests all look the same. What tells a training that stopped is the time before (steadily
used, and not idle every now and then) together with a witness:

- its workers, or the process itself, are stopped by a signal; or
- the whole tree of processes uses no CPU, its workers did before, and its main thread waits in a call in which it was
  seen while the GPU was used: the same function of its own code, which called the same function of a library.

A checkpoint or an evaluation is in another call, and uses the CPU; a job that ends within ten seconds was at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.input_workers import workers
from zombiescope.diagnosis.quiet_workers import Quiet, quiet, used, used_before
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.thresholds import (
    GPU_ASKED_EVERY_US,
    GPU_IDLE_LEAST_PAST_S,
    GPU_IDLE_LEAST_S,
    GPU_IDLE_LEAST_USUAL,
    GPU_IDLE_MOSTLY_SHARE,
    GPU_IDLE_PAST_S,
    GPU_IDLE_PAUSE_S,
    GPU_IDLE_RATIO,
    GPU_IDLE_SETTLED_US,
    GPU_STEADY_PART,
    GPU_STEADY_RATIO,
    TRAINER_NO_CPU_LEAST,
    TRAINER_NO_CPU_MOST,
    TRAINER_NO_CPU_RATIO,
)
from zombiescope.query.gpu_use import Floats, GpuSeries, Tenant, falls
from zombiescope.query.python import Doing, PythonFrame, PythonThread, own
from zombiescope.store.columns import Mask
from zombiescope.store.hangs import ASLEEP, STOPPED, SUSPENDED


@dataclass(frozen=True, slots=True)
class Place:
    """Where the main thread waits."""

    own: PythonFrame
    called: PythonFrame | None
    is_same: bool
    """It was seen in that call while the GPU was used."""

    @property
    def text(self) -> str:
        name = self.own.name if self.called is None else self.called.name
        return f"waits in {name}, {self.own.place}"


@dataclass(frozen=True)
class IdleGpu:
    facts: Facts
    gpu: int
    usual: float
    from_us: int
    to_us: int
    tenants: tuple[Tenant, ...]

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6

    @cached_property
    def pids(self) -> frozenset[int]:
        return frozenset(one.pid for one in self.tenants)

    @cached_property
    def stopped(self) -> tuple[Quiet, ...]:
        """Workers that were stopped by a signal, or the process itself."""
        return self._quiet(STOPPED)

    @cached_property
    def suspended(self) -> tuple[Quiet, ...]:
        """By somebody at a terminal."""
        return self._quiet(SUSPENDED)

    @cached_property
    def asleep(self) -> tuple[Quiet, ...]:
        return self._quiet(ASLEEP)

    def _quiet(self, kind: str) -> tuple[Quiet, ...]:
        found = (one for one in quiet(self.facts, kind) if one.overlaps(self.from_us - GPU_IDLE_SETTLED_US, self.to_us))
        return tuple(one for one in found if one.parent in self.pids or not self.pids.isdisjoint(one.pids))

    @cached_property
    def workers_before(self) -> int:
        """Processes below that used the CPU in the time before."""
        past_us = GPU_IDLE_PAST_S * SECOND_US
        if self.from_us - self.facts.start_us >= past_us:
            return workers(self.facts, self.pids, self.from_us - past_us, self.from_us).many
        past = self.facts.before(self.from_us, past_us)
        return 0 if past is None else workers(past, self.pids, past.start_us, past.end_us).many

    @cached_property
    def uses_no_cpu(self) -> bool:
        """Of a tree that used some."""
        before = used_before(self.facts, self.pids, self.from_us, GPU_IDLE_PAST_S * SECOND_US, tree=True)
        now = used(self.facts, self.pids, self.from_us + GPU_IDLE_SETTLED_US, self.to_us, tree=True)
        if not before or now is None:
            return False
        return now <= max(TRAINER_NO_CPU_LEAST, min(TRAINER_NO_CPU_RATIO * before, TRAINER_NO_CPU_MOST))

    @cached_property
    def leading(self) -> Tenant:
        """The process with most memory stands for all."""
        return max(self.tenants, key=lambda one: (one.memory_bytes or 0, -one.pid))

    @cached_property
    def place(self) -> Place | None:
        """Of the main thread; None where it was not read, or did not wait."""
        now = _waits_in(self.facts.python_between(self.from_us + GPU_IDLE_SETTLED_US, self.to_us), self.leading.pid)
        if now is None:
            return None
        past = self.facts.before(self.from_us, GPU_IDLE_PAST_S * SECOND_US)
        before = frozenset[Call]() if past is None else _calls(past.python, self.leading.pid)
        return Place(*now, is_same=now[0].is_own and _call(*now) in before)

    @property
    def is_stopped(self) -> bool:
        return bool(self.stopped)

    @property
    def is_stuck(self) -> bool:
        """It waits for workers that do nothing, where it fed the GPU before."""
        return self.uses_no_cpu and self.workers_before > 0 and self.place is not None and self.place.is_same

    @property
    def may_be_stuck(self) -> bool:
        """One of the witnesses is missing."""
        known = self.place is None or self.place.is_same
        waits = self.uses_no_cpu and known and (self.workers_before > 0 or self.place is not None)
        return waits or bool(self.suspended)


def find(facts: Facts) -> list[IdleGpu]:
    """In the order of GPUs; kept, because several ask."""
    span = (facts.start_us, facts.end_us)
    return facts.always(
        ("idle GPUs", *span), lambda: [one for _, series in sorted(facts.gpus.items()) for one in _of(facts, series)]
    )


def _of(facts: Facts, series: GpuSeries) -> Iterator[IdleGpu]:
    use = series.figures["utilisation"]
    for fell, rose in falls(use):
        usual = _steady(use[max(0, fell - GPU_IDLE_PAST_S) : fell])
        if usual is None:
            continue
        for first, last in runs(_is_idle(use[fell:rose], usual), least=GPU_IDLE_LEAST_S):
            from_us, to_us = series.at_us(fell + first), min(series.at_us(fell + last), facts.end_us)
            tenants = tuple(_tenants(facts, series.gpu, from_us))
            to_us = min(to_us, max((_stays_us(one, to_us) for one in tenants), default=0))
            if to_us > facts.start_us and to_us - from_us >= GPU_IDLE_LEAST_S * SECOND_US:
                yield IdleGpu(facts, series.gpu, usual, from_us, to_us, tenants)


def _is_idle(use: Floats, usual: float) -> Mask:
    """A second that is not known is like the one before it."""
    known = np.flatnonzero(~np.isnan(use))
    place = np.maximum(np.searchsorted(known, np.arange(len(use)), "right") - 1, 0)
    idle: Mask = use[known[place]] <= GPU_IDLE_RATIO * usual
    return idle


def _steady(past: Floats) -> float | None:
    """What was usual, of a GPU that was used all the time."""
    known = past[~np.isnan(past)]
    if len(known) < GPU_IDLE_LEAST_PAST_S:
        return None
    usual = float(np.median(known))
    used_well = known >= GPU_STEADY_RATIO * usual
    is_steady = used_well.mean() >= GPU_STEADY_PART and not any(runs(~used_well, least=GPU_IDLE_PAUSE_S))
    return usual if is_steady and usual >= GPU_IDLE_LEAST_USUAL else None


def _tenants(facts: Facts, gpu: int, from_us: int) -> Iterator[Tenant]:
    """Who used it in the time before, and was there when it fell idle."""
    for one in facts.gpu_tenants:
        was_there = one.from_us <= from_us - GPU_IDLE_LEAST_PAST_S * SECOND_US
        if one.gpu == gpu and was_there and one.overlaps(from_us, from_us + SECOND_US):
            yield one


def _stays_us(tenant: Tenant, to_us: int) -> int:
    """Until when it was certainly there: that a process left is noticed some seconds later."""
    return to_us if tenant.to_us is None else min(to_us, tenant.to_us - GPU_ASKED_EVERY_US)


# --- where it is in its Python code -----------------------------------------------------------------------------------

Call = tuple[str, str, str | None]
"""A function of its own code, its file, and the function of a library that it called."""


def _call(frame: PythonFrame, called: PythonFrame | None) -> Call:
    return frame.name, frame.file, None if called is None else called.name


def _main_looks(threads: Collection[PythonThread], pid: int) -> list[Doing]:
    return next((one.doing for one in threads if one.tid == pid), [])


def _waits_in(threads: Collection[PythonThread], pid: int) -> tuple[PythonFrame, PythonFrame | None] | None:
    """The place in its own code at which the main thread waited in most of its looks."""
    seen = _main_looks(threads, pid)
    looks: Counter[tuple[PythonFrame, PythonFrame | None]] = Counter()
    for doing in seen:
        if doing.waits is not False:
            looks[own(doing.frames)] += doing.looks
    place, most = looks.most_common(1)[0] if looks else (None, 0)
    return place if most >= GPU_IDLE_MOSTLY_SHARE * sum(doing.looks for doing in seen) else None


def _calls(threads: Collection[PythonThread], pid: int) -> frozenset[Call]:
    return frozenset(_call(*own(doing.frames)) for doing in _main_looks(threads, pid))
