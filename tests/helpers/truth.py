"""What a recording holds, read from its tables without the code under test; and one with everything that is odd."""

from __future__ import annotations

from array import array
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from tests.helpers.recordings import START_US, contents, write_segment
from zombiescope.imports.rows import FrameRow, ImportReport, SampleRows, TaskRow
from zombiescope.imports.writer import ImportWriter
from zombiescope.query.exports.samples import ExportSamples
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.sample_event import SampleEvent

Frame = tuple[str, str | None, str]


class Row(NamedTuple):
    time_us: int
    cpu: int | None
    pid: int | None
    tid: int | None
    comm: str | None
    unit: str | None
    stack: tuple[Frame, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _, _ in self.stack)


def rows(recording: Recording) -> list[Row]:
    """Every sample. A stack that is not known is one unknown frame, as everywhere."""
    found = []
    for time, cpu, task, stack, *_ in contents(recording)["samples"]:
        pid, tid, comm, unit = (task[0], task[1], task[2], task[10]) if task else (None,) * 4
        frames = tuple((name, module or None, kind) for name, module, kind in stack or [("?", None, "unknown")])
        found.append(Row(_us(time), cpu, pid, tid, comm, unit, frames))
    return found


def _us(time: datetime) -> int:
    return round(time.timestamp() * 1e6)


def by_stack(found: list[Row]) -> Counter[tuple[str, ...]]:
    return Counter(row.names for row in found)


def samples(recording: Recording, filters: Filters | None = None) -> ExportSamples:
    """All of the recording."""
    return ExportSamples(Selection(recording, recording.start_us, recording.end_us + 1, filters or Filters()))


FRAMES: list[Frame] = [
    ("main", "train", "user"),
    ("Lorg/Foo;.run;x%3By", "libjvm.so", "user"),
    ("libfoo.so+0x1234", "libfoo.so", "user"),
    ("operator()(int, (anonymous namespace)::T) const", "lib with space (v2).so", "user"),
    ("clock_gettime", "[vdso]", "vdso"),
    ("[jit]", "[anon]", "jit"),
    ("[exited]", "", "unknown"),
    ("do_syscall_64", "", "kernel"),
    ("ena_io_poll", "ena", "module"),
    ("bpf_prog_6deef7357e7b4530_sd_fw_ingress", "bpf", "bpf"),
    ("größer", "train", "user"),
    ("py::run:/srv/job (2).py", "[jit]", "jit"),
    ("[jit]", "[anon:v8]", "jit"),
    ("[jit]", "memfd:doublemapper", "jit"),
]
TASKS: list[tuple[int, int, str | None]] = [
    (42, 42, "train"),
    (42, 43, "Web Content 7"),
    (0, 0, "swapper/3"),
    (9, 9, "a;b"),
    (54, 55, None),
]
STACKS = [(0, 1, 2), (0, 3, 7, 8), (0, 4), (5,), (6,), (0, 10, 7, 9), (0, 0, 0, 7), (0, 11, 12, 13)]


def write_odd(directory: Path) -> Path:
    """Frames of every kind, names with everything in them, a task and a core and a stack that are not known."""
    made: list[tuple[Any, ...]] = [
        (START_US + 1000 * n, n % 3, n % len(TASKS), n % len(STACKS), None, None) for n in range(200)
    ]
    made += [(START_US + 300_000, None, None, None, None, None), (START_US + 300_001, 0, 1, 99, None, None)]
    for part in range(2):  # the same stacks under other ids
        turned = [(n, tuple(frames)) for n, frames in enumerate(STACKS[part:] + STACKS[:part])]
        moved = [
            (
                time + part * 1_000_000,
                cpu,
                task,
                stack if stack is None or stack == 99 else (stack - part) % len(STACKS),
                *rest,
            )
            for time, cpu, task, stack, *rest in made
        ]
        write_segment(
            directory,
            {
                "frames": [(number, *frame) for number, frame in enumerate(FRAMES)],
                "stacks": turned,
                "tasks": [(number, *task, *[None] * 11) for number, task in enumerate(TASKS)],
                "samples": moved,
            },
            start_us=START_US + part * 1_000_000,
            seq=part,
        )
    return directory


def imported(place: Path, events: list[SampleEvent], event: list[int], period: list[int]) -> Recording:
    """An import of one thread that does one thing."""
    store = ImportWriter(place, "far")
    count = len(event)
    store.add(
        SampleRows(
            time_us=array("q", range(10**15, 10**15 + count)),
            cpu=array("q", [-1] * count),
            task=array("q", [0] * count),
            stack=array("q", [0] * count),
            period=array("q", period),
            event=array("q", event),
            stack_lengths=array("q", [1]),
            stack_frames=array("q", [0]),
            frames=[FrameRow("main", "train", "user")],
            tasks=[TaskRow(42, 43, "train")],
            events=events,
        )
    )
    store.finish(ImportReport(), ["x"])
    return open_recording(place)
