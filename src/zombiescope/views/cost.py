"""What the recorder itself used, from the table `cost`: CPU, memory, bytes written, records lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.views.recent import Cost, cost_of

if TYPE_CHECKING:
    from zombiescope.recording.reader import Recording


def recorder_cost(recording: Recording, start_us: int | None = None, end_us: int | None = None) -> Cost | None:
    """The recorder's cost over a window; None when it wrote none down."""
    import pyarrow as pa

    rows = recording.table("cost", start_us, end_us)
    times = rows.column("time").cast(pa.int64()).to_pylist()
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names if name != "time"}
    return cost_of(times, [{name: values[row] for name, values in columns.items()} for row in range(len(times))])
