"""Recordings that strangers send: segments, manifests, packs, Parquet, and the small files beside them.

Reading one raises nothing that its own callers do not catch: what is wrong is damage, and is reported as such.
"""

from __future__ import annotations

import functools
import io
import json
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import zstandard

from tests.fuzz.target import Target, scratch
from tests.fuzz.targets.symbols import in_memory
from tests.helpers import footers, made
from zombiescope.base.errors import UserError
from zombiescope.query.events import events
from zombiescope.query.info import info
from zombiescope.recorder import config, state
from zombiescope.store import columns, freeze, incident_file, layout, node_directory, schema
from zombiescope.store.compact import compact
from zombiescope.store.layout import Manifest
from zombiescope.store.log import MAGIC, DamagedError, SegmentReader, decode_frame
from zombiescope.store.pack import pack
from zombiescope.store.parquet_part import ParquetPart
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.store import Directory

NODE = "n"
MEMORY_MB = 400
"""All small parts of a recording together may come to 128 MB (allowance.py), and are copied once."""
_FRAME = struct.Struct("<II")


@contextmanager
def written(name: str, data: bytes) -> Iterator[Path]:
    """A recording that holds one file of a node; the same directory each time."""
    folder = scratch()
    path = folder / f"{layout.NODE_FOLDER}{NODE}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    try:
        yield folder
    finally:
        path.unlink()


def read_all(recording: Recording) -> None:
    """Every table that it has, and what is shown first of a recording."""
    for table in schema.TABLES:
        if not any(part.count(table) for part in recording.parts):
            continue
        rows = recording.table(table.name)
        for column in rows.columns:
            columns.present(column)
    recording.gaps()
    events(recording)
    info(recording)
    assert all(entry.what for entry in recording.damage)


def frame_body(data: bytes) -> None:
    """Both ways to read one: block by block, and all blocks of a table at once."""
    try:
        kept = decode_frame(data, encoded=True).encoded
    except ValueError:
        kept = ()
    frame = decode_frame(data)
    assert len(kept) == len(frame.blocks)
    for one in kept:
        table = schema.BY_NAME[one.stored.name]
        assert len(columns.decoded(table, [one])) == one.rows
    for block in frame.blocks:
        for column in block.table.columns:
            assert len(block.column(column.name)) == block.rows
            list(block.column(column.name))


def framed(data: bytes) -> bytes:
    """A segment of these bytes with the lengths and checksums that frames must have: chance does not find those."""
    out, at = [MAGIC], 0
    while at < len(data):
        length = data[at] << 2 | 3
        payload = data[at + 1 : at + 1 + length]
        out += [_FRAME.pack(len(payload), zlib.crc32(payload)), payload]
        at += 1 + length
    return b"".join(out)


def unframed(segment: bytes) -> bytes:
    """The bytes of which `framed` makes this segment, but for what is padded."""
    out, at = b"", len(MAGIC)
    while at + _FRAME.size <= len(segment):
        length, _ = _FRAME.unpack_from(segment, at)
        payload = segment[at + _FRAME.size : at + _FRAME.size + length]
        out += bytes([min(len(payload) >> 2, 255)]) + payload.ljust(len(payload) | 3, b" ")
        at += _FRAME.size + length
    return out


def segment_frames(data: bytes) -> None:
    reader = SegmentReader(io.BytesIO(framed(data)))
    for frame in reader.frames(encoded=True):
        for block in frame.encoded:
            block.decode()


def segment_body(data: bytes) -> bytes:
    """A segment whose one frame decompresses to this."""
    stream = zstandard.ZstdCompressor(level=1).compressobj()
    payload = stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    head = b'{"seq":0,"boot":"b","hz":99}'
    return MAGIC + b"".join(_FRAME.pack(len(each), zlib.crc32(each)) + each for each in (head, payload))


def segment_recording(data: bytes) -> None:
    name = f"{layout.LOG_FOLDER}{layout.segment_name(made.START_US)}"
    with written(name, segment_body(data)) as folder, open_recording(folder) as recording:
        read_all(recording)


def manifest(data: bytes) -> None:
    found = Manifest.from_json(data)
    assert found.name.startswith("date=")
    assert all("/" not in table for table in found.tables)
    assert Manifest.from_json(found.to_json()) == found


def pack_file(data: bytes) -> None:
    with in_memory(data) as fd, open_recording(f"/proc/self/fd/{fd}") as recording:
        read_all(recording)


def parquet_file(data: bytes) -> None:
    """The first byte chooses the table; the manifest is honest."""
    in_directory(schema.TABLES[(data[0] if data else 0) % len(schema.TABLES)], data[1:])


def parquet_footers(data: bytes) -> None:
    """The end of a file alone: Arrow is given what the walk lets through."""
    in_directory(schema.SAMPLES, footers.file(data))


def in_directory(table: schema.Table, data: bytes) -> list[str]:
    """A table's file in a directory, read whole and in part; what is wrong with it."""
    first, last = made.START_US, made.START_US + 10 * made.SECOND
    facts = layout.TableFacts(1, len(data), first, last)
    part = Manifest("p", first, last, made.BOOT, (), {table.name: facts}, {})
    with written(part.file(table.name), data) as folder:
        stored = ParquetPart(Directory(folder), f"{layout.NODE_FOLDER}{NODE}/", part)
        stored.rows(table, None, None, None)
        stored.rows(table, first + 1, last - 1, None)
        return [entry.what for entry in stored.damage]


