# ruff: noqa: E501 - the wording of the driver is kept whole, to be searched for
"""Lines of the NVIDIA driver: Xid, SXid of an NVSwitch, a GPU that is lost or was never found, GPUDirect.

What a code means, and who is to blame, is not said here (kernel/xid.py). Its severity is: the many lines that
applications cause are warnings, and what the hardware put right is information, also in a list of events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from zombiescope.base.severity import Severity
from zombiescope.kernel.log_line import LineFormat

# --- Xid --------------------------------------------------------------------------------------------------------------
# What stands in a line of the NVIDIA driver behind its code: whose channel it was, and what the driver itself says.
#
# An Xid is printed as ``NVRM: Xid (PCI:0000:81:00): 79, pid=1122, name=python3, GPU has fallen off the bus.``, since
# driver 515 with the process that owns the channel, where the driver knows it; before that with a pid only, or quoted,
# or without. On a GPU that is cut into instances (MIG) the place goes on: ``PCI:0000:01:00 GPU-I:05 GPU-CI:02``.
#
# The name of a process is at most fifteen characters and its owner's choice; what is read out of the message is longer
# than that, so that no name can pass for it.

Fields = dict[str, str | int]

_PLACE = re.compile(
    r"(?:PCI:)?(?P<gpu>[0-9a-fA-F:.]{5,20})"
    r"(?: GPU-I:(?P<gpu_instance>\d{1,4}))?(?: GPU-CI:(?P<compute_instance>\d{1,4}))?"
)
_PROCESS = re.compile(
    r"pid=(?:(?P<pid>\d{1,10})|'?<unknown>'?)(?:, name=(?P<comm>.{0,64}?))?(?:, (?P<message>.*))?", re.DOTALL
)
_MESSAGES = (
    # 45 since driver 570: the channel was removed because of another fault.
    re.compile(r"caused by previous Xid (?P<after_xid>\d{1,4})\b"),
    # 94, 95: whether the driver wants a reset, and whether the other jobs are to be drained before it.
    re.compile(r"\bRST: (?P<reset>Yes|No), D-RST: (?P<drain>Yes|No)"),
    re.compile(r"Timeout after (?P<waited_s>\d{1,9})s of waiting for RPC response from GPU\d{1,4} GSP"),
    # 144 to 150 name the unit, whether it is fatal, and the link; to driver 570 as "XC 1 i 2 Link 01 [0x0000000a]".
    re.compile(
        r"\b(?P<nvlink_unit>[A-Z][A-Z0-9_/]{1,40})\s{1,4}(?P<fatal>Fatal|Nonfatal)\s{1,4}XC ?\d\s{1,4}i ?\d{1,3}\s{1,4}"
        r"Link\s{1,4}(?P<link>-?\d{1,4}) [(\[](?P<status>0x[0-9a-fA-F]{1,8})"
    ),
    # 154: the number counts; what stands in brackets differs between drivers (GPU Reset Required, PF FLR).
    re.compile(
        r"GPU recovery action changed from 0x(?P<recovery_before>[0-9a-fA-F]{1,4}) \([^)]{0,64}\) "
        r"to 0x(?P<recovery>[0-9a-fA-F]{1,4})\b"
    ),
)
_SWITCH = re.compile(r"(?P<fatal>Fatal|Non-fatal), (?:Link (?P<link>\d{1,4}))?")
_NUMBERS = frozenset({"pid", "gpu_instance", "compute_instance", "after_xid", "waited_s", "link"})
_SAID = {"Yes": 1, "No": 0, "Fatal": 1, "Nonfatal": 0, "Non-fatal": 0}
_RECOVERY = frozenset({"recovery", "recovery_before"})


def xid(line: Mapping[str, str | None]) -> Fields:
    """Of an Xid: `gpu` is the address alone; the instance, the process and what its message says are fields of their
    own."""
    rest = line.get("rest") or ""
    who = _PROCESS.fullmatch(rest)
    message = (who["message"] or "") if who else rest
    fields = {**_place(line.get("gpu") or ""), **(_values(who) if who else {}), **_message(message)}
    if fields.get("comm") == "<unknown>":
        del fields["comm"]
    return fields | ({"message": message} if message else {})


def sxid(line: Mapping[str, str | None]) -> Fields:
    """Of an SXid of an NVSwitch: a fault is one line that says how bad it is, and some of the same code that go on."""
    rest = line.get("rest") or ""
    found = _SWITCH.match(rest)
    return {"message": rest, **(_values(found) if found else {"continued": 1})}


def _place(text: str) -> Fields:
    found = _PLACE.fullmatch(text)
    return _values(found) if found else {"gpu": text}


def _message(message: str) -> Fields:
    found = next(filter(None, (pattern.search(message) for pattern in _MESSAGES)), None)
    return _values(found) if found else {}


def _values(found: re.Match[str]) -> Fields:
    groups = {name: value for name, value in found.groupdict().items() if value is not None and name != "message"}
    return {name: _value(name, value) for name, value in groups.items()}


def _value(name: str, value: str) -> str | int:
    if name in _RECOVERY:
        return int(value, 16)
    return int(value) if name in _NUMBERS else _SAID.get(value, value) if name in ("fatal", "reset", "drain") else value


# --- log lines gpu ----------------------------------------------------------------------------------------------------

_PCI = "NVRM: Xid (PCI:0000:81:00): "

_MILDER: dict[int, tuple[Severity, str]] = {
    13: ("warning", "pid=4711, name=python3, Graphics SM Warp Exception on (GPC 3, TPC 1, SM 1): Out Of Range Address"),
    31: ("warning", "pid=4711, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC5 faulted @ 0x7f0a_00000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"),
    32: ("warning", "pid=4711, name=python3, Channel ID 0000000b intr0 00040000"),
    39: ("warning", "pid=4711, name=python3, Ch 00000009, CE exception"),
    40: ("warning", "pid=4711, name=python3, Ch 00000009, CE exception"),
    41: ("warning", "pid=4711, name=python3, Ch 00000009, CE exception"),
    43: ("info", "pid=4711, name=python3, Ch 00000010"),
    45: ("info", "pid=4711, name=python3, Ch 0000000a caused by previous Xid 149"),
    63: ("warning", "pid='<unknown>', name=<unknown>, Row Remapper: New row (0x0000000000a1b2c3) marked for remapping, reset gpu to activate."),
    68: ("warning", "pid=4711, name=ffmpeg, NVDEC0 Exception"),
    69: ("warning", "pid=4711, name=python3, Class Error: ChId 0008, Class 0000c6c0, Offset 00000518"),
    92: ("warning", "pid='<unknown>', name=<unknown>, High single-bit ECC error rate"),
    94: ("warning", "pid=4711, name=python3, Contained: CE User Channel (0x9). RST: No, D-RST: No"),
    109: ("warning", "pid=4711, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x3c046"),
    121: ("info", "pid='<unknown>', name=<unknown>, C2C Link corrected error"),
    137: ("warning", "pid=4711, name=python3, NVLink: fault due to peer privilege"),
    157: ("info", "Resource retirement failure"),
    160: ("info", "Channel Retirement Event"),
    161: ("info", "Channel Retirement Failure"),
    162: ("info", "Power Smoothing HW Circuitry capability reengaged"),
    163: ("info", "Power Smoothing HW Circuitry capability disengaged"),
    164: ("info", "Power Smoothing HW Circuitry low lifetime reached"),
    165: ("info", "Power Smoothing HW Circuitry lifetime exhausted"),
    167: ("warning", "PCIe fatal timeout"),
    168: ("warning", "Errors found in WPR (write protected region)"),
    174: ("warning", "Reduced GPU memory capacity"),
    176: ("info", "PCIe correctable error"),
}  # fmt: skip
"""Codes that are no alarm: how bad, and the rest of such a line."""

GPU_FORMATS = (
    *(
        LineFormat(
            f"nvidia.xid.{code}", "gpu_xid", severity, f"NVRM: Xid ({{gpu:c}}): {code}, {{rest:t}}",
            f"{_PCI}{code}, {rest}", "source", also={"xid": code}, detail=xid,
        )
        for code, (severity, rest) in _MILDER.items()
    ),
    LineFormat(
        "nvidia.xid.recovered", "gpu_xid", "info",
        "NVRM: Xid ({gpu:c}): 154, GPU recovery action changed from {before:w} ({was:c}) to 0x0 {rest:t}",
        _PCI + "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
        "source", also={"xid": 154, "recovery": 0}, detail=lambda line: {"gpu": xid(line)["gpu"]},
    ),
    LineFormat(
        "nvidia.xid", "gpu_xid", "critical", "NVRM: Xid ({gpu:c}): {xid:d}, {rest:t}",
        _PCI + "79, pid=1122, name=python3, GPU has fallen off the bus.", "source", loose=True, detail=xid,
    ),
    LineFormat(
        "nvidia.off-the-bus", "gpu_xid", "critical", "NVRM: GPU {gpu:w}: GPU has fallen off the bus.",
        "NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.", "source", also={"xid": 79},
    ),
    # At probe there is no Xid; one printk of three lines, which some readers hand on one by one.
    LineFormat(
        "nvidia.off-the-bus.probe", "gpu_xid", "critical",
        "NVRM: The NVIDIA GPU {gpu:w}\nNVRM: (PCI ID: {pci_id:w}) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: 10de:26b5) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "source", also={"xid": 79, "phase": "probe"},
    ),
    LineFormat(
        "nvidia.off-the-bus.probe-two", "gpu_xid", "critical",
        "NVRM: The NVIDIA GPU {gpu:w} (PCI ID: {pci_id:w}) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "NVRM: The NVIDIA GPU 0000:05:00.0 (PCI ID: 10de:2203) installed in this system has\n"
        "NVRM: fallen off the bus and is not responding to commands.",
        "seen", also={"xid": 79, "phase": "probe"},
    ),
    LineFormat(
        "nvidia.off-the-bus.first-line", "gpu_probe", "info", "NVRM: The NVIDIA GPU {gpu:w}",
        "NVRM: The NVIDIA GPU 0000:b3:00.0", "seen",
    ),
    LineFormat(
        "nvidia.off-the-bus.last-line", "gpu_xid", "critical",
        "NVRM: fallen off the bus and is not responding to commands.",
        "NVRM: fallen off the bus and is not responding to commands.", "seen", also={"xid": 79, "phase": "probe"},
    ),
    LineFormat(
        "nvidia.init-failed", "gpu_init", "critical", "NVRM: GPU {gpu:w}: RmInitAdapter failed! ({status:c})",
        "NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0xffff:1863)", "source",
    ),
    LineFormat(
        "nvidia.init-failed.to-3xx", "gpu_init", "critical", "NVRM: RmInitAdapter failed! ({status:c})",
        "NVRM: RmInitAdapter failed! (0x27:0x38:1193)", "seen",
    ),
    LineFormat(
        "nvidia.init-failed.minor", "gpu_init", "critical",
        "NVRM: GPU {gpu:w}: rm_init_adapter failed, device minor number {minor:d}",
        "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0", "source",
    ),
    LineFormat(
        "nvidia.probe-failed", "gpu_init", "critical", "NVRM: The NVIDIA probe routine failed for {devices:d} device(s).",
        "NVRM: The NVIDIA probe routine failed for 1 device(s).", "source",
    ),
    LineFormat(
        "nvidia.none", "gpu_init", "critical", "NVRM: None of the NVIDIA devices were initialized.",
        "NVRM: None of the NVIDIA devices were initialized.", "seen",
    ),
    LineFormat(
        "nvidia.identity", "gpu_identity", "info", "NVRM: GPU at PCI:{gpu:w}: {uuid:w}",
        "NVRM: GPU at PCI:0000:81:00: GPU-11111111-2222-3333-4444-555555555555", "source",
    ),
    # After three timeouts of the firmware only one of thirty is printed: fewer lines are no recovery.
    LineFormat(
        "nvidia.gsp-rate", "gpu_log_limited", "info", "NVRM: Rate limiting GSP RPC error prints{rest:t}",
        "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:81:00 (printing 1 of every 30).", "source",
    ),
    # An assert of the driver that is no Xid: a GPU that has to be reset says so here and nowhere else.
    LineFormat(
        "nvidia.reset-required", "gpu_driver_error", "critical",
        "NVRM: {function:w} Assertion failed: {what:c} [NV_ERR_RESET_REQUIRED] {rest:t}",
        "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x0000006C) returned from "
        "kgspBootstrap_HAL(pGpu, pKernelGsp) @ kernel_gsp.c:4711",
        "unconfirmed",
    ),
    LineFormat(
        "nvidia.assert", "gpu_driver_error", "warning", "NVRM: {function:w} Assertion failed: {rest:t}",
        "NVRM: nvAssertFailedNoLog: Assertion failed: pGpu != NULL @ gpu_access.c:153", "source", loose=True,
    ),
    LineFormat(
        "amdgpu.reset", "gpu_driver_error", "critical", "amdgpu: GPU reset begin!{rest:t}",
        "amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!. Source:  1", "source", ("amdgpu",),
    ),
    LineFormat(
        "amdgpu.reset-done", "gpu_driver_error", "info", "amdgpu: GPU reset({count:d}) succeeded!",
        "amdgpu 0000:c1:00.0: amdgpu: GPU reset(2) succeeded!", "source", ("amdgpu",),
    ),
    LineFormat(
        "nvswitch.sxid", "nvswitch_sxid", "critical", "nvidia-nvswitch{switch:d}: SXid (PCI:{pci:c}): {sxid:d}, {rest:t}",
        "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
        "source", detail=sxid,
    ),
    # Usual when a job that used GPUDirect was killed.
    LineFormat(
        "nvidia.peermem", "gpu_peermem", "info", "nvidia-peermem {function:w} ERROR detected invalid context, {rest:t}",
        "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", "source",
    ),
)  # fmt: skip
