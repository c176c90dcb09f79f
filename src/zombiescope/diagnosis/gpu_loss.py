"""What GPUs lost: the work that was not done while their processes waited, as values and in words.

Where a GPU counts as busy while it waits for others (a collective spins at 100%), its power tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from zombiescope.diagnosis.thresholds import GPU_ASKED_EVERY_US, GPU_LEAST_LOST_S, GPU_PAST_US
from zombiescope.query.gpu_use import Fall, GpuSeries, Tenant, fall

Measure = Literal["utilisation", "power_w"]
Because = Literal["waited", "throttled", "itself", "job", "unknown"]

MOST_CLAUSES = 3
_UNITS: dict[Measure, str] = {"utilisation": "%", "power_w": " W"}


@dataclass(frozen=True, slots=True)
class GpuLoss:
    """One GPU. `now` and `usual`: percent, or watts."""

    gpu: int
    whose: str
    pids: tuple[int, ...]
    measure: Measure
    usual: float
    now: float
    lost_s: float
    seconds: int
    because: Because
    threads: int = 0
    """Of its processes, that waited."""
    power_usual_w: float | None = None
    power_w: float | None = None

    @property
    def not_known(self) -> str:
        """What is said where nobody knows whether its process waited."""
        unit, whose = _UNITS[self.measure], f" ({self.whose})" if self.whose else ""
        fell = f"GPU {self.gpu}{whose} fell from {self.usual:.0f}{unit} to {self.now:.0f}{unit} in these seconds"
        return f"{fell}; whether its process waited is not known: it is not in the samples"

    def document(self) -> dict[str, Any]:
        return {
            "gpu": self.gpu,
            "whose": self.whose,
            "pids": list(self.pids),
            "measure": "utilisation" if self.measure == "utilisation" else "power",
            "usual": round(self.usual / 100, 4) if self.measure == "utilisation" else round(self.usual, 1),
            "now": round(self.now / 100, 4) if self.measure == "utilisation" else round(self.now, 1),
            "seconds_lost": round(self.lost_s, 2),
            "seconds": self.seconds,
            "because": self.because,
            "threads": self.threads,
            "power_usual_w": self.power_usual_w,
            "power_w": self.power_w,
        }


@dataclass(frozen=True, slots=True)
class GpuCost:
    """Of one incident. `not_known`: GPUs that did less, of which nobody knows whether they waited."""

    losses: tuple[GpuLoss, ...] = ()
    not_known: tuple[GpuLoss, ...] = ()

    @property
    def lost_s(self) -> float:
        return sum(one.lost_s for one in self.losses)

    @property
    def text(self) -> str:
        """As the end of a sentence; empty where nothing was lost."""
        clauses = [clause(same) for same in _by_owner(self.losses)]
        more = f"; and {len(clauses) - MOST_CLAUSES} more jobs" if len(clauses) > MOST_CLAUSES else ""
        return "; ".join(clauses[:MOST_CLAUSES]) + more

    def added(self, other: GpuCost) -> GpuCost:
        """Of the same incident again."""
        known = {one.gpu: one for one in self.losses}
        for one in other.losses:
            first = known.get(one.gpu)
            known[one.gpu] = one if first is None else _sum(first, one)
        not_known = {one.gpu: one for one in (*self.not_known, *other.not_known) if one.gpu not in known}
        return GpuCost(tuple(known.values()), tuple(not_known.values()))

    def document(self) -> dict[str, Any]:
        return {
            "gpu_seconds_lost": round(self.lost_s, 2),
            "text": self.text,
            "gpus": [one.document() for one in self.losses],
            "not_known": [one.document() for one in self.not_known],
        }


def of_gpu(series: GpuSeries, tenants: list[Tenant], from_us: int, to_us: int) -> GpuLoss | None:
    """What a GPU did less in a span, of what its present processes had it do before; None where that is nothing."""
    past_us = max(from_us - GPU_PAST_US, min(one.from_us for one in tenants))
    left = [one.to_us for one in tenants]
    ends_us = to_us if None in left else min(to_us, max(at for at in left if at is not None) - GPU_ASKED_EVERY_US)

    def change(measure: Measure) -> Fall | None:
        if ends_us <= from_us:
            return None
        return fall(series.between(measure, past_us, from_us), series.between(measure, from_us, ends_us))

    used, power = change("utilisation"), change("power_w")
    measure: Measure = "utilisation" if used is not None and used.is_unusual else "power_w"
    found = used if measure == "utilisation" else power
    if found is None or not found.is_unusual or found.lost_s < GPU_LEAST_LOST_S:
        return None
    watts = (None, None) if power is None else (round(power.usual, 1), round(power.now, 1))
    pids = tuple(sorted({one.pid for one in tenants}))
    return GpuLoss(
        series.gpu, "", pids, measure, found.usual, found.now, found.lost_s, found.seconds, "unknown", 0, *watts
    )


def _by_owner(losses: tuple[GpuLoss, ...]) -> list[list[GpuLoss]]:
    """Those of one job together, the dearest first."""
    found: dict[tuple[str, str], list[GpuLoss]] = {}
    for one in losses:
        found.setdefault((one.whose, one.measure), []).append(one)
    return sorted(found.values(), key=lambda same: -sum(one.lost_s for one in same))


def clause(same: list[GpuLoss], owner: str | None = None) -> str:
    """Of GPUs of one owner."""
    owner = same[0].whose if owner is None else owner
    unit, whose = _UNITS[same[0].measure], f" ({owner})" if owner else ""
    which = f"GPU {same[0].gpu}" if len(same) == 1 else f"GPUs {_numbers([one.gpu for one in same])}"
    usual, now = (_mean(same, key) for key in (lambda one: one.usual, lambda one: one.now))
    return f"{which}{whose} fell from {usual:.0f}{unit} to {now:.0f}{unit}: {lost(sum(one.lost_s for one in same))}"


def lost(seconds: float) -> str:
    """Neither utilisation nor power measures work exactly; more digits would say more than is known."""
    shown = f"{seconds:,.0f}" if round(seconds) >= 1 else f"{seconds:.1f}"
    return f"{shown} GPU-second{'' if shown == '1' else 's'} lost"


def _mean(same: list[GpuLoss], key: Callable[[GpuLoss], float]) -> float:
    return math.fsum(key(one) for one in same) / len(same)


def _numbers(gpus: list[int]) -> str:
    """0-3,7"""
    spans: list[list[int]] = []
    for gpu in sorted(gpus):
        if spans and gpu == spans[-1][-1] + 1:
            spans[-1].append(gpu)
        else:
            spans.append([gpu])
    return ",".join(f"{span[0]}" if len(span) == 1 else f"{span[0]}-{span[-1]}" for span in spans)


def _sum(first: GpuLoss, again: GpuLoss) -> GpuLoss:
    worse = first if first.lost_s >= again.lost_s else again
    return replace(worse, lost_s=first.lost_s + again.lost_s, seconds=first.seconds + again.seconds)
