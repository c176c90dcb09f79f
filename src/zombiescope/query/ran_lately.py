"""Who ran in the last seconds of a recording that grows: processes by their samples, frame by frame and without numpy.

The same as query/who.py says of a window: samples by the rate are CPU seconds, by the length of the window CPUs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from zombiescope.base.time import SECOND_US
from zombiescope.query.memcg_walks import hertz
from zombiescope.query.segment_names import NamedTask, SegmentNames
from zombiescope.store import schema
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.stacks import KERNEL_KINDS

SPAN_US = 10 * SECOND_US


@dataclass(frozen=True, slots=True)
class RanProcess:
    """`cpus`: how many it had in the mean; `kernel_ratio`: the kernel's part of that."""

    pid: int | None
    comm: str | None
    owner: str | None
    cpus: float
    kernel_ratio: float

    @property
    def name(self) -> str:
        return f"{self.comm or '?'} [{self.pid}]" if self.pid is not None else "not known"


@dataclass(slots=True)
class _Process:
    comm: str | None
    owner: str | None
    samples: int = 0
    kernel: int = 0


class RanLately:
    """The newest SPAN_US of samples, second by second."""

    def __init__(self) -> None:
        self._names = SegmentNames()
        self._seconds: deque[tuple[int, dict[int | None, _Process]]] = deque()
        self._newest_us = 0
        self._first_us: int | None = None

    def update(self, frames: Iterable[LogFrame]) -> None:
        for frame in frames:
            self._names.update(frame)
            for block in frame.blocks:
                if block.table is schema.SAMPLES:
                    self._take(block)
            self._newest_us = frame.wall_us
            self._first_us = frame.wall_us if self._first_us is None else self._first_us
            if frame.closes:
                self._names.forget()
        while self._seconds and self._seconds[0][0] < self._newest_us - SPAN_US:
            self._seconds.popleft()

    def _take(self, block: Block) -> None:
        for at_us, task, stack in zip(*(block.column(name) for name in ("time", "task", "stack")), strict=True):
            process = self._process(at_us // SECOND_US * SECOND_US, self._names.tasks.get(task))
            process.samples += 1
            ids = self._names.stacks.get(stack, ())
            innermost = self._names.frames.get(ids[-1]) if ids else None
            process.kernel += innermost is not None and innermost.kind in KERNEL_KINDS

    def _process(self, second_us: int, task: NamedTask | None) -> _Process:
        # Rings are drained core by core: a sample may be of the second before.
        place = next((each for each in reversed(self._seconds) if each[0] == second_us), None)
        if place is None:
            place = (second_us, {})
            self._seconds.append(place)
        pid = task.pid if task else None
        found = place[1].get(pid)
        if found is None:
            owner = self._names.containers.owner(task.unit, task.container, task.pod) if task else None
            found = place[1][pid] = _Process(task.comm if task else None, owner[0] if owner else None)
        if task is not None and task.tid == task.pid:
            found.comm = task.comm
        return found

    def most(self, node: Mapping[str, Any], count: int) -> list[RanProcess]:
        """Those that ran most, most first; none before a second was seen."""
        sums: dict[int | None, _Process] = {}
        for _, processes in self._seconds:
            for pid, each in processes.items():
                total = sums.setdefault(pid, _Process(each.comm, each.owner))
                total.samples += each.samples
                total.kernel += each.kernel
        elapsed_s = min(SPAN_US, self._newest_us - (self._first_us or 0) + SECOND_US) / 1e6
        order = sorted(sums.items(), key=lambda item: -item[1].samples)[:count]
        return [
            RanProcess(pid, each.comm, each.owner, each.samples / hertz(node) / elapsed_s, each.kernel / each.samples)
            for pid, each in order
        ]
