"""When samples were taken: by part of the second, or by core."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.documents.columns import Columns
from zombiescope.documents.selection import Load, load_stacks, needs_stacks, selected, title
from zombiescope.query import heatmap
from zombiescope.query.heatmap import Heatmap
from zombiescope.query.selection import Filters, Selection
from zombiescope.questions.views import HeatmapQuestion
from zombiescope.questions.window import Window
from zombiescope.store.reader import Recording


@dataclass(frozen=True)
class HeatmapAnswer:
    """What is drawn; counted when somebody looks."""

    question: HeatmapQuestion
    window: Window
    selection: Selection
    title: str
    painted: Selection | None = None

    @cached_property
    def drawn(self) -> Heatmap:
        return self._counted(self.selection)

    def document(self) -> dict[str, Any]:
        return document(self.selection.recording.name, self.question.by, self.drawn)

    def columns(self) -> Columns:
        """No more of them than asked for."""
        most = self.question.columns
        painted = None if self.painted is None else self._counted(self.painted).narrowed(most)
        return columns(self.selection.recording.name, self.question.by, self.drawn.narrowed(most), painted)

    def _counted(self, selection: Selection) -> Heatmap:
        by_core = self.question.by == "core"
        return heatmap.by_core(selection) if by_core else heatmap.subsecond(selection, self.question.rows)


def answer(recording: Recording, question: HeatmapQuestion, load: Load = load_stacks) -> HeatmapAnswer:
    """Raises QuestionError."""
    window = question.window.choose(recording)

    def of(filters: Filters) -> Selection:
        return selected(recording, window, filters, load if needs_stacks(recording, filters) else None)

    filters, searched = question.filters.chosen(), question.painted()
    painted = None if searched is None else of(searched)
    return HeatmapAnswer(question, window, of(filters), title(recording, window, filters), painted)


def document(node: str, by: str, drawn: Heatmap) -> dict[str, Any]:
    return {
        "node": node,
        "by": by,
        "start": drawn.start_us / 1e6,
        "column_s": drawn.column_us / 1e6,
        "columns": drawn.columns,
        "rows": drawn.rows,
        "cores": None if drawn.cores is None else list(drawn.cores),
        "total": drawn.total,
        "max": drawn.max,
        "blind": [{"from": start / 1e6, "to": end / 1e6} for start, end in drawn.blind],
        "values": drawn.values.tolist(),
    }


def columns(node: str, by: str, drawn: Heatmap, painted: Heatmap | None = None) -> Columns:
    """The same as typed arrays; `painted` has the samples with a frame that was searched for."""
    said = document(node, by, drawn)
    del said["values"]
    said["blind"] = [[span["from"], span["to"]] for span in said["blind"]]
    arrays: dict[str, npt.NDArray[Any]] = {"values": drawn.values.astype(np.uint32)}
    if drawn.spread is not None:
        arrays["spread"] = drawn.spread.astype(np.float32)
    if painted is not None:
        arrays["painted"] = _fitted(painted, drawn)
    return Columns("heatmap", said, arrays)


def _fitted(painted: Heatmap, drawn: Heatmap) -> npt.NDArray[np.uint32]:
    """The rows of `drawn`: a core on which nothing was painted has none of its own."""
    if painted.cores == drawn.cores:
        return painted.values.astype(np.uint32)
    place = {cpu: row for row, cpu in enumerate(drawn.cores or ())}
    fitted = np.zeros_like(drawn.values, np.uint32)
    for row, cpu in enumerate(painted.cores or ()):
        if cpu in place:
            fitted[:, place[cpu]] = painted.values[:, row]
    return fitted
