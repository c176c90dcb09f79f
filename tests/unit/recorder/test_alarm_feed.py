"""What reaches the alarm: which numbers, in which unit, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from zombiescope.recorder.alarm_feed import AlarmFeed
from zombiescope.recorder.sample_writer import TaskShare
from zombiescope.recorder.tick import CoreTime, SampledCore, Tick
from zombiescope.store.event import Event

SECOND_US = 1_000_000
HZ = 100


@dataclass
class StandInAlarm:
    """Keeps what it is fed: (name of the method, arguments after the time)."""

    fed: list[tuple[Any, ...]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return lambda _, *given: self.fed.append((name, *given))

    def of(self, name: str) -> list[list[Any]]:
        return [given for method, *given in self.fed if method == name]


class StandInCounters:
    def take_calls(self) -> int:
        return 7

    def take_waited_us(self) -> int:
        return 300_000

    def take_suspects(self) -> list[str]:
        return []


@pytest.fixture
def alarm() -> StandInAlarm:
    return StandInAlarm()


@pytest.fixture
def feed(alarm: StandInAlarm) -> AlarmFeed:
    return AlarmFeed(alarm, StandInCounters(), HZ, started_us=1000)  # type: ignore[arg-type]


def tick(busy_ms: int, sampled: SampledCore) -> Tick:
    times = [CoreTime(0, busy_ms, 40)]
    return Tick(0, 10 * SECOND_US, SECOND_US, online=(0, 1), sampled={0: sampled}, times=times)


def test_a_tick_brings_cores_calls_and_waiting(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.tick(tick(50, (5, 95, 10_000_000, 0)))
    assert alarm.of("core") == [[0, SECOND_US, 40]]
    assert alarm.of("calls") == [[7, SECOND_US, 2]]
    assert alarm.of("crowd") == [[SECOND_US, [50], 300_000]]


def test_a_core_that_was_busy_and_not_sampled_has_a_hole(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.tick(tick(1000, (70, 0, 300_000_000, 0)))
    assert alarm.of("hole") == [[0, 300_000]]


def test_idle_time_that_is_not_sampled_explains_a_gap(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.tick(tick(100, (10, 0, 800_000_000, 0)))
    assert alarm.of("hole") == []


def test_idle_time_of_the_tick_before_explains_it_too(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.tick(tick(100, (10, 0, 800_000_000, 0)))
    feed.tick(tick(1000, (90, 0, 800_000_000, 0)))
    assert alarm.of("hole") == []
    feed.tick(tick(1000, (90, 0, 800_000_000, 0)))
    assert alarm.of("hole") == [[0, 800_000]]


def test_the_time_between_two_samples_is_no_hole(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.tick(tick(1000, (100, 0, 10_000_000, 0)))
    assert alarm.of("hole") == []


def test_a_hole_of_our_own_is_nobodys(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.tick(tick(1000, (70, 0, 300_000_000, 412)))  # records that did not fit into the ring
    late = tick(1000, (100, 0, 300_000_000, 0))
    late.late_us = 310_000
    feed.tick(late)
    assert alarm.of("hole") == []


def test_being_late_does_not_explain_samples_that_never_came(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    late = tick(1000, (70, 0, 300_000_000, 0))
    late.late_us = 310_000
    feed.tick(late)
    assert alarm.of("hole") == [[0, 300_000]]


def test_tasks_of_one_unit_are_added_up(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    shares = [
        TaskShare("a.service", None, 30, 20),
        TaskShare("a.service", None, 50, 40),
        TaskShare("rt", None, 90, 5, real_time=True),
    ]
    feed.shares(10 * SECOND_US, shares, 2)
    assert alarm.of("unit") == [["a.service", 60, HZ], ["rt", 5, HZ]]
    assert alarm.of("node") == [[170, 65, HZ, 2]]
    assert alarm.of("real_time") == [["rt", 90, HZ]]


def test_what_happened_before_the_start_is_no_news(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    for at_us in (999, 1000):
        feed.event(Event(at_us, "oom_kill", "kmsg", "critical", ""))
    assert alarm.of("event") == [["oom_kill", "critical"]]


def test_quotas_are_passed_on(alarm: StandInAlarm, feed: AlarmFeed) -> None:
    feed.quotas(10 * SECOND_US, [("/a", 10, 4), ("/b", 10, 0)])
    assert alarm.of("quota") == [["/a", 10, 4], ["/b", 10, 0]]
