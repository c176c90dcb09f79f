"""What a recorder says of itself at the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from zombiescope._missing import Missing
from zombiescope.recording.store import Directory


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


def tree_bytes(directory: Path) -> int:
    return sum(file.size_bytes for file in Directory(directory).entries(""))
