"""A request to let go of the GPU driver: a file in the runtime directory that says until when.

A GPU cannot be reset, its driver not upgraded and MIG not changed while anybody has NVML open, and the recorder has it
open all the time. `zombiescope gpu --release 10m` writes the file; the recorder looks at it once a second, ends its
reader, and starts it again when the time is over. At most MOST_S, so that nobody forgets it. Only root's word, and that
of the recorder's own user, counts.
"""

from __future__ import annotations

import os
from pathlib import Path

from zombiescope.base import safe_files

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
