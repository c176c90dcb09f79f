"""Numbers of NVIDIA's NVML (nvml.h) and what they mean: return codes, clocks event reasons, kinds of samples, fields.

Pure tables; nvml.py makes the calls. Codes and bits never change their meaning; new ones are added.
"""

from __future__ import annotations

SUCCESS = 0
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
VERSION_MISMATCH = 18

MEANINGS = {
    1: "it is not initialised", INVALID_ARGUMENT: "the driver does not know this question",
    NOT_SUPPORTED: "this GPU does not support it", NO_PERMISSION: "no permission", NOT_FOUND: "nothing there",
    INSUFFICIENT_SIZE: "the answer is too long", DRIVER_NOT_LOADED: "no driver is loaded",
    TIMEOUT: "the driver timed out", 12: "a library of the driver is missing",
    FUNCTION_NOT_FOUND: "the driver's library is too old for it", GPU_IS_LOST: "the GPU has fallen off the bus",
    RESET_REQUIRED: "the GPU must be reset", 17: "the operating system blocks the driver",
    VERSION_MISMATCH: "the driver's library and its kernel module are of different versions", 999: "unknown error",
}  # fmt: skip
"""Of nvmlReturn_t."""

IDLE, APPLICATION_CLOCKS, POWER_CAP, HW_SLOWDOWN, SYNC_BOOST, SW_THERMAL, HW_THERMAL, POWER_BRAKE, DISPLAY = (
    1 << bit for bit in range(9)
)
REASONS = {
    IDLE: "idle", APPLICATION_CLOCKS: "application clocks", POWER_CAP: "power cap", HW_SLOWDOWN: "hardware slowdown",
    SYNC_BOOST: "sync boost", SW_THERMAL: "heat (driver)", HW_THERMAL: "heat (hardware)", POWER_BRAKE: "power brake",
    DISPLAY: "display clocks",
}  # fmt: skip
"""Why clocks are below their maximum (nvmlClocksEventReasons). Idle and application clocks are no fault, a power cap is
normal at full load. Locked clocks (nvmlDeviceSetGpuLockedClocks) have no bit of their own."""
HARDWARE = HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE

POWER_SAMPLES, UTILISATION_SAMPLES, MEMORY_SAMPLES = 0, 1, 2
CLOCK_SM = 1
TEMPERATURE_GPU = 0
SLOWDOWN_THRESHOLD = 1
"""nvmlTemperatureThresholds_t: above it the hardware slows the GPU down."""
MARGIN_VERSION = 0x1000008
"""nvmlMarginTemperature_v1."""

LOST_CLOCKS = {
    "power_cap_ns": 74, "sync_boost_ns": 76, "sw_thermal_ns": 269, "hw_thermal_ns": 270, "power_brake_ns": 271,
}  # fmt: skip
"""Counters of nanoseconds in which clocks were held down."""

MEMORY_TEMPERATURE = 82

COUNTERS = {
    "ecc_corrected": (5,), "ecc_uncorrected": (6,), "remapped_corrected": (142,), "remapped_uncorrected": (143,),
    "remap_pending": (144,), "remap_failed": (145,), "nvlink_errors": (38, 45, 52, 208, 214),
    "nvlink_recoveries": (59, 213), "pcie_replays": (94,), "pcie_errors": (179, 180), "recovery_action": (230,),
}  # fmt: skip
"""Column -> fields whose sum it is; which of them a GPU has depends on its generation. ECC errors over its life."""


def meaning(code: int) -> str:
    return MEANINGS.get(code, f"NVML error {code}")


def reasons(bits: int | None) -> list[str]:
    """Why clocks are low, in words."""
    if bits is None:
        return []
    known = [text for bit, text in REASONS.items() if bits & bit]
    return known + ([f"0x{bits & ~0x1FF:x}"] if bits & ~0x1FF else [])


FABRIC_COMPLETED = 3
FABRIC_STATES = {1: "has not started to register it", 2: "has not finished registering it", 3: "has registered it"}
"""nvmlGpuFabricState_t; 0: this GPU has no fabric."""
