"""What the Xid codes of the NVIDIA driver mean, who is to blame, and what to do: three different things.

After NVIDIA's catalogue and the driver's source. The tools that watch GPUs disagree on some codes, so a code alone is
no verdict (gpu_faults.py): the driver's own wish and the severity in its text come before this table, and an
application's fault that different jobs have on the same GPU is the GPU's. A code that is not listed is as bad as the
driver made its line.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from zombiescope.base.severity import Severity

Blame = Literal["gpu", "driver", "application", "link", "power"]
Action = Literal[
    "none", "watch", "restart", "reset", "reboot", "power-cycle", "drain-peers", "drain-reset", "imex", "cables",
    "support", "test",
]  # fmt: skip

BLAMED: dict[Blame, str] = {
    "gpu": "the GPU",
    "driver": "the driver or the GPU's firmware",
    "application": "the application",
    "link": "a link between GPUs",
    "power": "power, heat or the PCIe slot",
}
"""Who is to blame, in words."""

TO_DO: dict[Action, str] = {
    "none": "nothing now: what was wrong is over, or acts at the next reset",
    "watch": "nothing now; watch whether it comes again on this GPU",
    "restart": "restart the application; the same GPU in different jobs is a fault of the GPU",
    "reset": "drain the node and reset the GPU (nvidia-smi --gpu-reset); if it comes again, replace the GPU",
    "reboot": "drain the node and reboot it; if it comes again, replace the GPU",
    "power-cycle": "drain the node and power-cycle it; look at power, heat and the PCIe slot",
    "drain-peers": "end the jobs that use this GPU together with others; other jobs may continue",
    "drain-reset": "let no new job on this GPU, wait for those on it, then reset it (nvidia-smi --gpu-reset)",
    "imex": "recover the IMEX domain, the NVLink network of several nodes (nvidia-imex-ctl)",
    "cables": "check the power cables of the GPU",
    "support": "give the vendor the bus address, the code and the time",
    "test": "take the GPU out of use and test it (dcgmi diag -r 3): different jobs failed on it with codes that "
    "applications cause",
}
RECOVERY: dict[int, Action] = {
    0: "none", 1: "reset", 2: "reboot", 3: "drain-peers", 4: "drain-reset", 5: "imex",
}  # fmt: skip
"""What the driver itself asks for: Xid 154, and field 230 of NVML."""

FOLLOWERS = frozenset({43, 45})
"""A channel that was stopped or removed because of something else: healthy nodes have thousands, when jobs end."""
RECOVERY_CODE = 154
NVLINK5 = range(144, 151)
"""Their text says whether they are fatal."""


class Xid(NamedTuple):
    happened: str
    """To the GPU, as the end of a sentence: "fell off the bus"."""
    severity: Severity
    blame: Blame | None
    action: Action

    @property
    def do(self) -> str:
        return TO_DO[self.action]


def _app(happened: str) -> Xid:
    return Xid(happened, "warning", "application", "restart")


def _link(unit: str) -> Xid:
    return Xid(f"had an NVLink error ({unit})", "critical", "link", "reset")


def _note(happened: str, blame: Blame | None = "gpu") -> Xid:
    return Xid(happened, "info", blame, "watch")


XIDS: dict[int, Xid] = {
    13: _app("had a graphics engine exception"),
    31: _app("accessed unmapped memory (MMU fault)"),
    32: _app("got a push buffer that it cannot read"),
    39: _app("had a copy engine exception"),
    40: _app("had a copy engine exception"),
    41: _app("had a copy engine exception"),
    43: Xid("stopped a channel after a fault of the application", "info", "application", "restart"),
    45: Xid("removed the channels of a process that ended or failed", "info", None, "none"),
    46: Xid("stopped processing", "critical", "driver", "reset"),
    48: Xid("had a double-bit memory error", "critical", "gpu", "reset"),
    54: Xid("has no auxiliary power", "critical", "power", "cables"),
    61: Xid("stopped at a breakpoint of its power controller", "critical", "driver", "support"),
    62: Xid("halted its own power controller", "critical", "driver", "reset"),
    63: Xid("marked a bad row of its memory to be replaced", "info", "gpu", "none"),
    64: Xid("could not replace a bad row of its memory", "critical", "gpu", "reset"),
    68: _app("had a video decoder exception"),
    69: _app("had a graphics class error"),
    74: Xid("had an NVLink error", "critical", "link", "reset"),
    79: Xid("fell off the bus", "critical", "power", "power-cycle"),
    92: _note("corrects single-bit memory errors at a high rate"),
    94: Xid("had a memory error that only one application felt", "warning", "gpu", "restart"),
    95: Xid("had a memory error that everything on it felt", "critical", "gpu", "reset"),
    109: Xid("could not switch contexts in time", "warning", "driver", "reset"),
    110: Xid("had a security fault", "critical", "driver", "reset"),
    119: Xid("has firmware that does not answer (GSP timeout)", "critical", "driver", "reset"),
    120: Xid("has firmware that failed (GSP error)", "critical", "driver", "reset"),
    121: _note("corrected errors of its link to the CPU (C2C)", "link"),
    122: Xid("could not read its own flash memory (SPI)", "critical", "driver", "support"),
    123: Xid("could not set up its power controller", "critical", "driver", "support"),
    124: Xid("could not read its InfoROM", "critical", "driver", "support"),
    125: Xid("has an InfoROM that is damaged", "critical", "driver", "support"),
    136: Xid("could not train an NVLink", "critical", "link", "reset"),
    137: Xid("was refused access by a peer over NVLink", "warning", "application", "restart"),
    140: Xid("had a memory error that was not handled", "critical", "gpu", "reset"),
    142: Xid("could not set up its NVENC", "critical", "driver", "reset"),
    143: Xid("could not be initialised", "critical", "driver", "reset"),
    144: _link("SAW"),
    145: _link("RLW"),
    146: _link("TLW"),
    147: _link("TREX"),
    148: _link("NVLPW"),
    149: _link("NETIR"),
    150: _link("MSE"),
    151: Xid("could not rotate its keys (confidential computing)", "critical", "driver", "reboot"),
    154: Xid("needs a recovery action", "critical", None, "reset"),
    155: Xid("had an NVLink error of its software", "critical", "link", "reset"),
    156: Xid("retired a part of itself", "critical", "gpu", "reset"),
    157: _note("could not retire a part of itself"),
    158: Xid("had a fatal timeout", "critical", "driver", "reset"),
    160: _note("retired a channel of its memory"),
    161: _note("could not retire a channel of its memory"),
    162: _note("uses its power smoothing again", "power"),
    163: _note("does without its power smoothing", "power"),
    164: _note("has used up most of its power smoothing", "power"),
    165: _note("has used up its power smoothing", "power"),
    167: Xid("had a fatal timeout of PCIe", "warning", "power", "watch"),
    168: Xid("found errors in its protected memory", "warning", "gpu", "watch"),
    171: Xid("had an uncorrectable error of its memory (DRAM)", "critical", "gpu", "reset"),
    172: Xid("had an uncorrectable error of its caches (SRAM)", "critical", "gpu", "reset"),
    173: Xid("had a fatal error of its link to the CPU (C2C)", "critical", "link", "support"),
    174: Xid("has less memory than before", "warning", "gpu", "watch"),
    175: Xid("has firmware that waits for its memory (GSP timeout)", "critical", "gpu", "reset"),
    176: _note("had correctable errors of PCIe", "power"),
}


def meaning(code: object) -> str | None:
    """Of a code alone, in words; whether it matters depends on what else was logged (gpu_faults.py)."""
    listed = known(code)
    if listed is None:
        return None
    blame = "" if listed.blame is None else f"; to blame is {BLAMED[listed.blame]}"
    return f"Xid {code}: the GPU {listed.happened}{blame}"


def known(code: object) -> Xid | None:
    return XIDS.get(code) if isinstance(code, int) else None
