"""How the memory cgroups of a node grew in a window, and who made and removed some meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.query.cgroups import Census, Leak
from zombiescope.store.columns import records
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Growth:
    """What was added in the window; `per_hour` is that, extrapolated. None where it was not counted twice, and where
    they became fewer: a purge has no pace."""

    seconds: float
    total: int | None
    dying: int | None

    @property
    def dying_per_hour(self) -> float | None:
        return None if self.dying is None or self.dying < 0 or self.seconds <= 0 else self.dying * 3600 / self.seconds


def growth(recording: Recording, memory: Census | None, start_us: int, end_us: int) -> Growth:
    seconds = (end_us - start_us) / 1e6
    if memory is None:
        return Growth(seconds, None, None)
    rows = records(recording.table("census", start_us, end_us + 1))
    same = [row for row in rows if row["hierarchy"] == memory.hierarchy]
    totals = [row["total"] for row in same if row["total"] is not None]
    dying = [row["dying"] for row in same if row["dying"] is not None]
    added = (values[-1] - values[0] if len(values) > 1 else None for values in (totals, dying))
    return Growth(seconds, *added)


def makers(lines: tuple[Leak, ...]) -> tuple[Leak, ...]:
    """The ledger's lines of paths at which cgroups came or went, most first."""
    moved = [line for line in lines if line.created or line.removed or line.released]
    return tuple(sorted(moved, key=lambda line: (-(line.created or 0) - (line.removed or 0), line.path)))
