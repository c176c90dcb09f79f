"""Recordings of exactly the samples that a test names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.helpers.recordings import START_US, write_segment
from zombiescope.recording.reader import Recording, open_recording


@dataclass(frozen=True)
class Task:
    pid: int = 7
    tid: int = 7
    comm: str = "python3"
    unit: str | None = None
    container: str | None = None


@dataclass(frozen=True)
class Sample:
    """`stack` is written as "main;work;[k]do_syscall_64", outermost first; [k] is the kernel."""

    at_us: int
    stack: str | None
    cpu: int = 0
    task: Task | None = Task()


def write(directory: Path, samples: Sequence[Sample], *, start_us: int = START_US, seq: int = 0) -> Path:
    """One more segment with these samples; times are from its start, rows stay in the order given."""
    frames: dict[str, int] = {}
    stacks: dict[str, int] = {}
    tasks: dict[Task, int] = {}
    rows = []
    for sample in samples:
        for name in sample.stack.split(";") if sample.stack else ():
            frames.setdefault(name, len(frames))
        stack = None if sample.stack is None else stacks.setdefault(sample.stack, len(stacks))
        task = None if sample.task is None else tasks.setdefault(sample.task, len(tasks))
        rows.append((start_us + sample.at_us, sample.cpu, task, stack, None))
    write_segment(
        directory,
        {
            "frames": [_frame(number, name) for name, number in frames.items()],
            "stacks": [(number, tuple(frames[name] for name in stack.split(";"))) for stack, number in stacks.items()],
            "tasks": [
                (number, task.pid, task.tid, task.comm, *[None] * 7, task.unit, task.container, None)
                for task, number in tasks.items()
            ],
            "samples": rows,
        },
        start_us=start_us,
        seq=seq,
    )
    return directory


def _frame(number: int, name: str) -> tuple[int, str, str, str]:
    if name.startswith("[k]"):
        return number, name.removeprefix("[k]"), "[kernel]", "kernel"
    return number, name, "/usr/lib/libwork.so", "user"


def opened(directory: Path, *samples: Sample) -> Recording:
    return open_recording(write(directory, samples))
