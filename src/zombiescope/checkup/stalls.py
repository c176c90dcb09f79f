"""Holes in time: a core that gave no samples though it was not idle, and a softirq thread that waited for its core.

While interrupts are off, no timer can take a sample and /proc/stat counts nothing either. So a hole is believed only
if nothing else explains it: the core was not idle meanwhile (some machines take no samples of their idle task), the
hypervisor did not take it away (steal), and the samples that did come account for less than the time that passed.

ksoftirqd waiting is a stall of the network only on kernels before 6.5 (d15121be7485: since then softirqs run at the
end of every interrupt even while ksoftirqd waits).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.checkup.cores import Window
from zombiescope.checkup.sampled import Hog, Sampled
from zombiescope.recording.columns import records
from zombiescope.recording.reader import Recording

STALL_US = 100_000
EXPLAINED_RATIO = 0.8
IDLE_UNSAMPLED_MS = 1000

_COLUMNS = (
    "time", "interval_us", "cpu", "idle_ms", "iowait_ms", "irq_ms", "softirq_ms", "steal_ms", "idle_samples",
    "max_gap_us", "ksoftirqd_delay_us",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Stall:
    """kind: no_samples (interrupts were off, or the core was not run at all) or ksoftirqd (it waited that long)."""

    kind: str
    cpu: int
    at_us: int
    seconds: float
    hog: Hog | None


def stalls(recording: Recording, window: Window, sampled: Sampled) -> tuple[Stall, ...]:
    """The longest of each kind and core, longest first."""
    by_core: dict[int, list[dict[str, Any]]] = {}
    for row in records(recording.table("cores", window.start_us + 1, window.end_us + 1, _COLUMNS)):
        by_core.setdefault(row["cpu"], []).append(row)
    found = [
        stall
        for cpu, rows in by_core.items()
        for stall in (_longest_hole(cpu, rows, sampled), _longest_wait(cpu, rows, sampled))
        if stall is not None
    ]
    return tuple(sorted(found, key=lambda stall: (-stall.seconds, stall.cpu)))


def together_at(found: Sequence[Stall]) -> tuple[Stall, ...]:
    """The holes that share a moment with the longest of all, longest first."""
    holes = [stall for stall in found if stall.kind == "no_samples"]
    if not holes:
        return ()
    start_us, end_us = holes[0].at_us, holes[0].at_us + holes[0].seconds * 1e6
    return tuple(stall for stall in holes if stall.at_us < end_us and stall.at_us + stall.seconds * 1e6 > start_us)


def _longest_wait(cpu: int, rows: Sequence[dict[str, Any]], sampled: Sampled) -> Stall | None:
    row = max(rows, key=lambda row: row["ksoftirqd_delay_us"] or 0)
    waited_us = row["ksoftirqd_delay_us"] or 0
    if waited_us < STALL_US:
        return None
    start_us = row["time"] - row["interval_us"]
    return Stall("ksoftirqd", cpu, start_us, waited_us / 1e6, sampled.hog_on(cpu, start_us, row["time"]))


def _longest_hole(cpu: int, rows: Sequence[dict[str, Any]], sampled: Sampled) -> Stall | None:
    unsampled_idle = _idle_is_not_sampled(rows)
    for row in sorted(rows, key=lambda row: -(row["max_gap_us"] or 0)):
        hole_us = row["max_gap_us"] or 0
        if hole_us < STALL_US:
            return None
        touched = [other for other in rows if row["time"] - max(hole_us, row["interval_us"]) < other["time"]]
        touched = [other for other in touched if other["time"] <= row["time"]]
        if _unexplained_us(cpu, touched, sampled, unsampled_idle) < hole_us * EXPLAINED_RATIO:
            continue
        start_us = min(other["time"] - other["interval_us"] for other in touched)
        hog = sampled.first_after(cpu, hole_us, start_us - hole_us, row["time"] + row["interval_us"])
        return Stall("no_samples", cpu, row["time"] - hole_us, hole_us / 1e6, hog)
    return None


def _unexplained_us(cpu: int, rows: Sequence[dict[str, Any]], sampled: Sampled, unsampled_idle: bool) -> float:
    """Time in which the core was neither idle nor stolen nor seen by a sample."""
    elapsed_us = sum(row["interval_us"] for row in rows)
    modes = ("idle_ms", "iowait_ms", "steal_ms", *(("irq_ms", "softirq_ms") if unsampled_idle else ()))
    explained_ms = sum(row[mode] or 0 for row in rows for mode in modes)
    end_us = max(row["time"] for row in rows)
    seen_s = sampled.seconds_on(cpu, end_us - elapsed_us, end_us)
    return float(elapsed_us - explained_ms * 1000 - seen_s * 1e6)


def _idle_is_not_sampled(rows: Sequence[dict[str, Any]]) -> bool:
    """Interrupts that come while the core is idle are then not sampled either."""
    idle_ms = sum(row["idle_ms"] or 0 for row in rows)
    return idle_ms >= IDLE_UNSAMPLED_MS and not any(row["idle_samples"] for row in rows)
