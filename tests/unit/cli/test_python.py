"""python: what threads were doing, function, file and line; and the same on stacks of samples."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.made import SECOND, START_US, Node, write_segment


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """A trainer that waits for its loader, and a worker that decodes."""
    node = Node()
    train = node.frame("train", "python", "job/train.py")
    loads = node.frame("_BaseDataLoaderIter.__next__", "python", "site-packages/torch/utils/data/dataloader.py")
    gets = node.frame("Queue.get", "python", "python3.11/queue.py")
    decode = node.frame("decode", "python", "job/data.py")
    runs = node.frame("_PyEval_EvalFrameDefault", "user", "python3.11")
    task = node.task(71, "pt_data_worker")
    for second in range(10):
        at_us = START_US + second * SECOND
        node.python(at_us, task_tid=70, frames=[train, loads, gets], lines=[112, 630, 171], comm="trainer-3", state="S")
        node.python(at_us, task_tid=71, frames=[decode], lines=[30 + second % 2], comm="pt_data_worker")
        for part in range(99):
            node.sample(at_us + part * 10_000, 0, task, node.stack([runs]))
    write_segment(tmp_path / "rec", node.tables)
    return str(tmp_path / "rec")


def test_threads_are_told_with_the_line_of_their_own_code(cli: Cli, recording: str) -> None:
    printed = " ".join(cli("python", recording).out.split())
    assert "trainer-3 pid 70 10 looks, waiting in 100%" in printed
    assert "100% Queue.get in train train.py:112 python3.11/queue.py:171" in printed
    assert "50% decode job/data.py:30" in printed


def test_the_document(cli: Cli, recording: str) -> None:
    document = cli("python", recording, "--json", "--comm", "trainer*").document
    assert document["schema"] == "zombiescope.python/1"
    (thread,) = document["threads"]
    assert (thread["pid"], thread["tid"], thread["comm"], thread["waiting_ratio"]) == (70, 70, "trainer-3", 1.0)
    (stack,) = thread["stacks"]
    assert (stack["function"], stack["line"], stack["ratio"]) == ("Queue.get", 171, 1.0)
    assert stack["own"] == {"function": "train", "file": "job/train.py", "line": 112}
    assert [frame["line"] for frame in stack["frames"]] == [112, 630, 171]
    assert len(thread["spans"]) == 10


@pytest.mark.parametrize(("option", "value"), [("--pid", "71"), ("--tid", "71"), ("--comm", "pt_*")])
def test_one_thread_alone(cli: Cli, recording: str, option: str, value: str) -> None:
    assert [each["tid"] for each in cli("python", recording, option, value, "--json").document["threads"]] == [71]


def test_one_thread_is_told_over_time(cli: Cli, recording: str) -> None:
    printed = cli("python", recording, "--tid", "71").out
    assert "decode  job/data.py:31" in printed


def test_a_recording_without_python_says_so(cli: Cli, tmp_path: Path) -> None:
    node = Node()
    node.happen(START_US, "mark", "user", "info", "x")
    write_segment(tmp_path / "rec", node.tables)
    done = cli("python", str(tmp_path / "rec"))
    assert "no Python was looked at" in done.err


def test_other_views_show_them(cli: Cli, recording: str) -> None:
    assert "decode" in cli("flamegraph", recording).out
    (function,) = cli("stacks", recording, "--json", "--python").document["functions"]
    assert (function["name"], function["module"]) == ("decode", "job/data.py")
    changed = cli("diff", f"{recording}@+0s..+0.5s", f"{recording}@+1s..+1.2s", "--json").document["functions"]
    assert "decode" in {each["name"] for each in changed}
    assert "decode" not in cli("stacks", recording, "--no-python").out
