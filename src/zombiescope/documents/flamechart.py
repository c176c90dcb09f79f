"""What one core or one thread did, in the order of time, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.base.errors import QuestionError
from zombiescope.documents.columns import Columns, FunctionTable
from zombiescope.documents.selection import Load, load_stacks, profile
from zombiescope.query.flamechart import Chart, chart
from zombiescope.questions.views import FlamechartQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording


def answer(recording: Recording, question: FlamechartQuestion, load: Load = load_stacks) -> Columns:
    """Raises QuestionError."""
    filters = question.filters.chosen()
    if len(filters.cpus) + len(filters.tids) != 1:
        raise QuestionError("a chart is of one core or one thread", "write cpu=N or tid=N")
    found = profile(recording, question, load, filters=filters)
    hz = float(recording.node.get("hz") or 99)
    return columns(recording.name, found.window, chart(found.selection, hz, question.nodes))


def columns(node: str, window: Window, drawn: Chart) -> Columns:
    named = FunctionTable(drawn.stacks.functions, drawn.function)
    scalars = {
        "node": node,
        "from": window.start_us / 1e6,
        "to": window.end_us / 1e6,
        "names": list(named.names),
        "modules": list(named.modules),
        "kinds": list(named.kinds),
        "rows_left_off": drawn.left_off,
    }
    arrays: dict[str, npt.NDArray[Any]] = {
        "name": named.name,
        "module": named.module,
        "kind": named.kind,
        "depth": drawn.depth.astype(np.uint16),
        "start": drawn.start_us / 1e6,
        "end": drawn.end_us / 1e6,
        "samples": drawn.samples.astype(np.uint32),
    }
    return Columns("flamechart", scalars, arrays)
