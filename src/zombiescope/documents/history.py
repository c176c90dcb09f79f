"""Thirty days in rollups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from zombiescope.base.time import MINUTE_US
from zombiescope.query.history import Point, history
from zombiescope.questions.views import HistoryQuestion
from zombiescope.questions.window import moment, zone_of
from zombiescope.store.reader import Recording

_STEPS_US = tuple(minutes * MINUTE_US for minutes in (1, 5, 15, 60, 180, 360, 720, 1440))


def answer(recording: Recording, question: HistoryQuestion) -> dict[str, Any]:
    """Raises QuestionError."""
    return document(recording.name, history(recording, *_limits(recording, question), question.step_us))


def table(recording: Recording, question: HistoryQuestion, rows: int) -> list[Point]:
    """Points for a screen: about so many rows, unless their time is given. Raises QuestionError."""
    limits = _limits(recording, question)
    step_us = question.step_us or _step_for(history(recording, *limits, _STEPS_US[-1]), rows)
    return history(recording, *limits, step_us)


def _limits(recording: Recording, question: HistoryQuestion) -> tuple[int | None, int | None]:
    """The window; rollups reach further back than the recording, so no option means no limit."""
    asked = question.window
    if asked.at is not None and not (asked.last or asked.from_ or asked.to):
        minute = moment(asked.at, recording, zone_of(recording.node, asked.utc), "at") // MINUTE_US * MINUTE_US
        return minute, minute + MINUTE_US
    if not asked.given:
        return None, None
    window = asked.choose(recording)
    return (window.start_us if asked.last or asked.from_ else None), window.end_us


def _step_for(days: list[Point], rows: int) -> int:
    """The shortest step that keeps the table on a screen."""
    span_us = days[-1].at_us - days[0].at_us + _STEPS_US[-1] if days else 0
    recorded_us = sum(point.recorded_s for point in days) * 1_000_000
    span_us = min(span_us, max(recorded_us, MINUTE_US)) if len(days) == 1 else span_us
    return next((step for step in _STEPS_US if span_us <= rows * step), _STEPS_US[-1])


def document(node: str, points: Sequence[Point]) -> dict[str, Any]:
    return {"node": node, "points": [_point(point) for point in points]}


def _point(point: Point) -> dict[str, Any]:
    values = asdict(point)
    return {"at": values.pop("at_us") / 1e6, **values}
