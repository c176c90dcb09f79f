"""Processes that stopped using the CPU: real children, stopped by real signals; only what they used is made up."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from zombiescope.kernel import process
from zombiescope.recorder import quiet_processes
from zombiescope.recorder.quiet_processes import QuietProcesses
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

NOW_US = 1_760_000_000_000_000
SECOND_US = 1_000_000
LONGEST_S = 20.0


class Rows(Batch):
    def waiting(self) -> list[dict[str, Any]]:
        table = schema.WAITING
        return [dict(zip(table.names, row, strict=True)) for row in self._rows.get(table.number, [])]


class Node:
    def __init__(self, root: str = "/") -> None:
        self.batch = Rows()
        self.quiet = QuietProcesses(self.batch, root)
        self.events: list[Event] = []
        self.suspected: list[str] = []
        self.quiet.tell = self.events.append
        self.quiet.suspect = lambda _at, what: self.suspected.append(what)

    def used(self, second: int, *pids: int, samples: int = 40) -> None:
        shares = [TaskShare("x", None, samples, 0, pid=pid, tid=pid) for pid in pids]
        self.quiet.hot(shares, NOW_US + second * SECOND_US)

    def seconds(self, first: int, last: int, on_gpu: tuple[int, ...] = ()) -> list[dict[str, Any]]:
        """The rows of these seconds."""
        before = len(self.batch.waiting())
        for second in range(first, last):
            self.quiet.second(NOW_US + second * SECOND_US, on_gpu)
        return self.batch.waiting()[before:]


@pytest.fixture
def node() -> Node:
    return Node()


def until(pid: int, state: str) -> None:
    end = time.monotonic() + LONGEST_S
    while (stat := process.read_stat(pid)) is None or stat.state != state:
        assert time.monotonic() < end, stat
        time.sleep(0.01)


def signalled(pid: int, number: signal.Signals, state: str) -> None:
    os.kill(pid, number)
    until(pid, state)


@pytest.fixture
def children() -> Iterator[list[int]]:
    made = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    for one in made:
        until(one.pid, "S")
    yield [one.pid for one in made]
    for one in made:
        one.kill()
        one.wait()


def me() -> str:
    stat = process.read_stat(os.getpid())
    assert stat is not None
    return f"{stat.comm}:{os.getpid()}"


def test_a_stopped_process_that_was_busy_is_a_row_each_second(node: Node, children: list[int]) -> None:
    node.used(0, *children)
    signalled(children[0], signal.SIGSTOP, "T")
    rows = node.seconds(1, 9)
    assert {(row["pid"], row["kind"], row["state"], row["resource"]) for row in rows} == {
        (children[0], "stopped", "T", me())
    }
    assert {row["since"] for row in rows} == {NOW_US}, "it was last seen to run then"
    assert [row["time"] for row in rows] == [NOW_US + second * SECOND_US for second in range(2, 9)]


def test_it_is_an_event_once_and_the_live_diagnosis_looks(node: Node, children: list[int]) -> None:
    node.used(0, *children)
    for pid in children:
        signalled(pid, signal.SIGSTOP, "T")
    node.seconds(1, 5)
    assert (node.events, node.suspected) == ([], [])
    node.seconds(5, 9)
    (event,) = node.events
    assert (event.kind, event.severity) == ("tasks_stopped", "info")
    assert event.text == f"3 processes (sleep) of {me()} are stopped by a signal for 5 s; who sent it is not recorded"
    assert sorted(event.fields["pids"]) == sorted(children)
    assert set(node.suspected) == {f"stopped {me()}"}


def test_one_that_goes_on_has_no_more_rows(node: Node, children: list[int]) -> None:
    node.used(0, *children)
    signalled(children[0], signal.SIGSTOP, "T")
    assert node.seconds(1, 5)
    signalled(children[0], signal.SIGCONT, "S")
    assert node.seconds(5, 12) == []


def test_one_that_was_not_busy_is_not_looked_at(node: Node, children: list[int]) -> None:
    node.used(0, *children, samples=quiet_processes.LEAST_SAMPLES - 1)
    signalled(children[0], signal.SIGSTOP, "T")
    assert node.seconds(1, 30) == []


def test_where_one_was_stopped_those_that_did_less_are_looked_at_too(node: Node, children: list[int]) -> None:
    node.used(0, children[0])
    node.used(0, children[1], samples=1)
    for pid in children:
        signalled(pid, signal.SIGSTOP, "T")
    assert {row["pid"] for row in node.seconds(1, 9)} == {*children[:2]}, "the third was in no sample"


def test_sleepers_are_rows_only_below_a_process_on_a_gpu_that_is_quiet_too(node: Node, children: list[int]) -> None:
    node.used(0, *children)
    assert node.seconds(1, 9) == []
    node.used(9, *children)
    rows = node.seconds(10, 14, on_gpu=(os.getpid(),))
    assert {(row["pid"], row["kind"], row["state"]) for row in rows} == {(pid, "asleep", "S") for pid in children}
    assert node.events == []
    other = Node()
    for second in range(9):
        other.used(second, os.getpid(), *(children if second == 0 else ()))
        assert other.seconds(second, second + 1, on_gpu=(os.getpid(),)) == [], "the trainer goes on"


def test_where_a_sleeper_sleeps_is_said(node: Node, children: list[int]) -> None:
    node.used(0, children[0])
    (row,) = node.seconds(2, 3, on_gpu=(os.getpid(),))
    assert row["wchan"] is None or "sleep" in row["wchan"], "None where it may not be read"


SHELL = """
import fcntl, os, subprocess, sys, termios, time
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
job = subprocess.Popen(["sleep", "600"], process_group=0 if sys.argv[1] == "job" else None)
print(job.pid, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize(("what", "kind"), [("job", "suspended"), ("worker", "stopped")])
def test_a_job_of_a_terminal_is_suspended_and_a_worker_in_the_group_of_its_parent_is_stopped(
    what: str, kind: str, node: Node
) -> None:
    ours, theirs = pty.openpty()
    shell = subprocess.Popen([sys.executable, "-c", SHELL, what], stdin=theirs, stdout=subprocess.PIPE, text=True)
    pid = 0
    try:
        assert shell.stdout is not None
        pid = int(shell.stdout.readline())
        until(pid, "S")
        node.used(0, pid)
        signalled(pid, signal.SIGSTOP, "T")
        (row,) = node.seconds(2, 3)
        assert (row["kind"], row["resource"].rpartition(":")[2]) == (kind, str(shell.pid))
    finally:
        for one in (pid, shell.pid):
            os.kill(one, signal.SIGKILL)
        shell.communicate()
        os.close(ours)
        os.close(theirs)


def test_a_pid_that_another_process_has_now_is_not_the_one_that_was_stopped(
    node: Node, children: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    node.used(0, children[0])
    signalled(children[0], signal.SIGSTOP, "T")
    assert node.seconds(2, 4)
    real = process.read_stat(children[0])
    assert real is not None
    newer = type(real)(**{**{name: getattr(real, name) for name in real.__slots__}, "start_time_ticks": 1})
    monkeypatch.setattr(process, "read_stat", lambda *_: newer)
    assert node.seconds(4, 5) == []


def test_it_is_bounded_and_forgets(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_processes, "MOST_PROCESSES", 10)
    looked: list[int] = []
    monkeypatch.setattr(process, "read_stat", lambda pid, *_: looked.append(pid))
    node.used(0, *range(5_000_000, 5_000_100))
    node.seconds(2, 90)
    assert len(looked) <= 10


def test_a_replay_looks_at_nobody(tmp_path: Path, children: list[int]) -> None:
    elsewhere = Node(str(tmp_path))
    elsewhere.used(0, *children)
    signalled(children[0], signal.SIGSTOP, "T")
    assert elsewhere.seconds(1, 9) == []
