"""Services: one that raises is started again and said once; one that hangs stops nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from zombiescope.agent import parts, threads, worker
from zombiescope.agent.child import Child, exit_text
from zombiescope.agent.health import MARGIN_S, Health
from zombiescope.agent.notify import Notifier
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.agent.threads import ServiceThread, ServiceThreads


@dataclass
class Scripted:
    name: str
    work: Callable[[threading.Event], None]
    runs: int = 0

    def run(self, context: Context, stop: threading.Event) -> None:  # noqa: ARG002  a service is given it
        self.runs += 1
        self.work(stop)


@dataclass
class Stage:
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tally = Tally(parts.families())
        self.health = Health(self.said.append)

    def context(self, name: str) -> Context:
        return Context(name, Path("/nowhere"), "n", "n", self.tally, self.health)


def waits(event: threading.Event) -> None:
    event.wait(30)


def until(true: Callable[[], bool]) -> None:
    ended = time.monotonic() + 10
    while not true():
        assert time.monotonic() < ended
        time.sleep(0.005)


def test_a_service_that_raises_is_started_again_and_said_once() -> None:
    stage = Stage()

    def fail(_: threading.Event) -> None:
        raise ValueError("no luck")

    service = Scripted("bad", fail)
    thread = ServiceThread(service, stage.context("bad"), first_wait_s=0.001)
    thread.start()
    until(lambda: service.runs >= 5)
    thread.tell_to_stop()
    assert thread.join(time.monotonic() + 10)
    assert stage.said == ["bad: no luck (ValueError)"]
    assert stage.tally.values(threads.RESTARTS)[("bad",)] >= 4
    assert stage.health.conditions()["bad"].state == "failed"


def test_a_service_that_exits_has_failed_and_is_started_again() -> None:
    """SystemExit would end its thread without a word."""
    stage = Stage()

    def leave(_: threading.Event) -> None:
        raise SystemExit(3)

    thread = ServiceThread(Scripted("bad", leave), stage.context("bad"), first_wait_s=0.001)
    thread.start()
    until(lambda: stage.tally.values(threads.RESTARTS).get(("bad",), 0) >= 2)
    assert stage.health.conditions()["bad"].state == "failed"
    thread.tell_to_stop()
    assert thread.join(time.monotonic() + 10)


def test_a_service_that_never_beats_after_its_start_hangs() -> None:
    stage, hangs = Stage(), threading.Event()
    thread = ServiceThread(Scripted("stuck", lambda _: waits(hangs)), stage.context("stuck"))
    thread.start()
    until(lambda: stage.health.conditions()["stuck"].due_s is not None)
    stage.health.excuse(-threads.START_S - 2 * MARGIN_S)
    assert [part.state for part in stage.health.parts()] == ["hung"]
    hangs.set()


def test_one_that_works_again_says_so() -> None:
    stage = Stage()
    stage.health.say("x", "degraded", "the peer is away")
    stage.health.say("x", "degraded", "the peer is away")
    stage.health.say("x", "ok")
    assert stage.said == ["x: the peer is away", "x: works again"]


def test_a_service_that_hangs_is_left_behind_and_not_started_twice() -> None:
    stage, hangs = Stage(), threading.Event()
    all_of_them = ServiceThreads(stage.context)
    assert all_of_them.start(Scripted("stuck", lambda _: waits(hangs)))
    assert all_of_them.start(Scripted("good", waits))
    assert all_of_them.stop(["stuck", "good"], within_s=0.2) == ["stuck"]
    assert not all_of_them.start(Scripted("stuck", lambda _: None))
    assert "good" not in all_of_them
    hangs.set()


def test_a_worker_whose_peer_sends_without_an_end_has_a_memory_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "greedy.py").write_text("import sys\nsys.stdin.read()\nkept = bytearray(16 << 30)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(worker.WorkerError, match="greedy ended with 1"):
        worker.run("greedy", [], {}, lambda _: None, threading.Event(), 60.0)


def test_a_child_is_started_again_later_and_later() -> None:
    class Dead:
        def poll(self) -> int:
            return 3

    child, now_s, waits = Child("it", lambda: Dead()), 100.0, []  # type: ignore[arg-type, return-value]
    for _ in range(9):
        assert child.start_if_due(now_s)
        assert child.ended(now_s) == 3
        waits.append(child.next_start_s - now_s)
        assert not child.start_if_due(child.next_start_s - 0.01)
        now_s = child.next_start_s
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert exit_text(-9) == "died of SIGKILL"


def test_systemd_is_told(tmp_path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(tmp_path / "notify"))
        made.settimeout(5)
        notifier = Notifier(str(tmp_path / "notify"), watchdog_s=30)
        notifier.ready("recording\ninto")
        assert made.recv(200) == b"READY=1\nSTATUS=recording into"
        notifier.reloading()
        assert made.recv(200).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        notifier.alive()
        assert made.recv(200) == b"WATCHDOG=1"
    Notifier(None).ready("nobody listens")
