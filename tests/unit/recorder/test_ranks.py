"""Ranks on their way into a recording: real processes in the reader, and what the recorder does not believe."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.recorder.test_pythons import Rows

from zombiescope.kernel import process
from zombiescope.recorder.python_target import Target
from zombiescope.recorder.pythons import AGAIN_US, MOST, RankTracker
from zombiescope.store import schema
from zombiescope.symbols.python.walk import Tally

NOW_US = 1_760_000_000_000_000
TRAINER = """
import os, sys, time
child = os.fork()
if child:
    os.write(1, b"%d\\n" % child)
time.sleep(60)
"""


@pytest.fixture
def trainer() -> Iterator[tuple[int, int]]:
    """A rank, and a worker that it forked."""
    env = {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "10.0.0.4", "MASTER_PORT": "29500"}
    started = subprocess.Popen([sys.executable, "-S", "-c", TRAINER], stdout=subprocess.PIPE, env=env)
    assert started.stdout is not None
    child = int(started.stdout.readline())
    yield started.pid, child
    for pid in (child, started.pid):
        os.kill(pid, 9)
    started.communicate()


def seen(pid: int) -> dict[str, Any] | None:
    target = Target(pid, Tally())
    end_s = time.monotonic() + 20
    while not target.find(time.monotonic()) and time.monotonic() < end_s:
        target = Target(pid, Tally())
    return target.rank


def test_a_rank_is_found_and_what_it_forked_for_its_data_is_none(trainer: tuple[int, int]) -> None:
    rank = seen(trainer[0])
    assert rank is not None
    assert (rank["rank"], rank["world_size"], rank["local_rank"]) == (1, 4, 1)
    assert (rank["job"], rank["kind"], rank["pid"], rank["uid"]) == (
        "10.0.0.4:29500",
        "torch",
        trainer[0],
        os.geteuid(),
    )
    assert seen(trainer[1]) is None


def said(pid: int = 0, **more: Any) -> dict[str, Any]:
    stat = process.read_stat(pid or os.getpid())
    assert stat is not None
    row = {"pid": pid or os.getpid(), "start_ticks": stat.start_time_ticks, "rank": 0, "world_size": 2, "uid": 0}
    return {**dict.fromkeys(schema.RANKS.names[1:-1]), **row, "job": "j", "kind": "torch", "comm": "python3"} | more


def rows(batch: Rows) -> list[tuple[int, int | None, int]]:
    return [(row["pid"], row["rank"], row["ended"]) for row in batch.of(schema.RANKS)]


def test_it_is_written_once_again_in_each_segment_and_when_it_ends() -> None:
    batch = Rows()
    tracker = RankTracker(batch)
    other = subprocess.Popen(["/bin/sleep", "60"])
    try:
        for _ in range(2):
            tracker.found(said(), NOW_US)
            tracker.found(said(other.pid, rank=1), NOW_US)
        assert rows(batch) == [(os.getpid(), 0, 0), (other.pid, 1, 0)]
        assert tracker.pids == [os.getpid(), other.pid]
    finally:
        other.kill()
        other.communicate()
    tracker.second(NOW_US + AGAIN_US)
    assert rows(batch)[2:] == [(other.pid, 1, 1)]
    tracker.restart(NOW_US + 2 * AGAIN_US)
    assert rows(batch)[3:] == [(os.getpid(), 0, 0)]


@pytest.mark.parametrize("bad", [{"pid": "7"}, {"pid": None}, {"start_ticks": -1}, {"pid": True}])
def test_what_has_no_shape_is_no_row(bad: dict[str, Any]) -> None:
    batch = Rows()
    RankTracker(batch).found(said() | bad, NOW_US)
    assert rows(batch) == []


def test_there_are_never_more_than_so_many() -> None:
    batch = Rows()
    tracker = RankTracker(batch)
    for number in range(3 * MOST):
        tracker.found(said() | {"pid": 10_000 + number}, NOW_US)
    assert len(rows(batch)) == MOST
