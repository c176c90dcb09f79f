"""What a recorder says of itself at the end."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from zombiescope.base.missing import Missing
from zombiescope.store.store import Directory

if TYPE_CHECKING:
    from zombiescope.recorder.recorder import Recorder


@dataclass(frozen=True, slots=True)
class RecorderResult:
    recording: str
    samples: int
    idle_samples: int
    lost: int
    ticks: int
    ticks_late: int
    events: int
    cpu_seconds: float
    startup_cpu_seconds: float
    max_rss_bytes: int
    bytes: int
    missing: list[Missing]
    helper_cpu_seconds: float
    helper_max_rss_bytes: int
    seconds: float
    doctor_looks: int = 0
    doctor_cpu_seconds: float = 0.0
    doctor_max_rss_bytes: int = 0
    gpu_reader_cpu_seconds: float = 0.0
    gpu_reader_max_rss_bytes: int = 0
    python_reader_cpu_seconds: float = 0.0
    python_reader_max_rss_bytes: int = 0
    python_walks: int = 0
    python_torn: int = 0
    unwritten_seconds: int = 0
    """Frames that the disk did not take; there is one a second."""
    disk: str | None = None
    """Why it did not."""


def tree_bytes(directory: Path) -> int:
    return sum(file.size_bytes for file in Directory(directory).entries(""))


def summary(recorder: Recorder, startup_cpu_s: float, cpu_s: float) -> RecorderResult:
    now = recorder.clock.now_us()
    doctor, helper = recorder.doctor and recorder.doctor.process, recorder.compactor.process
    return RecorderResult(
        recording=str(recorder.node_dir.parent),
        samples=recorder.samples.rows,
        idle_samples=recorder.idle_samples,
        lost=recorder.rings.sampler.lost,
        ticks=recorder.ticks,
        ticks_late=recorder.ticks_late,
        events=recorder.intake.count,
        cpu_seconds=round(cpu_s + recorder.children_cpu_us / 1e6, 4),
        startup_cpu_seconds=round(startup_cpu_s, 4),
        max_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        bytes=tree_bytes(recorder.node_dir),
        missing=recorder.sources.missing,
        helper_cpu_seconds=round(helper.cpu_us / 1e6, 4),
        helper_max_rss_bytes=helper.peak_rss_bytes,
        seconds=round((now - recorder.started_us) / 1e6, 3),
        doctor_looks=doctor.looks if doctor else 0,
        doctor_cpu_seconds=round(doctor.cpu_us / 1e6, 4) if doctor else 0.0,
        doctor_max_rss_bytes=doctor.peak_rss_bytes if doctor else 0,
        gpu_reader_cpu_seconds=round(recorder.gpus.process.cpu_us / 1e6, 4),
        gpu_reader_max_rss_bytes=recorder.gpus.process.peak_rss_bytes,
        python_reader_cpu_seconds=round(recorder.python.process.cpu_us / 1e6, 4),
        python_reader_max_rss_bytes=recorder.python.process.peak_rss_bytes,
        python_walks=recorder.python.walks,
        python_torn=recorder.python.torn,
        unwritten_seconds=recorder.writer.unwritten,
        disk=recorder.writer.failing,
    )
