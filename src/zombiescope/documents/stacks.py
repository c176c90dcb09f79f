"""The hottest functions and stacks of a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zombiescope.documents.window import Window
from zombiescope.profile.top import HotFunction, HotStack


def document(
    node: str, window: Window, total: int, functions: Sequence[HotFunction], stacks: Sequence[HotStack]
) -> dict[str, Any]:
    return {
        "node": node,
        "from": window.start_us / 1e6,
        "to": window.end_us / 1e6,
        "total": total,
        "functions": [
            {
                **hot.function._asdict(),
                "self": hot.self_samples,
                "total": hot.total_samples,
                "self_ratio": hot.self_ratio,
                "total_ratio": hot.total_ratio,
            }
            for hot in functions
        ],
        "stacks": [
            {"value": hot.samples, "ratio": hot.ratio, "frames": [frame._asdict() for frame in hot.frames]}
            for hot in stacks
        ],
    }
