"""A GPU that is slow, or gone, by itself: no core of the node has anything to do with it.

It holds its clocks down for heat or for a power brake, by the driver's own counters of nanoseconds, which miss nothing
between two readings; its memory has errors that could not be corrected; or its driver lost it. A power cap is what
full load looks like and is no symptom, and neither are clocks that are low because nothing runs. Heat that the driver
regulates is one only where the clock fell against this GPU's own past.

What the driver counts as heat is believed only where the GPU is not certainly cool (store/gpu_rules.py). A clock
that stands still far below its maximum while the GPU is used, cool and within its power limit, is locked.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.spans import runs
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.diagnosis.thresholds import (
    GPU_CLOCK_FELL_RATIO,
    GPU_LOCKED_LEAST_USED,
    GPU_LOCKED_READINGS,
    GPU_SLOWED_BRIDGE_S,
    GPU_SLOWED_LEAST_S,
    GPU_SLOWED_RATIO,
)
from zombiescope.kernel import nvml_codes as codes
from zombiescope.kernel import xid
from zombiescope.query.gpu_use import Floats, GpuSeries, fall
from zombiescope.store.gpu_rules import SLOWDOWN_GAUGE, clock_text, is_cool, is_low, temperature_text

HEAT = frozenset({"hw_thermal_ns", "sw_thermal_ns"})
EXPLAINED = codes.IDLE | codes.POWER_CAP | codes.POWER_BRAKE | codes.SYNC_BOOST | codes.DISPLAY
"""Reasons for a low clock that are not somebody's setting. Heat is asked of the thermometer."""

WHY = {
    "hw_thermal_ns": ("heat", "its hardware is too hot"),
    "power_brake_ns": ("power", "its power supply asks for it (power brake)"),
    "sw_thermal_ns": ("heat", "its driver keeps it from getting too hot"),
    "reasons": ("slowdown", "its hardware asks for it (slowdown)"),
}
"""By what it was seen: which trouble, and why clocks are held down."""
STATES = {"lost": "its driver does not reach it any more", "reset_required": "it has to be reset"}


def find(facts: Facts) -> Iterator[Symptom]:
    for series in facts.gpus.values():
        locked = list(_locked(facts, series))
        yield from locked
        if not locked:
            yield from _held_down(facts, series)
    for number in sorted({row["gpu"] for row in facts.gpu_rows}):
        yield from _changed(facts, [row for row in facts.gpu_rows if row["gpu"] == number])


def _held_down(facts: Facts, series: GpuSeries) -> Iterator[Symptom]:
    counted = [name for name in WHY if name != "reasons" and not np.isnan(series.figures[name]).all()]
    for name in counted or ["reasons"]:
        ratio = _bits(series.figures[name]) if name == "reasons" else spread(series.figures[name])
        for first, last in runs(ratio >= GPU_SLOWED_RATIO, least=GPU_SLOWED_LEAST_S, bridge=GPU_SLOWED_BRIDGE_S):
            from_us, to_us = max(series.at_us(first), facts.start_us), min(series.at_us(last), facts.end_us)
            if to_us <= from_us or (name == "sw_thermal_ns" and not _clock_fell(series, first, last)):
                continue
            if name in HEAT and _was_cool(facts, series, first, last):
                continue
            trouble, why = WHY[name]
            seconds = float(np.nansum(np.minimum(ratio[first:last], 1.0)))
            text = f"GPU {series.gpu} held its clocks down for {seconds:.0f} s: {why}{_hot(series, first, last)}"
            yield _symptom(facts, series.gpu, (from_us, to_us), text, "warning", {
                "trouble": trouble, "counter": name, "slowed_s": round(seconds, 1),
            })  # fmt: skip


def spread(counted_ns: Floats) -> Floats:
    """The part of each second, of a counter that is read every few seconds and counts since the reading before."""
    ratio = np.zeros(len(counted_ns))
    known = np.flatnonzero(~np.isnan(counted_ns)).tolist()
    for before, at in pairwise(known):
        ratio[before + 1 : at + 1] = counted_ns[at] / 1e9 / (at - before)
    return ratio


def _bits(reasons: Floats) -> Floats:
    """1 where a reading said so, and until the next one."""
    ratio, last = np.zeros(len(reasons)), 0.0
    for second, bits in enumerate(reasons.tolist()):
        if not np.isnan(bits):
            last = float(bool(int(bits) & codes.HARDWARE))
        ratio[second] = last
    return ratio


def _clock_fell(series: GpuSeries, first: int, last: int) -> bool:
    clock = series.figures["clock_sm_mhz"]
    part = clock[first:last]
    found = fall(clock[:first], part[~np.isnan(part)])
    return found is not None and found.now <= (1 - GPU_CLOCK_FELL_RATIO) * found.usual


def _hot(series: GpuSeries, first: int, last: int) -> str:
    part = series.figures["temperature_c"][first:last]
    return "" if np.isnan(part).all() else f", at {np.nanmax(part):.0f} °C"


def _hottest(series: GpuSeries, name: str, first: int, last: int) -> float | None:
    part = series.figures[name][first:last]
    return None if np.isnan(part).all() else float(np.nanmax(part))


def _limit_c(facts: Facts, series: GpuSeries) -> int | None:
    return facts.gauges(*SLOWDOWN_GAUGE, facts.end_us).get(str(series.gpu))


def _was_cool(facts: Facts, series: GpuSeries, first: int, last: int) -> bool:
    hottest = (_hottest(series, name, first, last) for name in ("temperature_c", "memory_temperature_c"))
    temperature_c, memory_c = hottest
    return is_cool(temperature_c, _limit_c(facts, series), memory_c)


