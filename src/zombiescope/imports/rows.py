"""What every importer hands over: samples as columns of numbers, and what the numbers mean.

Numbers of stacks, frames, tasks and events count from 0 within one SampleRows, which becomes one segment of
the recording.
-1 is "the file does not say" in `cpu`, `task` and `stack`.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from zombiescope._native import shift_ints
from zombiescope.store.sample_event import SampleEvent


class FrameRow(NamedTuple):
    name: str
    module: str
    kind: str
    """As in schema.FRAMES: kernel, module, bpf, user, vdso, jit, unknown."""


class TaskRow(NamedTuple):
    """Who a sample belongs to, as far as the file says."""

    pid: int | None
    tid: int | None
    comm: str | None
    ppid: int | None = None
    cgroup: str | None = None


@dataclass(slots=True)
class SampleRows:
    """One segment's worth of samples; `time_us` is Unix time once the clock of the file is known."""

    time_us: array[int]
    cpu: array[int]
    task: array[int]
    stack: array[int]
    period: array[int] | None
    event: array[int] | None
    """Position in `events`; None: all are of events[0]."""
    stack_lengths: array[int]
    stack_frames: array[int]
    """All stacks one after the other, outermost frame first."""
    frames: Sequence[FrameRow]
    tasks: Sequence[TaskRow]
    events: Sequence[SampleEvent]
    idle_samples: int = 0
    """How many of the samples are of an idle core."""
    span_us: tuple[int, int] | None = None
    """The first and the last time, if whoever made the rows knows them already."""
    cpus: frozenset[int] | None = None
    """The CPUs in `cpu` without -1, if known already."""

    def __len__(self) -> int:
        return len(self.time_us)

    def shift(self, offset_us: int) -> None:
        """Moves all times: from the clock of the file to Unix time."""
        shift_ints(self.time_us, offset_us)
        if self.span_us is not None:
            self.span_us = self.span_us[0] + offset_us, self.span_us[1] + offset_us


@dataclass(slots=True)
class ImportReport:
    """What an import did; `skipped` counts what was not taken, by reason, and is never silent."""

    samples: int = 0
    idle_samples: int = 0
    stacks: int = 0
    events: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    """Sentences that whoever reads the recording must know: how its clock was found, which names are missing."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What the files say of the node, as node.json names it: kernel, machine, ...; `cpus` is how many are online."""

    def note(self, sentence: str) -> None:
        self.notes.setdefault(sentence)
