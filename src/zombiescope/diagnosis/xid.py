"""What the common Xid codes of the NVIDIA driver mean, in the words of its catalogue, and how bad they are.

The tools that watch GPUs disagree on some codes; what is only the application's own fault is a warning here, what the
hardware corrected is info, and a code that is not listed is as bad as the driver made its line.
"""

from __future__ import annotations

from typing import NamedTuple

from zombiescope._severity import Severity


class Xid(NamedTuple):
    happened: str
    """Of the GPU, as the end of a sentence: "fell off the bus"."""
    severity: Severity
    do: str


_APPLICATION = "restart the application; the same GPU in different jobs is a fault of the GPU"
_RESET = "drain the node and reset the GPU (nvidia-smi --gpu-reset); if it comes again, replace the GPU"
_WATCH = "nothing now; watch whether it comes again on this GPU"

XIDS = {
    13: Xid("had a graphics engine exception", "warning", _APPLICATION),
    31: Xid("was asked for memory that is not mapped (MMU fault)", "warning", _APPLICATION),
    32: Xid("got a push buffer that it cannot read", "warning", _APPLICATION),
    43: Xid("stopped a channel after a fault of the application", "warning", _APPLICATION),
    45: Xid("removed the channels of a process that ended or failed", "warning", "look for the Xid before it"),
    46: Xid("stopped processing", "critical", _RESET),
    48: Xid("had a double-bit memory error", "critical", _RESET),
    54: Xid("has no auxiliary power", "critical", "check the power cables of the GPU"),
    62: Xid("halted its own power controller", "critical", _RESET),
    63: Xid("marked a bad row of its memory to be replaced", "info", "nothing now: it acts at the next reset"),
    64: Xid("could not replace a bad row of its memory", "critical", _RESET),
    68: Xid("had a video decoder exception", "warning", _APPLICATION),
    69: Xid("had a graphics class error", "warning", _APPLICATION),
    74: Xid("had an NVLink error", "critical", _RESET),
    79: Xid("fell off the bus", "critical", "drain the node and power-cycle it; look at power, heat and the PCIe slot"),
    92: Xid("corrects single-bit memory errors at a high rate", "info", _WATCH),
    94: Xid("had a memory error that only one application felt", "warning", "restart the application"),
    95: Xid("had a memory error that everything on it felt", "critical", _RESET),
    109: Xid("could not switch contexts in time", "warning", _RESET),
    110: Xid("had a security fault", "critical", _RESET),
    119: Xid("has firmware that does not answer (GSP timeout)", "critical", _RESET),
    120: Xid("has firmware that failed (GSP error)", "critical", _RESET),
    136: Xid("could not train an NVLink", "critical", _RESET),
    140: Xid("had a memory error that was not handled", "critical", _RESET),
    143: Xid("could not be initialised", "critical", _RESET),
    158: Xid("had a fatal timeout", "critical", _RESET),
}


def known(code: object) -> Xid | None:
    return XIDS.get(code) if isinstance(code, int) else None
