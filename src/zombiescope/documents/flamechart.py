"""What one core or one thread did, in the order of time, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from zombiescope.documents.columns import Columns
from zombiescope.documents.named import Named
from zombiescope.documents.window import Window
from zombiescope.profile.flamechart import Chart


def columns(node: str, window: Window, drawn: Chart) -> Columns:
    named = Named(drawn.stacks.functions, drawn.function)
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
