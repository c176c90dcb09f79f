"""A tick: what its stages know of it, and what the earlier ones hand on to the later ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from zombiescope.kernel.stat import Stat

SampledCore = tuple[int, int, int | None, int]
"""Of one core since the last tick, as the sampler counts: samples, idle samples, largest gap in ns, lost records."""


class CoreTime(NamedTuple):
    """Where a core's time went; what the rollups and the alarm need of its row."""

    cpu: int
    busy_ms: int
    kernel_ms: int


@dataclass(slots=True)
class Tick:
    monotonic_ns: int
    wall_us: int
    interval_us: int
    """Since the one before."""
    late_us: int = 0
    online: tuple[int, ...] = ()
    sampled: dict[int, SampledCore] = field(default_factory=dict)
    stat: Stat | None = None
    """/proc/stat, once the cores were read."""
    times: list[CoreTime] = field(default_factory=list)

    @property
    def since_us(self) -> int:
        return self.wall_us - self.interval_us
