"""Thirty days in rollups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from zombiescope.views.history import Point


def document(node: str, points: Sequence[Point]) -> dict[str, Any]:
    return {"node": node, "points": [_point(point) for point in points]}


def _point(point: Point) -> dict[str, Any]:
    values = asdict(point)
    return {"at": values.pop("at_us") / 1e6, **values}
