"""Samples of one GPU by the second they belong to, until that second is over: rows of `gpu_seconds`.

The driver stamps its samples with the wall clock in microseconds. A second is handed out once, LATE_US after its end,
when nothing of it can still come; what comes later all the same is dropped. Bounded: MOST_SECONDS wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from zombiescope.store import schema

SECOND_US = 1_000_000
LATE_US = 1_000_000
MOST_SECONDS = 64
MOST_SAMPLES = 64
"""Of a second; the driver takes about five."""


@dataclass(slots=True)
class _Second:
    samples: dict[str, list[int]] = field(default_factory=dict)
    figures: dict[str, Any] = field(default_factory=dict)


class SecondBook:
    def __init__(self, gpu: int) -> None:
        self._gpu = gpu
        self._seconds: dict[int, _Second] = {}
        self._handed_out_us = 0
        self.asked_us: int | None = None
        """When its samples were last asked for, which may be five seconds ago: what came after that is not known yet.
        None: nobody asks for samples."""

    def add_samples(self, column: str, samples: Iterable[tuple[int, int]]) -> None:
        """(time in microseconds, value) in the order of time."""
        for at_us, value in samples:
            second = self._second(at_us)
            if second is not None:
                values = second.samples.setdefault(column, [])
                if len(values) < MOST_SAMPLES:
                    values.append(value)

    def add_figures(self, at_us: int, figures: dict[str, Any]) -> None:
        """What was asked at that moment."""
        second = self._second(at_us)
        if second is not None:
            second.figures.update(figures)

    def _second(self, at_us: int) -> _Second | None:
        end_us = -(-at_us // SECOND_US) * SECOND_US
        if end_us <= self._handed_out_us:
            return None
        found = self._seconds.setdefault(end_us, _Second())
        if len(self._seconds) > MOST_SECONDS:
            del self._seconds[min(self._seconds)]
        return found

    def take(self, now_us: int) -> list[tuple[Any, ...]]:
        """Rows of the seconds that are over."""
        known_us = now_us if self.asked_us is None else self.asked_us
        over = sorted(end_us for end_us in self._seconds if end_us <= known_us and end_us + LATE_US <= now_us)
        if over:
            self._handed_out_us = over[-1]
        return [self._row(end_us, self._seconds.pop(end_us)) for end_us in over]

    def forget(self) -> None:
        """The clock was set: what waits belongs to another time."""
        self._seconds.clear()
        self._handed_out_us = 0
        self.asked_us = None

    def _row(self, end_us: int, second: _Second) -> tuple[Any, ...]:
        used = second.samples.get("utilisation")
        power_mw = _mean(second.samples.get("power_mw"))
        values: dict[str, Any] = {
            "power_w": None if power_mw is None else round(power_mw / 1000),
            **second.figures,
            "time": end_us,
            "gpu": self._gpu,
            "utilisation": _rounded(used),
            "utilisation_samples": used,
            "memory_utilisation": _rounded(second.samples.get("memory_utilisation")),
        }
        return tuple(values.get(name) for name in schema.GPU_SECONDS.names)


def _mean(values: list[int] | None) -> float | None:
    return sum(values) / len(values) if values else None


def _rounded(values: list[int] | None) -> int | None:
    mean = _mean(values)
    return None if mean is None else round(mean)
