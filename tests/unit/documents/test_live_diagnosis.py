"""A recording says when its live diagnosis failed, and a diagnosis of it lists that among what was not checked."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment

from zombiescope.documents import incidents as incident_documents
from zombiescope.documents.incidents import Outage, outage
from zombiescope.questions.window import Window
from zombiescope.store.reader import open_recording

WINDOW = Window(START_US, START_US + 60 * SECOND, UTC)


def recorded(directory: Path, node: Node) -> Path:
    for second in range(1, 61):
        node.core(START_US + second * SECOND, 0, user=5)
    write_segment(directory, node.tables)
    return directory


def found(directory: Path, window: Window = WINDOW) -> Outage | None:
    with open_recording(directory) as recording:
        return outage(recording, window)


def failed(node: Node, second: int, text: str, **fields: str) -> None:
    node.happen(START_US + second * SECOND, "helper_failed", "recorder", "warning", text, **fields)


@pytest.mark.parametrize(
    ("text", "fields", "why"),
    [
        ("a look of the doctor failed: -11", {}, "SIGSEGV"),
        ("a look of the doctor failed: 1", {}, "1"),
        ("a look of the doctor failed: MemoryError: 3 GB", {}, "MemoryError: 3 GB"),
        ("the doctor does not answer any more: killed by SIGKILL; it is started again", {},
         "killed by SIGKILL; it is started again"),
        ("live diagnosis failed: SIGSEGV in a diagnosis pass", {}, "SIGSEGV in a diagnosis pass"),
        ("it ended: SIGKILL", {"part": "live diagnosis"}, "it ended: SIGKILL"),
    ],
)  # fmt: skip
def test_each_way_of_reporting_a_failed_pass_is_read(
    tmp_path: Path, text: str, fields: dict[str, str], why: str
) -> None:
    node = Node()
    failed(node, 3, text, **fields)
    failed(node, 9, text, **fields)
    seen = found(recorded(tmp_path, node))
    assert seen == Outage(2, START_US + 3 * SECOND, START_US + 9 * SECOND, why)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("the compaction helper ended with -9; its segments stay as they are", {}),
        ("the reader of the GPUs ended: -11; it is started again", {}),
        ("it ended: SIGKILL", {"part": "compaction"}),
    ],
)
def test_a_failure_of_another_part_is_none(tmp_path: Path, text: str, fields: dict[str, str]) -> None:
    node = Node()
    failed(node, 3, text, **fields)
    assert found(recorded(tmp_path, node)) is None


def test_a_gap_counts_as_far_as_it_lies_in_the_window(tmp_path: Path) -> None:
    node = Node()
    node.add("gaps", time=START_US + 10 * SECOND, end=START_US + 40 * SECOND, source="live diagnosis", why="it is hung")
    directory = recorded(tmp_path, node)
    begin, end = START_US + 20 * SECOND, START_US + 30 * SECOND
    assert found(directory, Window(begin, end, UTC)) == Outage(1, begin, end, "it is hung")
    assert found(directory, Window(START_US, START_US + 5 * SECOND, UTC)) is None


def test_a_diagnosis_lists_it_once_and_so_do_noted_incidents(tmp_path: Path) -> None:
    node = Node()
    node.add("gaps", time=START_US + 10 * SECOND, end=START_US + 40 * SECOND, source="live diagnosis", why="it is hung")
    for second in (11, 25):
        failed(node, second, "live diagnosis failed: SIGSEGV in a diagnosis pass")
    with open_recording(recorded(tmp_path, node)) as recording:
        answers = [
            incident_documents.diagnosed(recording, WINDOW).document(),
            incident_documents.noted(recording, WINDOW),
        ]
    for answer in answers:
        about = [line for line in answer["not_checked"] if line.startswith("live diagnosis")]
        assert len(about) == 1, answer["not_checked"]
        assert about[0].startswith("live diagnosis: failed 2 times between ")
        assert about[0].endswith("(SIGSEGV in a diagnosis pass); incidents may have gone unreported")
        assert answer["live_diagnosis"]["failures"] == 2


def test_a_live_diagnosis_that_worked_is_not_mentioned(tmp_path: Path) -> None:
    with open_recording(recorded(tmp_path, Node())) as recording:
        answer = incident_documents.noted(recording, WINDOW)
    assert (answer["not_checked"], "live_diagnosis" in answer) == ([], False)