# --- locked clocks ---------------------------------------------------------------------------------------------------


def _locked(facts: Facts, series: GpuSeries) -> Iterator[Symptom]:
    """Readings in a row, of a GPU in use, at which the clock was the same and low."""
    clock, used = series.figures["clock_sm_mhz"], series.figures["utilisation"]
    most_mhz = _most_mhz(facts, series.gpu)
    known = np.flatnonzero(~np.isnan(clock) & (used >= GPU_LOCKED_LEAST_USED)).tolist()
    readings = [at for at in known if facts.start_us <= series.at_us(at) < facts.end_us]
    for mhz, same in groupby(readings, key=lambda at: float(clock[at])):
        seconds = list(same)
        span = seconds[0], seconds[-1] + 1
        if len(seconds) < GPU_LOCKED_READINGS or not is_low(mhz, most_mhz):
            continue
        if not _is_explained(series, seconds) and _was_cool(facts, series, *span):
            yield _locked_symptom(facts, series, span, mhz, most_mhz)


def _is_explained(series: GpuSeries, seconds: list[int]) -> bool:
    """The driver names a reason that is no setting at one of these readings, or was never asked for reasons."""
    bits = series.figures["reasons"][seconds]
    return bool(np.isnan(bits).all()) or any(int(one) & EXPLAINED for one in bits.tolist() if not np.isnan(one))


def _most_mhz(facts: Facts, gpu: int) -> int | None:
    rows = (row["clock_sm_max_mhz"] for row in reversed(facts.gpu_rows) if row["gpu"] == gpu)
    return next((most for most in rows if most), None)


def _locked_symptom(
    facts: Facts, series: GpuSeries, span: tuple[int, int], mhz: float, most_mhz: int | None
) -> Symptom:
    temperature_c, limit_c = _hottest(series, "temperature_c", *span) or 0.0, _limit_c(facts, series)
    bits = series.figures["reasons"][slice(*span)]
    is_applied = any(int(one) & codes.APPLICATION_CLOCKS for one in bits.tolist() if not np.isnan(one))
    how = "its application clocks are set" if is_applied else "its clocks are locked"
    text = (
        f"GPU {series.gpu} runs at {clock_text(mhz, most_mhz)} while it is used, at "
        f"{temperature_text(temperature_c, limit_c)}, and no power limit is active: {how} to {mhz:,.0f} MHz"
    )
    times = (max(series.at_us(span[0]), facts.start_us), min(series.at_us(span[1]), facts.end_us))
    return _symptom(facts, series.gpu, times, text, "warning", {
        "trouble": "locked", "clock_mhz": round(mhz), "clock_max_mhz": most_mhz, "applied": is_applied,
        "temperature_c": round(temperature_c), "limit_c": limit_c,
    })  # fmt: skip


# --- what else is wrong with one --------------------------------------------------------------------------------------


def _changed(facts: Facts, rows: list[dict[str, Any]]) -> Iterator[Symptom]:
    """What the last row before the window did not say yet."""
    for before, row in pairwise(rows):
        if not facts.start_us <= row["time"] < facts.end_us:
            continue
        at = (row["time"], row["time"])
        number = row["gpu"]
        errors = _rise(before, row, "ecc_uncorrected")
        if errors:
            text = f"GPU {number} had {errors:,} memory error{'s' * (errors > 1)} that could not be corrected"
            yield _symptom(facts, number, at, text, "warning", {"trouble": "memory", "counter": "ecc_uncorrected"})
        if _rise(before, row, "remap_failed"):
            text = f"GPU {number} could not replace a bad row of its memory"
            yield _symptom(facts, number, at, text, "critical", {"trouble": "memory", "counter": "remap_failed"})
        if row["state"] in STATES and row["state"] != before["state"]:
            text = f"GPU {number} is {'lost' if row['state'] == 'lost' else 'unusable'}: {STATES[row['state']]}"
            yield _symptom(facts, number, at, text, "critical", {"trouble": row["state"]})
        wish = xid.RECOVERY.get(row["recovery_action"] or 0, "none")
        if wish != "none" and row["recovery_action"] != before["recovery_action"]:
            text = f"the driver of GPU {number} asks for a recovery ({wish})"
            yield _symptom(facts, number, at, text, "critical", {"trouble": "recovery", "action": wish})


def _rise(before: dict[str, Any], row: dict[str, Any], name: str) -> int:
    """A fall is a reset by somebody."""
    if before[name] is None or row[name] is None:
        return 0
    return max(0, int(row[name]) - int(before[name]))


def _symptom(
    facts: Facts, number: int, span: tuple[int, int], text: str, severity: Severity, found: dict[str, Any]
) -> Symptom:
    pci = next((row["pci"] for row in reversed(facts.gpu_rows) if row["gpu"] == number and row["pci"]), None)
    about = {"gpu_number": number, **({"gpu": pci} if pci else {}), **found}
    return Symptom(DETECTOR, *span, text, severity, group=f"GPU {number}", facts=about, subject="gpu")


DETECTOR = Detector(
    kind="gpu_slow",
    title="a GPU is slow by itself",
    reported_when="a GPU held its clocks down for heat or a power brake for 20% of three seconds or more, ran at half "
    "of its clock or less though it was used and cool, had memory errors that could not be corrected, or was lost by "
    "its driver",
    find=find,
    source="gpu_seconds",
    role="victim",
    about="gpu",
    weight=5,
    bounds_case=True,
    has_hog=False,
)
