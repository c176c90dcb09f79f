"""Samples that get the callers of a copy of the same thread's stack."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import START_US, Node, write_segment

from zombiescope.query.selection import Filters, Selection
from zombiescope.store.compact import compact
from zombiescope.store.reader import open_recording

TRAINER, OTHER = 31, 32


@pytest.fixture
def node() -> Node:
    made = Node()
    made.task(TRAINER, "trainer")
    made.task(OTHER, "other")
    return made


def stack(node: Node, text: str) -> int:
    """`main;gemm;[k]page_fault`: outermost first; [k] is the kernel's."""
    frames = [
        node.frame(name.removeprefix("[k]"), "kernel" if name.startswith("[k]") else "user", None)
        for name in text.split(";")
    ]
    return node.stack(frames)


def sample(node: Node, at_us: int, text: str, pid: int = TRAINER) -> None:
    task = node.task(pid, "trainer" if pid == TRAINER else "other")
    node.add("samples", time=START_US + at_us, cpu=0, task=task, stack=stack(node, text))


def copy(node: Node, at_us: int, text: str, pid: int = TRAINER, ended: str = "finished") -> None:
    node.add("whole_stacks", time=START_US + at_us, pid=pid, tid=pid, stack=stack(node, text), ended=ended)


def shown(tmp_path: Path, node: Node, filters: Filters | None = None) -> list[str]:
    """The stacks of the samples in the order of time, as text."""
    write_segment(tmp_path, node.take())
    with open_recording(tmp_path) as recording:
        selection = Selection(recording, START_US, START_US + 10_000_000, filters or Filters())
        rows = [
            (time, row)
            for batch in selection.batches()
            for time, row in zip(batch.time_us.tolist(), selection.stacks.rows_of(batch.stack).tolist(), strict=True)
        ]
        return [";".join(function.name for function in selection.stacks.of(row)) for _, row in sorted(rows)]


def test_a_sample_gets_the_callers_and_keeps_what_it_did_in_the_kernel(tmp_path: Path, node: Node) -> None:
    sample(node, 100_000, "gemm")
    sample(node, 110_000, "gemm;[k]page_fault")
    copy(node, 150_000, "main;train;matmul;gemm")
    assert shown(tmp_path, node) == ["main;train;matmul;gemm", "main;train;matmul;gemm;page_fault"]


def test_the_nearest_copy_in_the_same_function_counts(tmp_path: Path, node: Node) -> None:
    sample(node, 300_000, "gemm")
    copy(node, 100_000, "main;forward;gemm")
    copy(node, 290_000, "main;forward;relu")
    copy(node, 350_000, "main;backward;gemm")
    assert shown(tmp_path, node) == ["main;backward;gemm"]


@pytest.mark.parametrize(
    ("at_us", "text", "pid"),
    [
        (2_000_000, "main;gemm", TRAINER),  # too far away
        (100_000, "main;relu", TRAINER),  # in another function
        (100_000, "main;gemm", OTHER),  # another thread
        (100_000, "gemm", TRAINER),  # no longer than what is known
    ],
)
def test_what_does_not_fit_changes_nothing(tmp_path: Path, node: Node, at_us: int, text: str, pid: int) -> None:
    sample(node, 100_000, "gemm")
    copy(node, at_us, text, pid)
    assert shown(tmp_path, node) == ["gemm"]


def test_a_stack_that_is_whole_stays_as_it_is(tmp_path: Path, node: Node) -> None:
    sample(node, 100_000, "main;other way;gemm")
    copy(node, 100_000, "main;train;gemm")
    assert shown(tmp_path, node) == ["main;other way;gemm"]


def test_python_functions_stand_on_completed_stacks(tmp_path: Path, node: Node) -> None:
    sample(node, 100_000, "gemm")
    copy(node, 120_000, "main;_PyEval_EvalFrameDefault;matmul;gemm")
    frames = [node.frame(name, "python", "train.py") for name in ("<module>", "step")]
    node.add(
        "python", time=START_US + 90_000, until=START_US + 90_000, looks=1, pid=TRAINER, tid=TRAINER,
        stack=node.stack(frames), lines=(3, 12),
    )  # fmt: skip
    assert shown(tmp_path, node) == ["<module>;step;matmul;gemm"]


def test_without_python_functions_it_is_completed_all_the_same(tmp_path: Path, node: Node) -> None:
    sample(node, 100_000, "gemm")
    copy(node, 120_000, "main;_PyEval_EvalFrameDefault;matmul;gemm")
    frames = [node.frame(name, "python", "train.py") for name in ("<module>", "step")]
    node.add(
        "python", time=START_US + 90_000, until=START_US + 90_000, looks=1, pid=TRAINER, tid=TRAINER,
        stack=node.stack(frames), lines=(3, 12),
    )  # fmt: skip
    assert shown(tmp_path, node, Filters(python=False)) == ["main;_PyEval_EvalFrameDefault;matmul;gemm"]


def test_looks_and_copies_without_a_stack_are_nobody_s(tmp_path: Path, node: Node) -> None:
    """Of a frame that is being written, or of a damaged one."""
    sample(node, 100_000, "gemm")
    node.add("python", time=START_US + 90_000, until=START_US + 90_000, looks=1, pid=TRAINER, tid=TRAINER)
    node.add("whole_stacks", time=START_US + 90_000, pid=TRAINER, tid=TRAINER, ended="finished")
    assert shown(tmp_path, node) == ["gemm"]


@pytest.mark.parametrize("compacted", [False, True], ids=["log", "parquet"])
def test_callers_are_of_the_same_process_in_every_segment(compacted: bool, tmp_path: Path, node: Node) -> None:
    """Each segment numbers its stacks again: the number of the trainer's copy is another process's in the first one."""
    for number, text in enumerate(("a", "b", "c", "evil;gemm")):
        sample(node, 100_000 + number, text, OTHER)
    write_segment(tmp_path, node.take())
    later = Node()
    for number in range(2):
        later.stack([later.frame(f"unused {number}", "user")])
    sample(later, 130_000_000, "gemm")
    copy(later, 130_050_000, "main;train;matmul;gemm")
    path = write_segment(tmp_path, later.take(), start_us=START_US + 120_000_000, seq=1)
    if compacted:
        compact(path.parents[1])
    with open_recording(tmp_path) as recording:
        selection = Selection(recording, START_US + 120_000_000, START_US + 140_000_000, Filters())
        found = [selection.stacks.of(row) for row, count in enumerate(selection.counts().tolist()) if count]
    assert [";".join(function.name for function in each) for each in found] == ["main;train;matmul;gemm"]
