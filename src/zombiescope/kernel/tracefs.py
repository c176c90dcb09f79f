"""tracefs: where tracepoints have their ids and the layout of their records.

    <tracefs>/events/<group>/<name>/id       the number perf_event_open wants
    <tracefs>/events/<group>/<name>/format   the fields with offset and size; these move between kernels

Found at /sys/kernel/tracing or below debugfs. Where neither is mounted, a private mount is tried (needs CAP_SYS_ADMIN):
in a mount namespace of its own, so that the node does not change. Directories are 0700: without root the reader
needs CAP_DAC_READ_SEARCH.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PLACES = ("sys/kernel/tracing", "sys/kernel/debug/tracing")

_FIELD = re.compile(
    rb"^\tfield:(?P<what>[^;]+);\toffset:(?P<offset>\d+);\tsize:(?P<size>\d+);\tsigned:(?P<signed>[01]);", re.M
)
_ID = re.compile(rb"^ID: (\d+)$", re.M)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a raw record. A `dynamic` field holds where its string is: low half offset, high half length."""

    offset: int
    size: int
    signed: bool
    dynamic: bool

    def number(self, raw: bytes) -> int:
        return int.from_bytes(raw[self.offset : self.offset + self.size], "little", signed=self.signed)

    def text(self, raw: bytes) -> str:
        if not self.dynamic:
            return raw[self.offset : self.offset + self.size].split(b"\0", 1)[0].decode("utf-8", "replace")
        where = int.from_bytes(raw[self.offset : self.offset + 4], "little")
        start, length = where & 0xFFFF, where >> 16
        return raw[start : start + length].rstrip(b"\0").decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class EventFormat:
    number: int
    fields: dict[str, Field]


def parse(data: bytes) -> EventFormat:
    """The text of a `format` file. Raises ValueError when it names no id."""
    number = _ID.search(data)
    if number is None:
        raise ValueError("format file without ID line")
    fields = {}
    for match in _FIELD.finditer(data):
        what = match["what"].decode()
        name = re.split(r"[\s*]+", what)[-1].split("[")[0]
        fields[name] = Field(int(match["offset"]), int(match["size"]), match["signed"] == b"1", "__data_loc" in what)
    return EventFormat(int(number[1]), fields)


def find(root: str = "/") -> Path | None:
    """The mounted tracefs, or None. Raises PermissionError when it is there but closed to us."""
    denied: PermissionError | None = None
    for place in PLACES:
        events = Path(root, place, "events")
        try:
            if events.is_dir():
                next(events.iterdir(), None)
                return events.parent
        except PermissionError as error:
            denied = error
    if denied is not None:
        raise denied
    return None


def mount_privately(root: str = "/") -> Path:
    """Mounts tracefs where only this process and its children see it. Raises OSError (EPERM without CAP_SYS_ADMIN)."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, ms_rec, ms_private = 0x20000, 0x4000, 1 << 18
    place = Path(root, PLACES[0])
    steps: tuple[Callable[[], int], ...] = (
        lambda: int(libc.unshare(clone_newns)),
        lambda: int(libc.mount(None, b"/", None, ms_rec | ms_private, None)),
        lambda: int(libc.mount(b"tracefs", bytes(place), b"tracefs", 0, None)),
    )
    for step in steps:
        if step() != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), str(place))
    return place


def read_format(tracefs: Path, group: str, name: str) -> EventFormat:
    """A tracepoint's id and fields. Raises OSError when the kernel has no such tracepoint or we may not read it."""
    return parse((tracefs / "events" / group / name / "format").read_bytes())
