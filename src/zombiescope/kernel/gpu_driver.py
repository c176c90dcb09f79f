"""/proc/driver/nvidia/version: whether the NVIDIA driver is loaded, and which.

    NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  ...

Cost: one small file, no lock of the driver. Absence: no driver, no GPU to record; that is no fault. In a sandbox that
shows no /proc/driver the device /dev/nvidiactl says as much, without a version.
"""

from __future__ import annotations

import os
import re

from zombiescope.kernel.procfile import at, read_file

_VERSION = re.compile(rb"\s(\d{3,4}\.\d+(?:\.\d+)?)\s")
UNKNOWN = "unknown"


def parse(data: bytes) -> str:
    """The version; "unknown" where the text has none."""
    found = _VERSION.search(data)
    return found[1].decode() if found else UNKNOWN


def read(root: str = "/") -> str | None:
    """The driver's version, or None where none is loaded."""
    data = read_file(at(root, "proc/driver/nvidia/version"))
    if data is not None:
        return parse(data)
    return UNKNOWN if os.path.exists(at(root, "dev/nvidiactl")) else None  # noqa: PTH110 - a device, not opened
