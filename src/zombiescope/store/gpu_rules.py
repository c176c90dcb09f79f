"""What the recorder and its readers agree on about the GPU driver: when clocks count as lowered, and who lets it go.

Why a GPU runs with lowered clocks is one rule for the recorder, which reports, and for the diagnosis, which judges.

The driver counts time with lowered clocks by reason, and what it calls thermal need not be heat: on an H200 whose
clocks were locked (nvidia-smi -lgc 345,345) its thermal counter rose at 37 degrees. So heat is not believed where the
GPU is certainly cool; where its temperature is not known, the driver is. NVML has no call that tells whether clocks are
locked: they show as a clock far below the maximum that nothing else explains.
"""

from __future__ import annotations

import os
from pathlib import Path

from zombiescope.base import safe_files

NEAR_LIMIT_C = 10
"""A driver that regulates heat begins some degrees before the hardware does."""
COOL_C = 60
"""Where the limit is not known: data centre GPUs slow down above 80 degrees."""
MEMORY_COOL_C = 80
"""The limit of the memory is not recorded; that of HBM is 95 degrees and more."""
LOW_CLOCK_RATIO = 0.5
"""Of the maximum: lower than default application clocks of training GPUs, and than most people lock on purpose."""
SLOWDOWN_GAUGE = ("gpu", "slowdown_c")
"""Source and name of the series in which the temperature limit of each GPU is recorded; its key is the number."""


def is_cool(temperature_c: float | None, limit_c: float | None, memory_c: float | None = None) -> bool:
    """Whether it is certainly not heat that holds its clocks down."""
    if temperature_c is None or (memory_c is not None and memory_c >= MEMORY_COOL_C):
        return False
    return temperature_c < (COOL_C if limit_c is None else limit_c - NEAR_LIMIT_C)


def is_low(clock_mhz: float | None, max_mhz: float | None) -> bool:
    return clock_mhz is not None and bool(max_mhz) and clock_mhz <= LOW_CLOCK_RATIO * (max_mhz or 0)


def clock_text(clock_mhz: float, max_mhz: float | None) -> str:
    return f"{clock_mhz:,.0f} MHz" if max_mhz is None else f"{clock_mhz:,.0f} of {max_mhz:,.0f} MHz"


def temperature_text(temperature_c: float, limit_c: float | None) -> str:
    limit = "its limit is not known" if limit_c is None else f"limit {limit_c:.0f} °C"
    return f"{temperature_c:.0f} °C ({limit})"


# --- the driver let go ------------------------------------------------------------------------------------------------
# A request to let go of the GPU driver: a file in the runtime directory that says until when.
#
# A GPU cannot be reset, its driver not upgraded and MIG not changed while anybody has NVML open, and the recorder has
# it open all the time. `zombiescope gpu --release 10m` writes the file; the recorder looks at it once a second, ends
# its reader, and starts it again when the time is over. At most MOST_S, so that nobody forgets it. Only root's word,
# and that of the recorder's own user, counts.

NAME = "gpu-release"
MOST_S = 3600


def request(runtime: Path, until_s: float) -> None:
    """Raises OSError."""
    safe_files.replace(runtime / NAME, f"{until_s:.0f}\n".encode())


def until_s(runtime: Path, now_s: float) -> float | None:
    """Unix time until which the driver is to be let go of; None where nobody asks for it, or no longer."""
    try:
        descriptor = safe_files.open_to_read(runtime / NAME)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if os.fstat(file.fileno()).st_uid not in (0, os.geteuid()):
            return None
        text = file.read(32).strip()
    wanted = float(text) if text.isdigit() else 0.0
    return min(wanted, now_s + MOST_S) if wanted > now_s else None
