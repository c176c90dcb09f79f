"""The heat map of a selection."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.documents.columns import Columns
from zombiescope.profile.heatmap import Heatmap


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
    arrays = {"values": drawn.values.astype(np.uint32)}
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
