"""The worst second: the core that the kernel held most in any one second, who ran there, and in which
kernel path.

It exists on every machine and is mostly harmless; it shows what the aggregate hides. worst_second() finds
it in a window of a recording; WorstSecond keeps it up to date while frames are appended, without numpy or
pyarrow.

Ticks shorter than a second are added up to one. Seconds with equal kernel time are ordered by their
number of samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zombiescope.base.time import SECOND_US
from zombiescope.query.segment_names import NamedTask, SegmentNames
from zombiescope.store import container_names, schema
from zombiescope.store.container_names import NO_NAMES, ContainerNames
from zombiescope.store.log import Block, LogFrame
from zombiescope.store.stacks import hottest_path, kernel_path
from zombiescope.store.thresholds import KERNEL_COLUMNS

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Worst:
    """`kernel_ratio` of the time from from_us to to_us went to the kernel on `cpu`.

    comm, pid and unit name the task with most kernel samples there, which had `task_ratio` of all samples
    of that core; path is its hottest kernel path, outermost first. All of these are None or empty without
    samples.
    """

    from_us: int
    to_us: int
    cpu: int
    kernel_ratio: float
    samples: int | None
    comm: str | None = None
    pid: int | None = None
    unit: str | None = None
    task_ratio: float | None = None
    path: tuple[str, ...] = ()
    container: str | None = None
    """By its name and its pod's, where they are known; its id where not."""

    @property
    def owner(self) -> str | None:
        """Whose the task is, as people call it."""
        return self.container or self.unit


_Sample = tuple[NamedTask | None, tuple[str, ...]]


def _explain(worst: Worst, samples: list[_Sample], names: ContainerNames) -> Worst:
    """The same second with who and where, from the samples of its core."""
    if not samples:
        return worst
    in_kernel = [(task, path) for task, path in samples if path]
    counts = Counter(task for task, _ in in_kernel or samples)
    task = counts.most_common(1)[0][0]
    path = hottest_path(path for other, path in in_kernel if other == task)
    share = sum(other == task for other, _ in samples) / len(samples)
    who = (task.comm, task.pid, task.unit) if task else (None, None, None)
    owner = names.owner(task.unit, task.container, task.pod) if task else None
    container = owner[0] if owner and owner[1] == "container" else None
    same = (worst.from_us, worst.to_us, worst.cpu, worst.kernel_ratio, worst.samples)
    return Worst(*same, *who, share, path, container)


# --- from a recording ---------------------------------------------------------------------------------------


def worst_second(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> Worst | None:
    """The worst second of a window; None when no core was measured in it."""
    from zombiescope.query.core_seconds import worst_core_second

    found = worst_core_second(recording, start_us, end_us)
    if found is None:
        return None
    worst = Worst(found.from_us, found.to_us, found.cpu, found.kernel_ratio, found.samples)
    samples = _recorded_samples(recording, worst)
    boxes = {task.container for task, _ in samples if task and task.container}
    span = (worst.from_us, worst.to_us)
    return _explain(worst, samples, container_names.read(recording, *span, boxes) if boxes else NO_NAMES)


def _recorded_samples(recording: Recording, worst: Worst) -> list[_Sample]:
    """Who ran on the core of the worst second and in which kernel path, sample by sample."""
    from zombiescope.query.core_seconds import samples_of_core

    samples = samples_of_core(recording, worst.cpu, worst.from_us, worst.to_us)
    return [(task, kernel_path(frames)) for task, frames in samples]


# --- frame by frame -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Second:
    """Ticks of one core until they make up a second."""

    elapsed_us: int = 0
    kernel_ms: int = 0
    samples: int = 0


class WorstSecond:
    """The worst second of all frames so far, in `worst`."""

    def __init__(self) -> None:
        self.worst: Worst | None = None
        self._names = SegmentNames()
        self._seconds: dict[int, _Second] = {}
        self._recent: list[Block] = []
        self._found: list[_Sample] = []
        self._open = False

    def update(self, frames: Iterable[LogFrame]) -> None:
        """Frames in the order they were appended."""
        for frame in frames:
            self._names.update(frame)
            samples = [block for block in frame.blocks if block.table is schema.SAMPLES]
            if self._open:  # rings are drained core by core: the end of a second may come with the next frame
                self._collect(samples)
                self._open = False
            self._recent = [*self._recent[-2:], *samples]
            for block in frame.blocks:
                if block.table is schema.CORES and self._add(block):
                    self._found = []
                    self._collect(self._recent)
                    self._open = True
            if frame.closes:
                self._names.forget()
                self._recent = []

    def _add(self, block: Block) -> bool:
        """Whether a core of the block had a second worse than any before."""
        wanted = ("time", "interval_us", "cpu", "samples", *KERNEL_COLUMNS)
        worse = False
        for time, interval_us, cpu, samples, *modes in zip(*(block.column(name) for name in wanted), strict=True):
            if all(ms is None for ms in modes):
                continue
            second = self._seconds.setdefault(cpu, _Second())
            second.elapsed_us += interval_us
            second.kernel_ms += sum(ms for ms in modes if ms is not None)
            second.samples += samples or 0
            if second.elapsed_us * 10 >= SECOND_US * 9:
                worse |= self._judge(time, cpu, self._seconds.pop(cpu))
        return worse

    def _judge(self, time: int, cpu: int, second: _Second) -> bool:
        ratio = min(1.0, second.kernel_ms * 1000 / second.elapsed_us)
        if self.worst and (ratio, second.samples) <= (self.worst.kernel_ratio, self.worst.samples or 0):
            return False
        self.worst = Worst(time - second.elapsed_us, time, cpu, ratio, second.samples)
        return True

    def _collect(self, blocks: Iterable[Block]) -> None:
        """Adds the samples of the worst second that are in the blocks."""
        worst = self.worst
        if worst is None:
            return
        for block in blocks:
            columns = (block.column(name) for name in ("time", "cpu", "task", "stack"))
            for time, cpu, task, stack in zip(*columns, strict=True):
                if cpu == worst.cpu and worst.from_us <= time < worst.to_us:
                    known = self._names.tasks.get(task)
                    self._found.append((known, kernel_path(self._names.stack(stack))))
        self.worst = _explain(worst, self._found, self._names.containers)
