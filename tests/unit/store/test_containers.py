"""The table of containers as it is stored: compacted, merged, packed, listed and let go."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.boxes import POLICY, TRAINER, WEB, at, box_node, ran, write_boxes
from tests.helpers.made import START_US, Node, write_segment

from zombiescope.query.container_families import families
from zombiescope.query.containers import Container, containers
from zombiescope.query.info import info
from zombiescope.store import compact
from zombiescope.store.pack import pack
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.timeout(120)


def _found(place: Path, start_us: int | None = None, end_us: int | None = None) -> dict[str, Container]:
    with open_recording(place) as recording:
        return containers(recording, start_us, end_us)


def test_compacted_they_are_the_same(tmp_path: Path) -> None:
    directory = write_boxes(tmp_path / "rec")
    more = Node()
    ran(more, "f" * 64, 70, 80, code=3, name="late")
    write_segment(directory, more.tables, start_us=at(60), seq=1)
    before = _found(directory), _found(directory, at(20), at(75))
    assert {len(each) for each in before} == {28, 18}
    compact.compact(directory / "node=lab")
    with open_recording(directory) as recording:
        assert (len(recording.segments), len(recording.manifests)) == (0, 1), "two segments became one part"
    assert (_found(directory), _found(directory, at(20), at(75))) == before


def test_a_pack_knows_who_was_there_when_its_window_began(tmp_path: Path) -> None:
    """And nobody of the thousands that had ended by then."""
    directory = write_boxes(tmp_path / "rec")
    window = at(57), at(60)
    with open_recording(directory) as recording:
        pack(recording, *window, tmp_path / "x.zscope")
    packed = _found(tmp_path / "x.zscope", *window)
    assert set(packed) == {TRAINER, WEB, POLICY}
    assert packed == _found(directory, *window)
    with open_recording(tmp_path / "x.zscope") as recording:
        assert len(recording.table("containers")) == 3


def test_info_lists_the_table(tmp_path: Path) -> None:
    node = box_node()
    with open_recording(write_boxes(tmp_path / "rec")) as recording:
        assert info(recording).tables["containers"] == len(node.tables["containers"])


def test_what_retention_removes_is_gone_and_the_rest_is_still_known(tmp_path: Path) -> None:
    directory = tmp_path / "rec"
    first, second = Node(), Node()
    ran(first, "a" * 64, 1, name="old")
    ran(first, "b" * 64, 2, 3, name="gone", code=0)
    write_segment(directory, first.tables)
    second.container(at(61), "a" * 64, name="old", started=at(1), runs=1)
    write_segment(directory, second.tables, start_us=at(60), seq=1)
    (directory / "node=lab" / "log" / f"{START_US:016d}.seg").unlink()
    assert [one.name for one in _found(directory).values()] == ["old"], "a segment says those that are there again"


def test_families_are_counted_over_parts(tmp_path: Path) -> None:
    directory = write_boxes(tmp_path / "rec")
    compact.compact(directory / "node=lab")
    more = Node()
    ran(more, "f" * 64, 63, 64, code=1, name="quirky_einstein99", image="registry.local:5000/ops/ecs-agent:1.2",
        requester="agent-loop", requester_unit="ecs.service")  # fmt: skip
    write_segment(directory, more.tables, start_us=at(60), seq=1)
    loop = families(_found(directory).values())[0]
    assert (loop.ids, loop.starts, loop.failed) == (19, 19, 19)
