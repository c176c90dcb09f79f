"""Parts that fail and work again are news once each, however often a crash repeats."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.agent.part_watch import QUIET_S, PartWatch
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part

WELL = Part(LIVE_DIAGNOSIS, "ok", 100.0)
DEAD = replace(WELL, state="failed", since=200.0, why="it was ended by SIGSEGV", failures=1)


class Node:
    def __init__(self, *failed_before: str) -> None:
        self.parts = [Part(RECORDER, "ok", 100.0), WELL]
        self.now = 0.0
        self.watch = PartWatch(lambda: self.parts, failed_before, clock=lambda: self.now)

    def poll(self, *parts: Part, after_s: float = 2.0) -> list[tuple[str, str]]:
        self.now += after_s
        self.parts = [Part(RECORDER, "ok", 100.0), *parts]
        return [(change.kind, change.identity) for change in self.watch.poll()]


def test_a_failure_and_its_end_are_news_once() -> None:
    node = Node()
    assert node.poll(WELL) == []
    assert node.poll(DEAD) == [("failed", "live diagnosis 200")]
    assert node.poll(DEAD) == []
    well = replace(DEAD, state="ok")
    assert node.poll(well) == []
    assert node.poll(well, after_s=QUIET_S) == [("recovered", "live diagnosis 200")]
    assert node.poll(well, after_s=QUIET_S) == []
    assert node.watch.failed == {}


def test_a_crash_between_two_polls_is_seen_by_its_count() -> None:
    node = Node()
    node.poll(WELL)
    assert [kind for kind, _ in node.poll(replace(WELL, failures=1))] == ["failed"]


def test_a_part_that_crashes_repeatedly_is_one_failure() -> None:
    node = Node()
    node.poll(WELL)
    told = [node.poll(replace(WELL, failures=count), after_s=QUIET_S / 2) for count in range(1, 20)]
    assert [kind for changes in told for kind, _ in changes] == ["failed"]


def test_what_failed_before_this_process_ran_has_its_end_reported() -> None:
    node = Node(LIVE_DIAGNOSIS)
    assert node.poll(WELL) == []
    assert [kind for kind, _ in node.poll(WELL, after_s=QUIET_S)] == ["recovered"]


def test_a_part_that_a_working_recorder_does_not_have_any_longer_is_over() -> None:
    node = Node()
    node.poll(DEAD)
    assert node.poll() == []
    assert [kind for kind, _ in node.poll(after_s=QUIET_S)] == ["recovered"]


def test_a_part_of_a_recorder_that_is_gone_is_not_over() -> None:
    node = Node()
    node.poll(DEAD)
    node.parts = []
    node.now += 2 * QUIET_S
    assert node.watch.poll() == []
    node.now += 2 * QUIET_S
    assert node.watch.poll() == []
