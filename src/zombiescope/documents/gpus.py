"""GPUs over a window, as every face shows them."""

from __future__ import annotations

from typing import Any

from zombiescope.kernel import nvml_codes
from zombiescope.query.gpus import Gpu, GpuProcess

_SAME = (
    "gpu", "seconds", "utilisation", "lowest_utilisation", "highest_utilisation", "power_w", "highest_power_w",
    "memory_used_bytes", "clock_sm_mhz", "lowest_clock_sm_mhz", "temperature_c", "memory_temperature_c",
)  # fmt: skip
_ABOUT = (
    "name", "uuid", "pci", "driver", "state", "memory_bytes", "power_limit_w", "clock_sm_max_mhz", "recovery_action",
)  # fmt: skip


def gpu(found: Gpu) -> dict[str, Any]:
    mig = found.about.get("mig")
    return {
        **{name: getattr(found, name) for name in _SAME},
        **{name: found.about.get(name) for name in _ABOUT},
        "mig": None if mig is None else bool(mig),
        "reasons": nvml_codes.reasons(found.reasons),
        "lost_clocks_s": {name.removesuffix("_ns"): value for name, value in found.lost_clocks_s.items()},
        "counters": found.counters,
        "added": found.added,
        "processes": [process(one) for one in found.processes],
    }


def process(one: GpuProcess) -> dict[str, Any]:
    same = ("pid", "comm", "unit", "container", "container_name", "pod", "pod_name", "memory_bytes")
    return {
        **{name: getattr(one, name) for name in same},
        "from": one.from_us / 1e6,
        "to": None if one.to_us is None else one.to_us / 1e6,
    }
