"""The header of perf.data: which events were recorded, on which host, with which binaries.

    file   "PERFILE2", size 104, size of an attr entry, sections of attrs, data and event types, 256 feature bits;
           after the data, a (place, size) for each feature whose bit is set
    pipe   "PERFILE2", size 16; attrs and features come as records of their own among the data

An attr entry is a perf_event_attr (64 bytes in Linux 2.6.31, 136 today; the size says which) and the place of the ids
by which records name it. Nothing here is believed before it was compared with the size of what holds it: a damaged
feature is as one that is missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from zombiescope.base.errors import UserError

PIPE_BYTES = 16
FILE_BYTES = 104
MAX_SECTION_BYTES = 64 << 20
MAX_PLACE = 1 << 62
MAX_EVENTS = 65_536
KERNEL_MODE = 1

BUILD_ID, HOSTNAME, OS_RELEASE, VERSION, ARCH, CPUS, EVENT_DESC = 2, 3, 4, 5, 6, 7, 12
SAMPLE_TIME, DIR_FORMAT, CLOCK_DATA = 21, 24, 29

_HARDWARE = ("cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles",
             "stalled-cycles-frontend", "stalled-cycles-backend", "ref-cycles")  # fmt: skip
_SOFTWARE = ("cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
             "major-faults", "alignment-faults", "emulation-faults", "dummy", "bpf-output",
             "cgroup-switches")  # fmt: skip
_MISC_BUILD_ID_SIZE = 1 << 15


class HeaderError(UserError, ValueError):
    """The file cannot be read at all; `what` says why."""


class Attr(NamedTuple):
    """What decoding needs of a perf_event_attr."""

    kind: int
    config: int
    sample_type: int
    read_format: int
    sample_id_all: bool
    branch_type: int
    regs_user: int
    regs_intr: int
    period: int
    """Fixed distance between samples; 0: a frequency was asked for."""
    build_ids: bool = True
    """Records of mappings were to carry build ids."""

    @property
    def name(self) -> str:
        """The event's name when the file does not name it."""
        names = {0: _HARDWARE, 1: _SOFTWARE}.get(self.kind, ())
        if self.config < len(names):
            return names[self.config]
        return f"raw 0x{self.config:x}" if self.kind == 4 else f"event {self.kind}:0x{self.config:x}"


class BuildId(NamedTuple):
    path: bytes
    build_id: bytes
    is_kernel: bool


@dataclass(slots=True)
class PerfHeader:
    """What is before, after and among the samples."""

    attrs: list[tuple[Attr, Sequence[int]]] = field(default_factory=list)
    features: dict[int, bytes] = field(default_factory=dict)
    is_pipe: bool = False
    data_offset: int = PIPE_BYTES
    data_bytes: int | None = None
    """None: perf was killed before it could say, or it is a pipe."""
    cut: bool = False
    """The features should be after the data and are not."""

    def text(self, feature: int) -> str | None:
        data = self.features.get(feature, b"")
        return _string(data, 0)[0].decode("utf-8", "replace") or None if len(data) > 4 else None

    def sample_time_ns(self) -> tuple[int, int] | None:
        """Times of the first and the last sample; perf leaves zeros where it did not look at them."""
        data = self.features.get(SAMPLE_TIME, b"")
        first, last = struct.unpack_from("<QQ", data) if len(data) >= 16 else (0, 0)
        return (first, last) if 0 < first <= last else None

    def wall_offset_ns(self) -> int | None:
        """Unix time minus the clock of the records."""
        data = self.features.get(CLOCK_DATA, b"")
        if len(data) < 24:
            return None
        _, _, wall_ns, clock_ns = struct.unpack_from("<IIQQ", data)
        return int(wall_ns) - int(clock_ns)

    def event_names(self) -> dict[int, str]:
        """Event id -> name."""
        return dict(_event_names(self.features.get(EVENT_DESC, b"")))

    def build_ids(self) -> Iterator[BuildId]:
        data = self.features.get(BUILD_ID, b"")
        at = 0
        while at + 8 <= len(data):
            _, misc, size = struct.unpack_from("<IHH", data, at)
            if size < 8 or at + size > len(data):
                return
            entry = build_id_record(data[at : at + size], misc)
            if entry is not None:
                yield entry
            at += size


def build_id_record(record: bytes, misc: int) -> BuildId | None:
    """i32 pid, 20 bytes of build id, its length (if a bit in `misc` says so), the path."""
    if len(record) < 37:
        return None
    length = min(record[32], 20) if misc & _MISC_BUILD_ID_SIZE else 20
    return BuildId(record[36:].split(b"\0", 1)[0], record[12 : 12 + length], misc & 7 == KERNEL_MODE)


def parse_attr(data: bytes) -> Attr | None:
    """A perf_event_attr of any size; fields that an old kernel did not have are 0."""
    if len(data) < 48:
        return None
    full = data[:136].ljust(136, b"\0")
    kind, _, config, period, sample_type, read_format, flags = struct.unpack_from("<IIQQQQQ", full)
    branch_type, regs_user = struct.unpack_from("<QQ", full, 72)
    (regs_intr,) = struct.unpack_from("<Q", full, 96)
    is_frequency, sample_id_all = bool(flags >> 10 & 1), bool(flags >> 18 & 1)
    return Attr(
        kind, config, sample_type, read_format, sample_id_all, branch_type, regs_user, regs_intr,
        0 if is_frequency else period, bool(flags >> 34 & 1),
    )  # fmt: skip


