"""Steps that a program reports: from `step()` to rows of the table, and what hostile senders get."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zombiescope import _mark
from zombiescope.recorder.marks import MAX_STEPS_OF_A_USER, MOST_DURATIONS, MarkSocket
from zombiescope.store import schema

NOW_US = 1_790_000_000_000_000
SECOND_NS = 1_000_000_000


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MarkSocket]:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    _mark._forget_steps()
    made = MarkSocket(tmp_path / "mark.sock")
    yield made
    made.close()
    _mark._forget_steps()


class Clock:
    """The clock of the program that trains."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ns = 10 * SECOND_NS
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.ns)
        monkeypatch.setattr(time, "time_ns", lambda: NOW_US * 1000 + self.ns)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def rows(marks: MarkSocket, now_us: int = NOW_US) -> list[dict[str, Any]]:
    assert marks.read(now_us) == []
    return [dict(zip(schema.STEPS.names, row, strict=True)) for row in marks.take_steps()]


def test_each_step_lasts_until_the_next_one(marks: MarkSocket, clock: Clock) -> None:
    started_us = NOW_US + clock.ns // 1000
    for n in range(25):
        _mark.step(n, rank=3)
        clock.ns += 100_000_000
    found = rows(marks, NOW_US + clock.ns // 1000)
    assert [(row["first"], len(row["took_us"])) for row in found] == [(0, 10), (10, 10)]
    assert {took for row in found for took in row["took_us"]} == {100_000}
    assert [row["time"] for row in found] == [started_us, started_us + 1_000_000]
    assert {(row["pid"], row["rank"], row["phase"], row["left_out"]) for row in found} == {(os.getpid(), 3, None, 0)}


def test_steps_without_a_number_are_counted_and_another_phase_is_another_row(marks: MarkSocket, clock: Clock) -> None:
    for phase in (None, None, "eval", "eval", None):
        _mark.step(phase=phase)
        clock.ns += 300_000_000
    found = rows(marks, NOW_US + clock.ns // 1000)
    assert [(row["first"], row["phase"], len(row["took_us"])) for row in found] == [(0, None, 2), (2, "eval", 2)]


def test_of_a_thousand_steps_a_second_the_last_are_sent_and_the_rest_is_counted(
    marks: MarkSocket, clock: Clock
) -> None:
    for _ in range(1500):
        _mark.step()
        clock.ns += 1_000_000
    (row,) = rows(marks, NOW_US + clock.ns // 1000)
    assert (len(row["took_us"]), row["left_out"]) == (MOST_DURATIONS, 1001 - 33)
    assert row["first"] == 1000 - MOST_DURATIONS


def test_without_a_recorder_nothing_is_kept_and_one_that_starts_later_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    _mark._forget_steps()
    for _ in range(30):
        _mark.step()
        clock.ns += 100_000_000
    assert len(_mark._noted) == 0
    marks = MarkSocket(tmp_path / "mark.sock")
    for _ in range(80):
        _mark.step()
        clock.ns += 100_000_000
    assert rows(marks, NOW_US + clock.ns // 1000)
    marks.close()


@pytest.mark.parametrize("n", ["x", None, 1.5, object(), -1, 1 << 80, float("nan")])
def test_it_never_raises(marks: MarkSocket, clock: Clock, n: Any) -> None:
    for _ in range(4):
        _mark.step(n, phase=n, rank=n)
        clock.ns += 2 * SECOND_NS
    marks.read(NOW_US)


def test_a_forked_child_reports_none_of_its_parents(marks: MarkSocket, clock: Clock) -> None:
    _mark.step(7)
    pid = os.fork()
    if not pid:
        os._exit(len(_mark._noted))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.parametrize(
    "said",
    [
        7, [], None, {"took_us": []}, {"took_us": [1] * 33}, {"took_us": ["1"]}, {"took_us": [-1]}, {"took_us": [True]},
        {"took_us": [1 << 60]}, {"took_us": {"0": 1}},
    ],
)  # fmt: skip
def test_what_is_no_step_is_refused(marks: MarkSocket, said: Any) -> None:
    send(marks, said)
    assert rows(marks) == []
    assert marks.refused == 1


def send(marks: MarkSocket, said: Any) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
        sender.sendto(json.dumps({"steps": said}).encode(), str(marks.path))


def test_forged_times_ranks_and_phases_are_cut_to_shape(marks: MarkSocket) -> None:
    send(marks, {"took_us": [5], "at_us": 1, "rank": "0", "first": -3, "phase": "e" * 900 + "\udcff", "pid": 1})
    (row,) = rows(marks)
    assert (row["time"], row["rank"], row["first"], row["pid"]) == (NOW_US - 5, None, None, os.getpid())
    assert len(row["phase"]) == 40


def test_whoever_floods_is_cut_off_and_does_not_use_up_the_marks(marks: MarkSocket) -> None:
    taken = 0
    for _ in range(MAX_STEPS_OF_A_USER + 50):
        send(marks, {"took_us": [5], "first": 1})
        taken += len(rows(marks))
    assert taken == MAX_STEPS_OF_A_USER
    assert marks.refused == 50
    assert _mark.mark("epoch 1") is True
    assert [event.text for event in marks.read(NOW_US)] == ["epoch 1"]
    marks.second()
    send(marks, {"took_us": [5], "first": 1})
    assert len(rows(marks)) == 1
