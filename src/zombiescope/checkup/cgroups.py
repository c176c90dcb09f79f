"""Memory cgroups over the window: tracked against in use, growth, and who made and removed some meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.checkup.cores import Window
from zombiescope.recording.columns import records
from zombiescope.recording.reader import Recording
from zombiescope.views.cgroups import Census, Leak, cgroups
from zombiescope.views.memcg_cost import Forecast


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added in the window; `per_hour` is that, extrapolated. None where it was not counted twice."""

    seconds: float
    total: int | None
    dying: int | None

    @property
    def dying_per_hour(self) -> float | None:
        return None if self.dying is None or self.seconds <= 0 else self.dying * 3600 / self.seconds


@dataclass(frozen=True, slots=True)
class CgroupsSeen:
    """`makers`: the ledger's lines of paths at which cgroups came or went, most first; None without tracepoints."""

    memory: Census | None
    growth: Growth
    verdict: str | None
    why: str
    forecast: Forecast
    makers: tuple[Leak, ...] | None


def cgroups_seen(recording: Recording, window: Window, *, traced: bool) -> CgroupsSeen:
    view = cgroups(recording, window.start_us, window.end_us)
    makers = sorted(
        (line for line in view.leaks if line.created or line.removed or line.released),
        key=lambda line: (-(line.created or 0) - (line.removed or 0), line.path),
    )
    growth = _growth(recording, window, view.memory)
    return CgroupsSeen(view.memory, growth, view.verdict, view.why, view.forecast, tuple(makers) if traced else None)


def _growth(recording: Recording, window: Window, memory: Census | None) -> Growth:
    if memory is None:
        return Growth(window.seconds, None, None)
    rows = records(recording.table("census", window.start_us, window.end_us + 1))
    same = [row for row in rows if row["hierarchy"] == memory.hierarchy]
    totals = [row["total"] for row in same if row["total"] is not None]
    dying = [row["dying"] for row in same if row["dying"] is not None]
    added = (values[-1] - values[0] if len(values) > 1 else None for values in (totals, dying))
    return Growth(window.seconds, *added)