def attr_record(record: bytes) -> tuple[Attr, Sequence[int]] | None:
    """A HEADER_ATTR record of a pipe: the attr, as long as it says, then its ids."""
    if len(record) < 8 + 48:
        return None
    (size,) = struct.unpack_from("<I", record, 12)
    size = size or 64
    if size < 48 or 8 + size > len(record):
        return None
    attr = parse_attr(record[8 : 8 + size])
    count = (len(record) - 8 - size) // 8
    return None if attr is None else (attr, struct.unpack_from(f"<{count}Q", record, 8 + size))


def read(file: BinaryIO, size: int | None) -> PerfHeader:
    """The header of a file that stands at its beginning; it must be able to seek unless it is a pipe's. Raises
    HeaderError."""
    head = file.read(PIPE_BYTES)
    if head[:8] == b"2ELIFREP":
        raise HeaderError(
            "written on a machine of the other byte order", "read it there with perf script and import its text"
        )
    if head[:8] != b"PERFILE2":
        raise HeaderError("not perf.data")
    if len(head) < PIPE_BYTES:
        raise HeaderError("ends within its header")
    (header_bytes,) = struct.unpack_from("<Q", head, 8)
    if header_bytes == PIPE_BYTES:
        return PerfHeader(is_pipe=True)
    head += file.read(FILE_BYTES - PIPE_BYTES)
    if len(head) < FILE_BYTES or not FILE_BYTES <= header_bytes <= 4096:
        raise HeaderError("ends within its header" if len(head) < FILE_BYTES else "its header is damaged")
    return _file_header(file, head, size)


def _file_header(file: BinaryIO, head: bytes, size: int | None) -> PerfHeader:
    attr_bytes, attrs_at, attrs_bytes, data_at, data_bytes = struct.unpack_from("<QQQQQ", head, 16)
    header = PerfHeader(data_offset=data_at, data_bytes=data_bytes or None)
    if not 64 <= attr_bytes <= 4096 or attrs_bytes > MAX_EVENTS * attr_bytes or data_at > MAX_PLACE:
        raise HeaderError("its header is damaged")
    entries = _section(file, attrs_at, attrs_bytes, size)
    for at in range(0, len(entries) - int(attr_bytes) + 1, attr_bytes):
        attr = parse_attr(entries[at : at + attr_bytes - 16])
        ids_at, ids_bytes = struct.unpack_from("<QQ", entries, at + attr_bytes - 16)
        ids = _section(file, ids_at, ids_bytes, size)
        if attr is not None:
            header.attrs.append((attr, struct.unpack_from(f"<{len(ids) // 8}Q", ids)))
    if not header.attrs:
        raise HeaderError("it names no events")
    if data_bytes:
        _read_features(file, header, int.from_bytes(head[72:104], "little"), size)
    return header


def _read_features(file: BinaryIO, header: PerfHeader, bits: int, size: int | None) -> None:
    numbers = [number for number in range(256) if bits >> number & 1]
    table = _section(file, header.data_offset + (header.data_bytes or 0), 16 * len(numbers), size)
    header.cut = len(table) < 16 * len(numbers)
    for number, (at, length) in zip(numbers, struct.iter_unpack("<QQ", table[: len(table) // 16 * 16]), strict=False):
        if number in (
            BUILD_ID,
            HOSTNAME,
            OS_RELEASE,
            VERSION,
            ARCH,
            CPUS,
            EVENT_DESC,
            SAMPLE_TIME,
            DIR_FORMAT,
            CLOCK_DATA,
        ):
            header.features[number] = _section(file, at, length, size)


def _section(file: BinaryIO, at: int, length: int, size: int | None) -> bytes:
    """As much of a section as there is."""
    if length > MAX_SECTION_BYTES or at > MAX_PLACE or (size is not None and at > size):
        return b""
    file.seek(at)
    return file.read(length)


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    """u32 length, then so many bytes, padded with zeros: (the text, the place after it)."""
    if at + 4 > len(data):
        return b"", len(data)
    (length,) = struct.unpack_from("<I", data, at)
    return data[at + 4 : at + 4 + length].split(b"\0", 1)[0], at + 4 + length


def _event_names(data: bytes) -> Iterator[tuple[int, str]]:
    if len(data) < 8:
        return
    count, attr_bytes = struct.unpack_from("<II", data)
    at = 8
    for _ in range(min(count, MAX_EVENTS)):
        at += attr_bytes
        if at + 4 > len(data):
            return
        (ids,) = struct.unpack_from("<I", data, at)
        name, at = _string(data, at + 4)
        if at + 8 * ids > len(data):
            return
        for number in struct.unpack_from(f"<{ids}Q", data, at):
            yield number, name.decode("utf-8", "replace")
        at += 8 * ids
