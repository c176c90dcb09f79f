"""perf.data files made by hand: headers of any size around the raw records of tests/helpers/records.py."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import zstandard

from tests.helpers.records import CLOCK_ID

IP, TID, TIME, ADDR, READ, CALLCHAIN, ID, CPU, PERIOD, STREAM_ID, RAW = (1 << bit for bit in range(11))
BRANCH_STACK, REGS_USER, STACK_USER, WEIGHT, DATA_SRC, IDENTIFIER = (1 << bit for bit in range(11, 17))
TRANSACTION, REGS_INTR, PHYS_ADDR, AUX, CGROUP = (1 << bit for bit in range(17, 22))
RECORDS = IDENTIFIER | TID | TIME | CPU | CALLCHAIN
"""What tests/helpers/records.py lays out: samples with a chain, and trailers."""

FREQUENCY, SAMPLE_ID_ALL = 1 << 10, 1 << 18
ROUND = struct.pack("<IHH", 68, 0, 8)


def attr(
    sample_type: int = RECORDS,
    *,
    size: int = 128,
    kind: int = 1,
    config: int = 0,
    read_format: int = 0,
    flags: int = FREQUENCY | SAMPLE_ID_ALL,
    branch_type: int = 0,
    regs_user: int = 0,
    period: int = 99,
) -> bytes:
    """A perf_event_attr as the kernel of that size had it."""
    head = struct.pack("<IIQQQQQ", kind, size, config, period, sample_type, read_format, flags)
    return (head + struct.pack("<IIQQQQQ", 0, 0, 0, 0, branch_type, regs_user, 0)).ljust(136, b"\0")[:size]


def text(value: str) -> bytes:
    return struct.pack("<I", 64) + value.encode().ljust(64, b"\0")


def event_desc(events: Sequence[tuple[bytes, str, Sequence[int]]]) -> bytes:
    size = len(events[0][0])
    parts = [struct.pack("<II", len(events), size)]
    for what, name, ids in events:
        parts += [what, struct.pack("<I", len(ids)), text(name), struct.pack(f"<{len(ids)}Q", *ids)]
    return b"".join(parts)


def in_file(
    records: bytes,
    attrs: Sequence[tuple[bytes, Sequence[int]]] = ((attr(), (CLOCK_ID,)),),
    features: Mapping[int, bytes] | None = None,
    *,
    data_bytes: int | None = None,
) -> bytes:
    """The form that perf writes to a file."""
    features = features or {}
    entry = len(attrs[0][0]) + 16
    ids_at = 104
    attrs_at = ids_at + sum(8 * len(ids) for _, ids in attrs)
    data_at = attrs_at + entry * len(attrs)
    ids_part, attrs_part = b"", b""
    for what, ids in attrs:
        attrs_part += what + struct.pack("<QQ", ids_at + len(ids_part), 8 * len(ids))
        ids_part += struct.pack(f"<{len(ids)}Q", *ids)
    place = data_at + len(records) + 16 * len(features)
    table = b""
    for number in sorted(features):
        table += struct.pack("<QQ", place, len(features[number]))
        place += len(features[number])
    said = len(records) if data_bytes is None else data_bytes
    head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, entry, attrs_at, len(attrs_part), data_at, said, 0, 0)
    bits = sum(1 << number for number in features).to_bytes(32, "little")
    tail = b"".join(features[number] for number in sorted(features))
    return head + bits + ids_part + attrs_part + records + table + tail


def in_pipe(records: bytes, attrs: Sequence[tuple[bytes, Sequence[int]]] = ((attr(), (CLOCK_ID,)),)) -> bytes:
    """The form that perf writes to a pipe."""
    head = b"PERFILE2" + struct.pack("<Q", 16)
    for what, ids in attrs:
        body = what + struct.pack(f"<{len(ids)}Q", *ids)
        head += struct.pack("<IHH", 64, 0, 8 + len(body)) + body
    return head + records


def compressed(records: bytes, pieces: int, *, second_form: bool = False) -> bytes:
    """The records as one zstd stream, cut into so many records regardless of where the inner ones end."""
    packer = zstandard.ZstdCompressor().compressobj()
    step = -(-len(records) // pieces)
    out = b""
    for at in range(0, len(records), step):
        data = packer.compress(records[at : at + step]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        if second_form:
            padded = struct.pack("<Q", len(data)) + data + bytes(-len(data) % 8)
            out += struct.pack("<IHH", 83, 0, 8 + len(padded)) + padded
        else:
            out += struct.pack("<IHH", 81, 0, 8 + len(data)) + data
    return out
