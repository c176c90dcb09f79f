"""What stands in a line of the NVIDIA driver behind its code: whose channel it was, and what the driver itself says.

An Xid is printed as ``NVRM: Xid (PCI:0000:81:00): 79, pid=1122, name=python3, GPU has fallen off the bus.``, since
driver 515 with the process that owns the channel, where the driver knows it; before that with a pid only, or quoted, or
without. On a GPU that is cut into instances (MIG) the place goes on: ``PCI:0000:01:00 GPU-I:05 GPU-CI:02``.

The name of a process is at most fifteen characters and its owner's choice; what is read out of the message is longer
than that, so that no name can pass for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
