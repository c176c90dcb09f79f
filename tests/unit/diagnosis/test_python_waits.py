"""An incident says at which line of their own code those were whom it held up."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.training import FROM_S, LOOP, TO_S, TRAINER, Training

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Link
from zombiescope.store.reader import open_recording


def training(pid: int = TRAINER) -> Training:
    """A trainer that loses its core, and was seen in its loader meanwhile."""
    made = Training(name="trainer-3").taken(5).use(0, 20)
    node = made.node
    train = node.frame("train_epoch", "python", "job/train.py")
    loads = node.frame("_BaseDataLoaderIter.__next__", "python", "site-packages/torch/utils/data/dataloader.py")
    gets = node.frame("Queue.get", "python", "python3.11/queue.py")
    step = node.frame("step", "python", "job/train.py")
    for second in range(60):
        inside = FROM_S <= second < TO_S
        frames, lines = ([train, loads, gets], [112, 630, 171]) if inside else ([train, step], [114, 40])
        node.python(START_US + second * SECOND + 100_000, task_tid=pid, frames=frames, lines=lines, comm="trainer-3")
    return made


def links(made: Training, directory: Path) -> list[Link]:
    made.write(directory)
    with open_recording(directory) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
    return [link for each in found.incidents for link in each.causes[0].chain if link.step == "python"]


def test_the_line_that_waited(tmp_path: Path) -> None:
    (link,) = links(training(), tmp_path)
    where = "waited in _BaseDataLoaderIter.__next__, train.py:112, while core 5 was taken"
    assert link.fact == f"pid {TRAINER} (trainer-3) {where}"
    assert (link.source, link.value_unit) == ("python", "looks")


@pytest.mark.parametrize("pid", [LOOP, 99])
def test_who_took_the_core_or_was_elsewhere_did_not_wait(tmp_path: Path, pid: int) -> None:
    assert links(training(pid), tmp_path) == []


def test_without_looks_nothing_is_said(tmp_path: Path) -> None:
    assert links(Training().taken(5).use(0, 20), tmp_path) == []
