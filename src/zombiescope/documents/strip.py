"""The strip of all cores, as columns."""

from __future__ import annotations

from zombiescope.documents.columns import Columns
from zombiescope.documents.window import Window
from zombiescope.recording.reader import Recording
from zombiescope.recording.strip import MODES, strip


def columns(recording: Recording, window: Window, most: int) -> Columns:
    drawn = strip(recording, window.start_us, window.end_us, most)
    scalars = {
        "node": recording.name,
        "from": drawn.start_us / 1e6,
        "to": drawn.end_us / 1e6,
        "column_s": drawn.column_us / 1e6,
        "columns": drawn.columns,
        "cpus": list(drawn.cpus),
    }
    averages = {"average_busy": drawn.average_busy, "average_kernel": drawn.average_kernel}
    return Columns(
        "strip", scalars, {mode: drawn.modes[mode] for mode in MODES} | averages | {"worst_core": drawn.worst_core}
    )
