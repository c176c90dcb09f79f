"""The strip of all cores, as columns."""

from __future__ import annotations

import pyarrow as pa

from zombiescope.documents.columns import Columns
from zombiescope.documents.selection import selected
from zombiescope.model.modes import DRAWN_MODES
from zombiescope.query.selection import Filters
from zombiescope.query.strip import STORED, core_ticks, strip
from zombiescope.questions.views import SeriesQuestion
from zombiescope.questions.window import Window
from zombiescope.store import schema
from zombiescope.store.reader import Recording


def answer(recording: Recording, question: SeriesQuestion) -> Columns:
    """Raises QuestionError."""
    return columns(recording, question.window.choose(recording), question.columns)


def columns(recording: Recording, window: Window, most: int) -> Columns:
    """From the counters of each core, or from the samples of an import that has none."""
    sampled = _sampled(recording, window)
    drawn = strip(recording, window.start_us, window.end_us, most, sampled)
    scalars = {
        "node": recording.name,
        "from": drawn.start_us / 1e6,
        "to": drawn.end_us / 1e6,
        "column_s": drawn.column_us / 1e6,
        "columns": drawn.columns,
        "cpus": list(drawn.cpus),
        "from_samples": sampled is not None,
    }
    averages = {"average_busy": drawn.average_busy, "average_kernel": drawn.average_kernel}
    return Columns(
        "strip",
        scalars,
        {mode: drawn.modes[mode] for mode in DRAWN_MODES} | averages | {"worst_core": drawn.worst_core},
    )


def _sampled(recording: Recording, window: Window) -> list[pa.Table] | None:
    """Ticks made of the samples; None where there are counters, or neither."""
    if "imported" not in recording.node or any(part.count(schema.CORES) for part in recording.parts):
        return None
    ticks = core_ticks(selected(recording, window, Filters(idle=True)), STORED)
    return None if ticks is None else [ticks]
