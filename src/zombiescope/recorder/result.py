"""What a recorder says of itself at the end, and how it measures itself."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from zombiescope._missing import Missing


@dataclass(frozen=True, slots=True)
class Result:
    """What `record` says at the end."""

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


def rss_bytes() -> int | None:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return None


def tree_bytes(directory: Path) -> int:
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - os.walk gives strings
    return total
