"""The channel between host and machine, with the machine's agent running here over a socket pair."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from zombiescope.lab import guest_agent
from zombiescope.lab.failure import LabError
from zombiescope.lab.node import Channel


@pytest.fixture
def channel() -> Iterator[Channel]:
    here, there = socket.socketpair()

    def serve() -> None:
        port = guest_agent.Port(there.fileno())
        port.send({"hello": {"python": "3"}})
        with suppress(BrokenPipeError):
            while request := port.receive():
                guest_agent.run(port, {**request, "cwd": "/"})
        port.close()

    agent = threading.Thread(target=serve)
    agent.start()
    made = Channel(here)
    made.wait_for_agent(5.0, lambda: None)
    yield made
    made.close()
    agent.join(5.0)
    there.close()


def test_output_and_exit_code_come_back(channel: Channel) -> None:
    done = channel.run(["sh", "-c", "cat; echo err >&2; exit 3"], stdin=b"\x00\xff" * 100_000)
    assert (done.exit, done.stdout, done.stderr) == (3, b"\x00\xff" * 100_000, b"err\n")


def test_output_is_seen_while_it_comes(channel: Channel) -> None:
    seen: list[tuple[str, bytes]] = []
    channel.run(["sh", "-c", "echo one; sleep 0.2; echo two"], watch=lambda name, chunk: seen.append((name, chunk)))
    assert seen == [("stdout", b"one\n"), ("stdout", b"two\n")]


def test_a_limit_ends_the_command_and_its_children(channel: Channel) -> None:
    done = channel.run(["sh", "-c", "sleep 600 & sleep 600"], limit_s=0.3)
    assert done.exit is None
    # AND the channel goes on
    assert channel.run(["true"]).exit == 0


def test_a_failed_command_says_what_it_said(channel: Channel) -> None:
    with pytest.raises(LabError, match="exited with 1: no such luck"):
        channel.run(["sh", "-c", "echo no such luck >&2; exit 1"]).check()
    assert channel.run(["/no/such/program"]).exit == 127


def test_a_machine_that_stopped_is_told_at_once(channel: Channel) -> None:
    def stopped() -> None:
        raise LabError("the machine stopped")

    with pytest.raises(LabError, match="stopped"):
        channel.run(["sleep", "1"], alive=stopped)
