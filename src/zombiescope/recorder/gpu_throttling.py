"""GPUs whose clocks are held down by heat or by the power supply, from the driver's own nanosecond counters.

Not by a power cap, which is normal at full load, and not by polled bits, which miss what is between two questions. One
event when it begins; the next one only after it was over for QUIET_US.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SHARE = 0.05
"""Of the time since the counters were last read."""
QUIET_US = 60_000_000
CAUSES = {
    "hw_thermal_ns": "it is too hot (hardware slowdown)",
    "sw_thermal_ns": "it is too hot (the driver's own limit)",
    "power_brake_ns": "the power supply asked for it (power brake)",
}


@dataclass(frozen=True, slots=True)
class Throttled:
    gpu: int
    text: str
    fields: dict[str, Any]


class Throttling:
    def __init__(self) -> None:
        self._read_us: dict[int, int] = {}
        self._last_us: dict[tuple[int, str], int] = {}

    def second(self, row: dict[str, Any]) -> Throttled | None:
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
        text = f"ran with lowered clocks for {min(held_s, of_s):.1f} of {of_s:.0f} s: {CAUSES[worst]}"
        if row["temperature_c"] is not None:
            text += f", {row['temperature_c']} °C"
        fields = {"gpu": gpu, "reason": worst.removesuffix("_ns"), "held_ms": row[worst] // 1_000_000}
        return Throttled(gpu, text, fields)

    def _begins(self, gpu: int, name: str, at_us: int, held_ns: int | None, of_us: int) -> bool:
        if held_ns is None or held_ns < SHARE * of_us * 1000:
            return False
        last_us = self._last_us.get((gpu, name))
        self._last_us[gpu, name] = at_us
        return last_us is None or at_us - last_us > QUIET_US
