"""The thread that is asked who a container is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.tracked_containers import cid

from zombiescope.node.containers import requester
from zombiescope.recorder import worker
from zombiescope.recorder.container_lookup import (
    Answer,
    ClientAnswer,
    ClientQuestion,
    ContainerAnswer,
    ContainerLookup,
    ContainerQuestion,
)


@pytest.fixture
def lookup(tmp_path: Path) -> Iterator[ContainerLookup]:
    made = ContainerLookup(str(tmp_path))
    yield made
    made.stop()


def answers(lookup: ContainerLookup, count: int) -> list[Answer]:
    found: list[Answer] = []
    end = time.monotonic() + 10
    while len(found) < count:
        assert time.monotonic() < end
        found += lookup.take()
        time.sleep(0.001)
    return found


def test_the_thread_answers_in_order(lookup: ContainerLookup, tmp_path: Path) -> None:
    (tmp_path / "var/log/pods/team-a_agent_u-1/agent").mkdir(parents=True)
    assert lookup.ask(ClientQuestion(4242, 1))
    assert lookup.ask(ContainerQuestion(cid(1), "containerd", "u-1", 1, 1))
    client, container = answers(lookup, 2)
    assert isinstance(client, ClientAnswer)
    assert isinstance(container, ContainerAnswer)
    assert client.asking is None
    assert (container.description.namespace, container.description.pod) == ("team-a", "agent")


def test_more_than_fit_are_refused(lookup: ContainerLookup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_most_queued", 0)
    assert not lookup.ask(ClientQuestion(1, 1))


def test_one_that_raises_costs_itself_and_one_that_hangs_is_left_behind(
    lookup: ContainerLookup, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, waiting = threading.Event(), threading.Event()

    def read(pid: int, _: str) -> None:
        if pid == 13:
            raise ValueError("an odd file")
        if pid == 99:
            waiting.set()
            held.wait(10)

    monkeypatch.setattr(requester, "read", read)
    for pid in (13, 1):
        lookup.ask(ClientQuestion(pid, 1))
    answers(lookup, 1)
    with pytest.raises(ValueError, match="an odd file"):
        lookup.raise_failure()
    lookup.ask(ClientQuestion(99, 1))
    assert waiting.wait(10)
    assert not lookup.newly_stuck()
    monkeypatch.setattr(worker, "STUCK_S", 0.0)
    assert lookup.newly_stuck()
    lookup.ask(ClientQuestion(2, 1))
    answers(lookup, 1)
    held.set()
    answers(lookup, 1)
