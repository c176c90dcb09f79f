"""Work for the disk, in a thread of its own: nobody waits, nothing piles up, what it raises is raised where it is
looked for."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from zombiescope.recorder.disk import DiskThread, Inline

WAIT_S = 20.0


class Gate:
    """Work that hangs until it is let go."""

    def __init__(self) -> None:
        self.entered, self._open = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.entered.set()
        assert self._open.wait(WAIT_S)

    def open(self) -> None:
        self._open.set()


def test_whoever_hands_over_does_not_wait_and_only_the_newest_of_a_name_is_kept() -> None:
    disk, gate, done = DiskThread(), Gate(), list[str]()
    disk.named("frames")(gate)
    assert gate.entered.wait(WAIT_S)
    for number in range(1000):
        for name in ("frames", "node file"):
            disk.named(name)(partial(done.append, f"{name} {number}"))
    assert disk.waiting == 2
    assert not disk.settle(0.01)
    gate.open()
    assert disk.settle(WAIT_S)
    assert done == ["frames 999", "node file 999"]


def test_what_work_raises_is_raised_once_under_its_name_and_the_thread_goes_on() -> None:
    disk, done = DiskThread(), list[int]()

    def broken() -> None:
        raise ValueError("broken by a test")

    disk.named("frames")(broken)
    assert disk.settle(WAIT_S)
    disk.raise_failure("node file")
    with pytest.raises(ValueError, match="broken by a test"):
        disk.raise_failure("frames")
    disk.raise_failure("frames")
    disk.named("frames")(lambda: done.append(1))
    assert disk.settle(WAIT_S)
    assert done == [1]


def test_in_a_replay_work_is_done_where_it_is_handed_over() -> None:
    done: list[int] = []
    Inline().named("frames")(lambda: done.append(1))
    assert done == [1]
    assert Inline().settle(0.0)
