"""Keyword arguments as the questions that commands and page ask: `last="5m"`, `cpu=3`, `comm=["kubelet", "ray*"]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from zombiescope.base.errors import QuestionError
from zombiescope.questions.filters import FilterQuestion
from zombiescope.questions.window import WindowQuestion

Moment = str | float | datetime
"""As --from takes it ("12:03:22", "+30s"), Unix seconds, or a datetime; one without a zone is in the node's."""
Length = str | float | timedelta
"""As --last takes it ("5m"), seconds, or a timedelta."""

FILTERS = tuple(each.name for each in fields(FilterQuestion) if each.name != "foreign")


def window(last: Length | None, start: Moment | None, end: Moment | None, at: Moment | None) -> WindowQuestion:
    return WindowQuestion(last=_length(last), from_=_moment(start), to=_moment(end), at=_moment(at))


def filters(given: Mapping[str, Any]) -> FilterQuestion:
    """Raises QuestionError."""
    if unknown := sorted(set(given) - set(FILTERS)):
        raise QuestionError(f"there is no filter {unknown[0]!r}", f"there are {', '.join(FILTERS)}")
    return FilterQuestion(**{name: _value(name, value) for name, value in given.items()})


def _value(name: str, value: Any) -> Any:
    if name in ("mode", "match", "event", "idle"):
        return value
    several = (value,) if isinstance(value, str | int) else tuple(value)
    return tuple(map(int, several)) if name in ("pid", "tid") else tuple(map(str, several))


def _moment(value: Moment | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return value.isoformat() if isinstance(value, datetime) else f"{value:.6f}"


def _length(value: Length | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return f"{value.total_seconds() if isinstance(value, timedelta) else value:g}s"