def small_files(data: bytes) -> None:
    """node.json, state.json, incidents.json, a frozen window and the lock, each with the same content."""
    with in_memory(data) as fd:
        node_directory._holder(fd)
    node_dir = scratch() / f"{layout.NODE_FOLDER}{NODE}"
    with written("state.json", data), written(f"{layout.FROZEN_FOLDER}x.json", data), written("incidents.json", data):
        state.load(node_dir, "b")
        freeze.list_frozen(node_dir)
        incident_file.read(node_dir)
        with written("node.json", data) as folder:
            (node_dir / "log").mkdir(exist_ok=True)
            with open_recording(folder) as recording:
                info(recording)


def recorder_config(data: bytes) -> None:
    config.parse(data.decode("utf-8", "replace"))


# --- seeds -----------------------------------------------------------------------------------------------------------


def node() -> made.Node:
    """A few rows of every kind of column."""
    made_node = made.Node()
    at = made.START_US + 100
    task = made_node.task(7, "python3", unit="a.service")
    stack = made_node.stack([made_node.frame("main", "user", "a.out"), made_node.frame("do_idle")])
    series = made_node.series("vmstat", "pgfault")
    for number in range(3):
        made_node.sample(at + number, number, task, stack)
        made_node.core(at + number, number, user=10)
        made_node.count(at + number, series, number)
    made_node.happen(at, "oom", "kmsg", "critical", "Out of memory", pid=7)
    made_node.census(at, 10, 5)
    made_node.leak(at, "/system.slice/x", 5, created=7, removed=2)
    made_node.container(at, "ab" * 32, name="x", image="i")
    return made_node


@functools.cache
def segment() -> bytes:
    with tempfile.TemporaryDirectory(prefix="zombiescope-fuzz-") as folder:
        return made.write_segment(folder, node().tables, node=NODE).read_bytes()


def bodies() -> list[bytes]:
    """What its frames decompress to."""
    stream = zstandard.ZstdDecompressor().decompressobj()
    data, at, found = segment(), len(MAGIC), []
    while at < len(data):
        length, _ = _FRAME.unpack_from(data, at)
        payload = data[at + _FRAME.size :][:length]
        if at > len(MAGIC):
            found.append(stream.decompress(payload))
        at += _FRAME.size + length
    return found


@functools.cache
def parts() -> tuple[bytes, list[bytes], bytes]:
    """The same rows compacted: manifest, files of Parquet behind the number of their table, and packed."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-fuzz-") as folder:
        place = Path(folder)
        made.write_segment(place, node().tables, node=NODE)
        node_dir = place / f"{layout.NODE_FOLDER}{NODE}"
        with open_recording(place) as recording:
            pack(recording, made.START_US, made.START_US + made.SECOND, place / "p.zip")
        compact(node_dir)
        listing = next(node_dir.glob("date=*/part-*.json")).read_bytes()
        tables = [
            (number, next(node_dir.glob(f"date=*/{table.name}-*.parquet"), None))
            for number, table in enumerate(schema.TABLES)
        ]
        files = [bytes([number]) + _unchecked(path, place / "t") for number, path in tables if path is not None]
        return listing, files, (place / "p.zip").read_bytes()


def _unchecked(path: Path, other: Path) -> bytes:
    """The same table without checksums of pages, which nobody has to write."""
    pq.write_table(pq.read_table(path), other, write_page_checksum=False, compression="none")
    return other.read_bytes()


def small_pack() -> bytes:
    """A pack of one segment and one part's manifest, in a few hundred bytes."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"node={NODE}/node.json", "{}")
        archive.writestr(f"node={NODE}/log/{layout.segment_name(made.START_US)}", segment())
    return out.getvalue()


def _footers() -> list[bytes]:
    """Honest ones of every table, and hostile ones that are short."""
    honest = [file[:-8][-int.from_bytes(file[-8:-4], "little") :] for file in parts()[1]]
    return [footers.footer(), *(each for each in [*honest, *footers.hostile().values()] if len(each) <= 2048)]


SMALL = (
    {"boot": "b", "started_us": 1, "cpus": {"online": [0], "possible": 1}, "hz": 99, "labels": {}, "missing": []},
    {"id": "x", "from_us": 1, "to_us": 2, "why": "y", "at_us": 3},
    {"at": 1.5, "incidents": [{"id": "i", "state": "open", "to": 7}]},
    {"pid": 7},
)

TARGETS = (
    Target(
        "segment-frame",
        frame_body,
        bodies,
        refusals=(DamagedError, ValueError),
        native=True,
        most_bytes=1024,
        memory_mb=MEMORY_MB,
    ),
    Target(
        "segment-log",
        segment_frames,
        lambda: [unframed(segment())],
        refusals=(DamagedError, ValueError),
        native=True,
        memory_mb=MEMORY_MB,
    ),
    Target("segment-recording", segment_recording, bodies, memory_mb=MEMORY_MB, cost=100),
    Target("manifest", manifest, lambda: [parts()[0]], refusals=(ValueError,)),
    Target(
        "pack",
        pack_file,
        lambda: [small_pack(), parts()[2]],
        refusals=(UserError, OSError),
        most_bytes=65_536,
        memory_mb=MEMORY_MB,
        cost=100,
    ),
    Target("parquet", parquet_file, lambda: parts()[1], most_bytes=16_384, memory_mb=MEMORY_MB, cost=20),
    Target("parquet-footer", parquet_footers, _footers, most_bytes=2048, cost=20),
    Target("recording-files", small_files, lambda: [json.dumps(each).encode() for each in SMALL], cost=20),
    Target(
        "recorder-config",
        recorder_config,
        lambda: [b'{"dir": "/x", "hz": 99, "labels": {"a": "b"}}'],
        refusals=(ValueError,),
    ),
)
