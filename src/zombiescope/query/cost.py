"""What the recorder itself used, from the table `cost`: CPU, memory, bytes written, records lost.

recorder_cost() reads a window of a recording; cost_of() is the same from rows that a live reader holds, and imports
nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zombiescope.base.time import HOUR_US

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class Cost:
    """What the recorder used; rates are None until two ticks were seen."""

    cpu_ratio: float | None
    rss_bytes: int | None
    bytes_per_hour: float | None
    lost: int


def recorder_cost(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> Cost | None:
    """The recorder's cost over a window; None when it wrote none down."""
    import pyarrow as pa

    rows = recording.table("cost", start_us, end_us)
    times = rows.column("time").cast(pa.int64()).to_pylist()
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names if name != "time"}
    return cost_of(times, [{name: values[row] for name, values in columns.items()} for row in range(len(times))])


def cost_of(times_us: Sequence[int], rows: Sequence[dict[str, Any]]) -> Cost | None:
    """The recorder's cost from rows of the table `cost`. The first row only says when the next one began."""
    if not rows:
        return None
    span_us = times_us[-1] - times_us[0]
    return Cost(
        cpu_ratio=_rate([_sum(row, "cpu_us", "helper_cpu_us") for row in rows[1:]], span_us),
        rss_bytes=next((row["rss_bytes"] for row in reversed(rows) if row["rss_bytes"] is not None), None),
        bytes_per_hour=_per_hour(_rate([row["log_bytes"] for row in rows[1:]], span_us)),
        lost=sum(row["lost"] or 0 for row in rows),
    )


def _sum(row: dict[str, Any], *names: str) -> int | None:
    known = [row[name] for name in names if row[name] is not None]
    return sum(known) if known else None


def _rate(added: list[int | None], span_us: int) -> float | None:
    known = [value for value in added if value is not None]
    return sum(known) / span_us if known and span_us > 0 else None


def _per_hour(per_us: float | None) -> float | None:
    return None if per_us is None else per_us * HOUR_US
