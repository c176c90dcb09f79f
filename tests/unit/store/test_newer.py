"""A segment that a newer version wrote: what is known of it is read, and nobody deletes what is not."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import START_US, Node, write_segment
from tests.helpers.newer import NUMBER, TABLE, newer_version, write_newer_segment
from tests.helpers.recordings import contents

from zombiescope.store import columns, compact, layout, newer, schema
from zombiescope.store.log import SegmentEncoder, SegmentReader, encode_rows
from zombiescope.store.reader import open_recording

MINUTE_US = 60_000_000


def known(place: Path, seq: int) -> Path:
    node = Node()
    at_us = START_US + seq * MINUTE_US
    node.sample(at_us + 1, 0, node.task(7, "python3"), node.stack([node.frame(f"segment {seq}", "user")]))
    return write_segment(place, node.tables, start_us=at_us, seq=seq)


def node_dir(place: Path) -> Path:
    return place / "node=lab"


def test_nothing_after_an_unknown_block_is_lost(tmp_path: Path) -> None:
    write_newer_segment(tmp_path)
    with open_recording(tmp_path) as recording:
        assert len(recording.table("samples")) == 2
        assert [row["text"] for row in columns.records(recording.table("events"))] == ["second 0", "second 1"]
        [damage] = recording.damage
        assert damage.what == (
            "was written by a newer version of zombiescope, and this one does not know its table 200: "
            "update zombiescope to read it"
        )
    with newer_version(), open_recording(tmp_path) as recording:
        assert [row["count"] for row in columns.records(recording.table("later"))] == [0, 1]
        assert not recording.damage


def frames_of(tables: list[dict[str, list[Any]]], *, described: bool) -> list[Any]:
    """The frames of a segment, as this version reads them."""
    with newer_version(described):
        encoder = SegmentEncoder({"format": schema.FORMAT})
        data = encoder.preamble
        for number, blocks in enumerate(tables):
            encoded = [encode_rows(schema.BY_NAME[name], rows, START_US) for name, rows in blocks.items()]
            data += encoder.frame(START_US + number, 1, encoded, closes=number == len(tables) - 1)
    reader = SegmentReader(io.BytesIO(data))
    found = list(reader.frames())
    assert reader.damage is None
    assert reader.unknown == {NUMBER}
    return found


def test_without_a_description_only_the_rest_of_the_frame_is_lost() -> None:
    event = (START_US, "mark", "mark", "info", "here", "{}")
    later = (START_US, "new", (1,), 5)
    tables: list[dict[str, list[Any]]] = [{"later": [later], "events": [event]}, {"events": [event]}]
    assert [len(frame.blocks) for frame in frames_of(tables, described=False)] == [0, 1]
    assert [len(frame.blocks) for frame in frames_of(tables, described=True)] == [1, 1]


def test_every_kind_of_column_is_skipped() -> None:
    empty, full = (None, None, None, None), (START_US, "é" * 300, (), -(1 << 60))
    event = (START_US, "mark", "mark", "info", "here", "{}")
    for rows in ([empty], [full], [full, empty, full]):
        [frame] = frames_of([{"later": rows, "events": [event]}], described=True)
        assert [block.table.name for block in frame.blocks] == ["events"]


@pytest.mark.parametrize(
    "said", [None, 7, [], {}, {"200": 5}, {"200": ""}, {"200": "x"}, {"200": "t" * 300}, {"x": "t"}, {"1000": "t"},
             {"²": "t"}, {"16": "s"}],
)  # fmt: skip
def test_a_strange_description_is_none(said: object) -> None:
    assert newer.tables({"tables": said}) == {}


def test_the_numbers_that_are_given_out_fit_the_format() -> None:
    assert newer.described().keys() == {str(number) for number in schema.BY_NUMBER}
    for number, kinds in newer.described().items():
        assert 0 < int(number) < 256
        with pytest.MonkeyPatch.context() as patched:
            patched.delitem(schema.BY_NUMBER, int(number))
            assert newer.tables({"tables": newer.described() | {number: kinds}}) == {int(number): kinds.encode()}


@pytest.mark.parametrize("described", [True, False])
def test_compaction_leaves_it_and_loses_nothing(described: bool, tmp_path: Path) -> None:
    known(tmp_path, 0)
    strange = write_newer_segment(tmp_path, described=described, start_us=START_US + MINUTE_US, seq=1)
    known(tmp_path, 2)
    before, data = as_read(tmp_path), strange.read_bytes()
    done = compact.compact(node_dir(tmp_path))
    assert done.segments == 2
    assert [entry.file for entry in done.left] == [f"log/{strange.name}"]
    assert [path.name for path in (node_dir(tmp_path) / "log").iterdir()] == [strange.name]
    assert strange.read_bytes() == data
    assert as_read(tmp_path) == before
    assert compact.compact(node_dir(tmp_path)).segments == 0

    with newer_version():
        done = compact.compact(node_dir(tmp_path))
        assert (done.segments, done.left) == (1, ())
        assert not strange.exists()
    if described:
        assert as_read(tmp_path) == before


def as_read(place: Path) -> dict[str, list[Any]]:
    with open_recording(place) as recording:
        return contents(recording)


def test_the_recorders_own_compaction_says_which(tmp_path: Path) -> None:
    strange = write_newer_segment(tmp_path)
    command = [sys.executable, "-m", "zombiescope.store.compact", str(node_dir(tmp_path)), strange.name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert f"left as it is: log/{strange.name} was written by a newer version" in done.stderr
    assert json.loads(done.stdout)["segments"] == 0
    assert strange.exists()


def test_the_parts_of_a_manifest_that_cannot_be_read_are_not_deleted(tmp_path: Path) -> None:
    known(tmp_path, 0)
    [manifest] = compact.compact(node_dir(tmp_path)).parts
    path = node_dir(tmp_path) / manifest.name
    path.write_text(path.read_text().replace('"spans"', '"stretches"'))
    files = sorted(entry.name for entry in path.parent.iterdir())
    known(tmp_path, 1)
    compact.compact(node_dir(tmp_path))
    assert set(files) <= {entry.name for entry in path.parent.iterdir()}


def test_a_manifest_may_say_more_than_this_version_knows() -> None:
    facts, span = layout.TableFacts(3, 100, 1, 2), layout.Span(1, 2, 3, "b", 0, 1, 5, 6)
    manifest = layout.Manifest("n-1", 1, 2, "b", (), {"later": facts}, {"stack": 1, "symbol": 4}, (span,))
    document = json.loads(manifest.to_json())
    for each in (document, document["tables"]["later"], document["spans"][0]):
        each["new"] = {"in": "a later version"}
    assert layout.Manifest.from_json(json.dumps(document).encode()) == manifest


def test_a_kind_of_id_that_only_a_newer_version_has_disturbs_nobody(tmp_path: Path) -> None:
    known(tmp_path, 0)
    [manifest] = compact.compact(node_dir(tmp_path)).parts
    path = node_dir(tmp_path) / manifest.name
    path.write_text(path.read_text().replace('"ids":{', '"ids":{"symbol":9,'))
    with open_recording(tmp_path) as recording:
        assert len(recording.table("samples")) == 1


def test_the_table_of_these_tests_has_every_kind_of_column() -> None:
    assert set(TABLE.kinds) == set(b"tisl")
