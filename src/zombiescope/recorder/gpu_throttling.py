"""GPUs whose clocks are held down by heat or by the power supply, from the driver's own nanosecond counters.

Not by a power cap, which is normal at full load, and not by polled bits, which miss what is between two questions. One
event when it begins; the next one only after it was over for QUIET_US. What the driver counts as heat is checked
against the temperature (store/gpu_rules.py): locked clocks are counted there, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zombiescope.base.severity import Severity
from zombiescope.store.gpu_rules import clock_text, is_cool, is_low, temperature_text

SHARE = 0.05
"""Of the time since the counters were last read."""
QUIET_US = 60_000_000
CAUSES = {
    "hw_thermal_ns": "it is too hot (hardware slowdown)",
    "sw_thermal_ns": "it is too hot (the driver's own limit)",
    "power_brake_ns": "the power supply asked for it (power brake)",
}
HEAT = frozenset({"hw_thermal_ns", "sw_thermal_ns"})


@dataclass(frozen=True, slots=True)
class Throttled:
    gpu: int
    text: str
    severity: Severity
    fields: dict[str, Any]


class Throttling:
    def __init__(self) -> None:
        self._read_us: dict[int, int] = {}
        self._last_us: dict[tuple[int, str], int] = {}

    def second(self, row: dict[str, Any], limit_c: int | None = None, max_mhz: int | None = None) -> Throttled | None:
        """From a row of `gpu_seconds`; None unless something begins."""
        if all(row[name] is None for name in CAUSES):
            return None
        gpu, at_us = row["gpu"], row["time"]
        before_us = self._read_us.get(gpu)
        self._read_us[gpu] = at_us
        if before_us is None or at_us <= before_us:
            return None
        began = [name for name in CAUSES if self._begins(gpu, name, at_us, row[name], at_us - before_us)]
        if not began:
            return None
        worst = max(began, key=lambda name: int(row[name]))
        held_s, of_s = row[worst] / 1e9, (at_us - before_us) / 1e6
        fields = {"gpu": gpu, "reason": worst.removesuffix("_ns"), "held_ms": row[worst] // 1_000_000}
        ran = f"ran with lowered clocks for {min(held_s, of_s):.1f} of {of_s:.0f} s"
        if worst in HEAT and is_cool(row["temperature_c"], limit_c, row["memory_temperature_c"]):
            text, fields = f"{ran}: {_not_heat(row, limit_c, max_mhz)}", {**fields, **_facts(row, limit_c, max_mhz)}
            return Throttled(gpu, text, "info", fields)
        text = f"{ran}: {CAUSES[worst]}"
        if row["temperature_c"] is not None:
            text += f", {row['temperature_c']} °C"
        return Throttled(gpu, text, "warning", fields)

    def _begins(self, gpu: int, name: str, at_us: int, held_ns: int | None, of_us: int) -> bool:
        if held_ns is None or held_ns < SHARE * of_us * 1000:
            return False
        last_us = self._last_us.get((gpu, name))
        self._last_us[gpu, name] = at_us
        return last_us is None or at_us - last_us > QUIET_US


def _not_heat(row: dict[str, Any], limit_c: int | None, max_mhz: int | None) -> str:
    """Of a GPU that is cool, whatever its driver calls the reason."""
    cool = f"the driver counts it as heat, but it is at {temperature_text(row['temperature_c'], limit_c)}"
    if not is_low(row["clock_sm_mhz"], max_mhz):
        return f"{cool}; the reason is not known"
    undo = f"nvidia-smi -i {row['gpu']} -rgc resets that"
    return f"{cool} and at {clock_text(row['clock_sm_mhz'], max_mhz)}: its clocks are locked, as it seems; {undo}"


def _facts(row: dict[str, Any], limit_c: int | None, max_mhz: int | None) -> dict[str, Any]:
    known = {"temperature_c": row["temperature_c"], "limit_c": limit_c, "clock_mhz": row["clock_sm_mhz"],
             "clock_max_mhz": max_mhz, "locked": int(is_low(row["clock_sm_mhz"], max_mhz))}  # fmt: skip
    return {name: value for name, value in known.items() if value is not None}
