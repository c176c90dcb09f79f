"""SegmentNames of the segment that is followed: the latest row counts, and a new segment means new ids."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import made
from tests.helpers.made import Node, write_segment

from zombiescope.query.segment_names import SegmentNames
from zombiescope.store.log import SegmentReader
from zombiescope.store.stacks import NamedFrame


def test_a_later_row_of_a_task_replaces_what_the_ring_knew(tmp_path: Path) -> None:
    node = Node()
    task = node.task(7, "python3")
    node.add("tasks", task=task, pid=7, tid=7, comm="python3", unit="train.service", cgroup="/train")
    names = followed(tmp_path, node)
    assert names.tasks[task].unit == "train.service"


def test_what_no_row_explains_is_unknown(tmp_path: Path) -> None:
    node = Node()
    known = node.frame("vfs_read")
    stack = node.stack([known, 99])
    names = followed(tmp_path, node)
    assert names.stack(stack) == [NamedFrame("vfs_read", "kernel"), NamedFrame("?", "unknown")]
    assert names.stack(5) == names.stack(None) == []


def test_the_end_of_a_segment_forgets_its_ids(tmp_path: Path) -> None:
    node = Node()
    stack = node.stack([node.frame("vfs_read")])
    names = followed(tmp_path, node)
    names.forget()
    assert names.stack(stack) == []


def followed(place: Path, node: Node) -> SegmentNames:
    names = SegmentNames()
    with open(write_segment(place, node.tables, start_us=made.START_US), "rb") as file:
        for frame in SegmentReader(file).frames():
            names.update(frame)
    return names
