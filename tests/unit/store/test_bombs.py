"""Recordings that promise more than they hold: refused before memory is asked for, and reported as damage."""

from __future__ import annotations

import io
import json
import resource
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.helpers.made import START_US, Node, write_segment

from zombiescope.store import columns, layout, schema
from zombiescope.store.allowance import (
    LOG_RATIO,
    PARQUET_RATIO,
    TOTAL_FLOOR_BYTES,
    Allowance,
    TooMuchError,
    share,
)
from zombiescope.store.compact import compact
from zombiescope.store.layout import Manifest, TableFacts
from zombiescope.store.log import MAGIC, DamagedError, SegmentReader, decode_frame
from zombiescope.store.pack import pack
from zombiescope.store.parquet_part import _read_parquet
from zombiescope.store.reader import open_recording
from zombiescope.store.store import NotARecordingError, Pack

ROOM_BYTES = 2 << 30
CLOCK = struct.pack("<qq", START_US, 1)


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """A reader that asks for what a bomb promises gets a MemoryError, not the machine's memory."""
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + ROOM_BYTES, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def framed(payload: bytes) -> bytes:
    return struct.pack("<II", len(payload), zlib.crc32(payload)) + payload


def segment(*bodies: bytes, header: bytes = b'{"seq":0,"boot":"b"}') -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=17)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    frames = [framed(stream.compress(body) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)) for body in bodies]
    return MAGIC + framed(header) + b"".join(frames)


def recording(directory: Path, data: bytes) -> Path:
    log = directory / "node=n" / "log"
    log.mkdir(parents=True)
    (log / layout.segment_name(START_US)).write_bytes(data)
    (directory / "node=n" / "node.json").write_text("{}")
    return directory


def damage(path: Path, *tables: str) -> str:
    """What a reader of everything reports."""
    with open_recording(path) as opened:
        for table in tables or schema.BY_NAME:
            opened.table(table)
        return "; ".join(entry.what for entry in opened.damage)


