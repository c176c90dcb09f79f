"""The log format: what is encoded comes back, and damage costs what lies behind it and nothing before it."""

from __future__ import annotations

import io
import random
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.recordings import START_US, write_recording

from zombiescope.store import columns, schema
from zombiescope.store.log import (
    DamagedError,
    SegmentEncoder,
    SegmentReader,
    decode_frame,
    encode_columns,
    encode_rows,
)
from zombiescope.store.reader import open_recording

_INT = st.integers(-(1 << 63), (1 << 63) - 1)
_VALUES = {
    "int": _INT,
    "time": _INT,
    "text": st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace").decode()),
    "ints": st.lists(_INT, max_size=6),
}


def _rows(table: schema.Table) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    return st.lists(st.tuples(*(st.none() | _VALUES[column.kind] for column in table.columns)), max_size=12)


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_rows_of_every_table_come_back(data: st.DataObject) -> None:
    table = data.draw(st.sampled_from(schema.TABLES + schema.ROLLUPS))
    rows = data.draw(_rows(table))
    encoder = SegmentEncoder({"node": "x"})
    frame = encoder.frame(START_US, 5, [encode_rows(table, rows, START_US)] if rows else [], closes=True)
    reader = SegmentReader(io.BytesIO(encoder.preamble + frame))
    (decoded,) = reader.frames()
    assert reader.closed
    assert (decoded.wall_us, decoded.monotonic_ns) == (START_US, 5)
    if rows:
        (block,) = decoded.blocks
        columns = [[_plain(value) for value in block.column(name)] for name in table.names]
        assert list(zip(*columns, strict=True)) == [tuple(_plain(value) for value in row) for row in rows]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, array) else value


def test_columns_and_rows_encode_alike() -> None:
    times, series, values = array("q", [START_US, START_US + 7]), array("q", [3, 3]), [9, None]
    by_columns = encode_columns(schema.COUNTERS, 2, [times, series, values], START_US)
    by_rows = encode_rows(schema.COUNTERS, list(zip(times, series, values, strict=True)), START_US)
    assert by_columns == by_rows


@pytest.fixture
def small_segment(tmp_path: Path) -> bytes:
    written = write_recording(tmp_path / "whole", seconds=3, segment_s=3, hz=10)
    return written.segments[0].read_bytes()


def _frames(data: bytes) -> tuple[int, SegmentReader | None]:
    try:
        reader = SegmentReader(io.BytesIO(data))
    except DamagedError:
        return 0, None
    return sum(1 for _ in reader.frames()), reader


def test_a_segment_cut_at_any_byte_gives_every_whole_frame(small_segment: bytes) -> None:
    ends = []
    _, whole = _frames(small_segment)
    assert whole
    reader = SegmentReader(io.BytesIO(small_segment))
    for _ in reader.frames():
        ends.append(reader.position)
    assert len(ends) == 3
    for cut in range(len(small_segment) + 1):
        found, reader_or_none = _frames(small_segment[:cut])
        assert found == sum(end <= cut for end in ends)
        assert reader_or_none is None or reader_or_none.damage is None


def test_a_recording_cut_at_any_byte_opens(tmp_path: Path, small_segment: bytes) -> None:
    log = tmp_path / "node=lab" / "log"
    log.mkdir(parents=True)
    path = log / f"{START_US:016d}.seg"
    for cut in range(0, len(small_segment), 37):
        path.write_bytes(small_segment[:cut])
        with open_recording(tmp_path) as recording:
            for name in schema.BY_NAME:
                recording.table(name)
            recording.gaps()


def test_flipped_bits_never_raise_and_spoil_nothing_before_them(small_segment: bytes) -> None:
    rng = random.Random(1)
    reader = SegmentReader(io.BytesIO(small_segment))
    ends = [reader.position for _ in reader.frames()]
    for _ in range(400):
        at = rng.randrange(len(small_segment))
        damaged = bytearray(small_segment)
        damaged[at] ^= 1 << rng.randrange(8)
        found, flipped = _frames(bytes(damaged))
        assert found == sum(end <= at for end in ends)
        assert flipped is None or flipped.damage is not None or found < 3


def test_damage_is_said_with_what_is_lost(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=40, segment_s=20)
    first = written.segments[0]
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 0xFF
    first.write_bytes(data)
    with open_recording(tmp_path) as recording:
        samples = len(recording.table("samples"))
        (damage,) = recording.damage
        (gap,) = recording.gaps()
    assert 0 < samples < written.samples
    assert damage.file == f"log/{first.name}"
    assert "checksum" in damage.what
    assert gap.source == "recorder"


def test_the_tail_of_a_killed_recorder_is_said_once_another_segment_follows(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=20, segment_s=10)
    killed = written.segments[0]
    killed.write_bytes(killed.read_bytes()[:-5])
    with open_recording(tmp_path) as recording:
        recording.table("cores")
        (damage,) = recording.damage
    assert "ends inside a frame" in damage.what


def test_samples_of_an_older_segment_are_read_into_the_table_of_today() -> None:
    old = schema.RETIRED[1]
    encoder = SegmentEncoder({"format": schema.FORMAT})
    block = encode_rows(old, [(1_000, 3, 7, 9, None)], 1_000)
    file = io.BytesIO(encoder.preamble + encoder.frame(1_000, 0, [block]))
    (frame,) = SegmentReader(file).frames()
    assert frame.blocks[0].table is schema.SAMPLES
    assert list(frame.blocks[0].column("stack")) == [9]
    assert frame.blocks[0].column("series") == [None]


@pytest.mark.parametrize(
    "texts",
    [
        ["a", "bc", ""],
        ["a", None, "bc", None],
        ["x" * 127, "y" * 128, "z" * 5000],
        ["é", "日本", "a"],
        ["\udcc3", "\udca9 is one character only together", None],
        [None, None],
    ],
)
def test_texts_are_the_same_as_objects_and_as_a_column(texts: list[str | None]) -> None:
    """Also those that a process chose as its name to look like a part of the next one."""
    rows = [(number, text, text, "kernel") for number, text in enumerate(texts)]
    body = struct.pack("<qq", 5, 5) + encode_rows(schema.FRAMES, rows, 5)
    (block,) = decode_frame(body).blocks
    seen = [None if text is None else text.encode(errors="surrogateescape").decode(errors="replace") for text in texts]
    assert list(block.column("name")) == seen
    gathering = columns.Gathering(schema.FRAMES, None, None, None)
    gathering.add(block)
    gathering.add(block)
    assert gathering.table().column("name").to_pylist() == seen * 2
    assert gathering.table().column("kind").to_pylist() == ["kernel"] * len(seen) * 2