@pytest.mark.parametrize("rows", [1 << 20, 1 << 36, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("table", schema.TABLES, ids=lambda table: table.name)
def test_rows_without_values_are_counted(tmp_path: Path, table: schema.Table, rows: int) -> None:
    """A column without values takes one byte of the file, whatever the number of rows is."""
    body = CLOCK + bytes([table.number]) + varint(rows) + bytes(len(table.columns))
    path = recording(tmp_path / "rec", segment(*[body] * 8))
    if rows > 1 << 20:
        assert "than a file of its size can hold" in damage(path, table.name)
    else:
        damage(path, table.name)


@pytest.mark.parametrize("frames", [1, 500], ids=["one frame", "many frames"])
def test_a_stream_that_unpacks_to_too_much_is_damage(tmp_path: Path, frames: int) -> None:
    """An event whose text is as long as a film."""
    text = b"x" * ((400 << 20) // frames)
    event = b"\1\0" + b"\0" * 3 + b"\1" + varint(len(text)) + text + b"\0"
    data = segment(*[CLOCK + bytes([schema.EVENTS.number]) + varint(1) + event] * frames)
    assert len(data) < 200_000
    assert "than a file of its size can hold" in damage(recording(tmp_path / "rec", data), "events")


def test_many_small_segments_share_what_may_come_of_them(tmp_path: Path) -> None:
    body = CLOCK + bytes([schema.COUNTERS.number]) + varint(1 << 21) + bytes(len(schema.COUNTERS.columns))
    path = recording(tmp_path / "rec", segment(body))
    log = path / "node=n" / "log"
    for number in range(1, 64):
        (log / layout.segment_name(START_US + number)).write_bytes(segment(body))
    said = damage(path, "counters")
    assert said.count("than a file of its size can hold") == 64


def test_a_list_longer_than_the_frame_is_damage() -> None:
    lists = CLOCK + bytes([schema.STACKS.number]) + varint(2) + b"\1\0\0" + b"\1" + varint((1 << 63) - 2) + b"\0"
    with pytest.raises((DamagedError, ValueError)):
        decode_frame(lists)


def test_a_header_is_a_small_flat_object() -> None:
    for header in (b"[" * 200_000, b'{"a":' * 200_000, b'"' + b"x" * (2 << 20) + b'"'):
        with pytest.raises(DamagedError):
            SegmentReader(io.BytesIO(segment(header=header)))


def test_a_length_beyond_the_file_is_never_read() -> None:
    class Watched(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert size <= 1 << 20
            return super().read(size)

    reader = SegmentReader(Watched(segment() + struct.pack("<II", 255 << 20, 0)))
    assert list(reader.frames()) == []
    assert reader.damage is None, "it may still grow"


def test_what_was_recorded_stays_far_below(tmp_path: Path) -> None:
    """A node on which nothing changes: nothing compresses better."""
    node = Node()
    for second in range(120):
        for cpu in range(192):
            node.core(START_US + (second + 1) * 1_000_000, cpu, user=10)
    path = write_segment(tmp_path, node.tables)
    with path.open("rb") as file:
        reader = SegmentReader(file, share(16))
        assert sum(block.rows for frame in reader.frames() for block in frame.blocks) == 120 * 192
        assert reader.damage is None
    assert share(16) * 16 <= TOTAL_FLOOR_BYTES


def test_an_allowance_is_spent_once() -> None:
    allowance = Allowance(10)
    allowance.earn(1, LOG_RATIO)
    allowance.spend(10 + LOG_RATIO)
    with pytest.raises(TooMuchError):
        allowance.spend(1)


# --- packs -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_pack(tmp_path: Path) -> Path:
    node = Node()
    node.happen(START_US + 1_000_000, "mark", "mark", "info", "hello")
    write_segment(tmp_path / "rec", node.tables)
    with open_recording(tmp_path / "rec") as opened:
        pack(opened, START_US, START_US + 5_000_000, tmp_path / "small.zscope")
    return tmp_path / "small.zscope"


def test_a_pack_that_promises_half_a_terabyte_is_refused(small_pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "bomb.zscope"
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("node=n/node.json", "{}")
        archive.writestr(f"node=n/log/{layout.segment_name(START_US)}", segment(CLOCK))
        archive.infolist()[-1].file_size = archive.infolist()[-1].compress_size = 512 << 30
    with pytest.raises(NotARecordingError, match="longer than the file"):
        Pack(out)
    with open_recording(small_pack) as opened:
        assert len(opened.table("events")) == 1


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "bomb.zscope"
    data = segment(CLOCK) + bytes(1 << 20)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(f"node=n/log/{layout.segment_name(START_US)}", data)
        first = archive.infolist()[0]
        for number in range(1, 1_000):
            other = zipfile.ZipInfo(f"node=n/log/{layout.segment_name(START_US + number)}")
            other.file_size = other.compress_size = first.file_size
            other.CRC, other.header_offset = first.CRC, first.header_offset
            archive.filelist.append(other)
            archive.NameToInfo[other.filename] = other
    with pytest.raises(NotARecordingError, match="overlap"):
        Pack(out)


@pytest.mark.parametrize("at", range(1, 60, 3))
def test_a_pack_with_a_wrong_byte_at_its_end_is_read_or_refused(small_pack: Path, at: int) -> None:
    data = bytearray(small_pack.read_bytes())
    data[-at] ^= 0xFF
    small_pack.write_bytes(data)
    with suppress(NotARecordingError):
        damage(small_pack, "events")


# --- Parquet ---------------------------------------------------------------------------------------------------------


def part(directory: Path, table: schema.Table, rows: pa.Table, **options: Any) -> Path:
    """A recording of one compacted part with exactly this file."""
    node = directory / "node=n"
    facts = {table.name: TableFacts(len(rows), 1, START_US, START_US)}
    ids = dict.fromkeys(schema.ID_KINDS, 5)
    manifest = Manifest("p", START_US, START_US + 1, "b", (), facts, ids)
    (node / manifest.folder).mkdir(parents=True)
    (node / "log").mkdir()
    (node / "node.json").write_text("{}")
    pq.write_table(rows, node / manifest.file(table.name), compression="zstd", **options)
    (node / manifest.name).write_bytes(manifest.to_json())
    return directory


def repeated(table: schema.Table, rows: int, text: str = "") -> pa.Table:
    types = columns.arrow_schema(table)
    values = {
        name: pa.repeat(
            pa.scalar(text if pa.types.is_string(kind) else None if pa.types.is_list(kind) else 0, type=kind), rows
        )
        for name, kind in zip(types.names, types.types, strict=True)
    }
    return pa.table(values, schema=types)


def test_rows_that_take_no_bytes_are_counted(tmp_path: Path) -> None:
    """As many as a row group may have, in many parts: each has its share, and what a file of its size earns."""
    path = part(tmp_path / "rec", schema.CORES, repeated(schema.CORES, 1 << 17))
    (file,) = path.rglob("*.parquet")
    with pytest.raises(TooMuchError), file.open("rb") as opened:
        _read_parquet(opened, schema.CORES, None, None, None, (1 << 20) - file.stat().st_size * PARQUET_RATIO)
    assert damage(path, "cores") == ""


def test_a_row_group_larger_than_any_of_ours_is_refused(tmp_path: Path) -> None:
    rows = repeated(schema.COUNTERS, 1 << 20)
    path = part(tmp_path / "rec", schema.COUNTERS, rows, row_group_size=1 << 20)
    assert "a row group has" in damage(path, "counters")


def test_a_text_that_stands_for_a_million_rows_is_counted(tmp_path: Path) -> None:
    rows = repeated(schema.EVENTS, 100_000, "x" * 1_000)
    path = part(tmp_path / "rec", schema.EVENTS, rows, row_group_size=1 << 17)
    assert "than a file of its size can hold" in damage(path, "events")


def test_ordinary_parts_are_read_as_before(tmp_path: Path) -> None:
    node = Node()
    for second in range(60):
        for cpu in range(8):
            node.core(START_US + (second + 1) * 1_000_000, cpu, user=10)
        node.happen(START_US + second * 1_000_000, "mark", "mark", "info", f"epoch {second}")
    write_segment(tmp_path / "rec", node.tables)
    with open_recording(tmp_path / "rec") as opened:
        before = {name: opened.table(name).to_pydict() for name in ("cores", "events")}
    assert compact(tmp_path / "rec" / "node=lab").parts
    with open_recording(tmp_path / "rec") as opened:
        assert {name: opened.table(name).to_pydict() for name in ("cores", "events")} == before
        assert opened.damage == []


# --- manifests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("from_us", 1 << 70), ("from_us", -1), ("to_us", 1 << 63), ("from_us", "x"), ("from_us", 1.5),
        ("ids", {"stack": 1 << 40}), ("ids", {"stack": -1}), ("tables", {"cores": {"rows": 1 << 63, "bytes": 1}}),
        ("tables", {"cores": {"rows": "many", "bytes": 1}}), ("tables", {"cores": {"rows": -1, "bytes": 1}}),
        ("tables", {"cores": {"rows": 1, "bytes": 1, "from_us": "x"}}), ("tables", {"../x": {"rows": 1, "bytes": 1}}),
        ("spans", [{"from_us": "x"}]), ("spans", 5), ("tables", 5), ("damage", 5), ("ids", 5),
    ],
)  # fmt: skip
def test_numbers_of_a_manifest_are_numbers_of_a_recording(field: str, value: Any) -> None:
    whole = json.loads(Manifest("p", START_US, START_US + 1, "b", (), {}, {"stack": 1}).to_json())
    assert Manifest.from_json(json.dumps(whole).encode()).ids == {"stack": 1}
    with pytest.raises(ValueError, match="manifest"):
        Manifest.from_json(json.dumps({**whole, field: value}).encode())
