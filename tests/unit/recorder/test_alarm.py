"""When the doctor is called: soon for what is new, ever more rarely for what lasts, once more when it is over."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from zombiescope.recorder.alarm import MODERATE_S, Alarm
from zombiescope.recorder.look_schedule import FIRST_LOOK_US, LOOKS_US, OVER_US

SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def busy(alarm: Alarm, second: int, cpu: int = 3) -> None:
    alarm.core(START + second * SECOND, cpu, SECOND, 990)


def looks(alarm: Alarm, seconds: int, happens: Callable[[int], None]) -> list[int]:
    """The seconds in which a look is due."""
    found = []
    for second in range(seconds):
        happens(second)
        if alarm.due(START + second * SECOND) is not None:
            found.append(second)
    return found


def test_a_healthy_node_is_never_looked_at() -> None:
    alarm = Alarm()

    def ordinary(second: int) -> None:
        now = START + second * SECOND
        alarm.core(now, 3, SECOND, 300)
        alarm.core(now, 4, SECOND, None)
        alarm.unit(now, "kubelet.service", 20, 99)
        alarm.node(now, 96 * 99, 20 * 99, 99, 96)
        alarm.calls(now, 40_000, SECOND, 96)
        alarm.hole(now, 3, 10_200)
        alarm.hole(now, 4, None)
        alarm.event(now, "unit_restart", "warning")
        alarm.event(now, "container_restart", "warning")
        alarm.event(now, "nic_link", "info")

    assert looks(alarm, 3600, ordinary) == []


def test_the_first_look_comes_soon_and_the_next_ones_ever_later() -> None:
    alarm = Alarm()
    found = looks(alarm, 3600, lambda second: busy(alarm, second))
    assert found[0] * SECOND == FIRST_LOOK_US
    apart = [(later - earlier) * SECOND for earlier, later in pairwise(found)]
    assert apart[: len(LOOKS_US)] == list(LOOKS_US)
    assert set(apart[len(LOOKS_US) :]) <= {LOOKS_US[-1]}


def test_what_was_said_at_the_start_is_looked_at_from_there() -> None:
    alarm = Alarm()
    looks(alarm, 30, lambda second: busy(alarm, second) if second >= 5 else None)
    assert alarm.since_us == START + 5 * SECOND


def test_something_new_is_looked_at_although_the_old_is_still_there() -> None:
    alarm = Alarm()

    def happens(second: int) -> None:
        busy(alarm, second)
        if second == 60:
            alarm.event(START + second * SECOND, "nic_reset", "critical")

    found = looks(alarm, 90, happens)
    # Soon, and when the new one is over, whose end is its own.
    assert [second for second in found if second > 30] == [60 + FIRST_LOOK_US // SECOND, 60 + OVER_US // SECOND]


def test_the_same_again_is_nothing_new() -> None:
    alarm = Alarm()
    known = looks(alarm, 90, lambda second: busy(alarm, second))
    again = Alarm()

    def happens(second: int) -> None:
        busy(again, second)
        busy(again, second)

    assert looks(again, 90, happens) == known


def test_one_look_when_it_is_over_and_then_peace() -> None:
    alarm = Alarm()
    found = looks(alarm, 300, lambda second: busy(alarm, second) if second < 5 else None)
    assert found == [3, 10, 4 + OVER_US // SECOND]
    assert alarm.since_us is None


def test_after_the_end_a_new_suspicion_is_new() -> None:
    alarm = Alarm()
    found = looks(alarm, 200, lambda second: busy(alarm, second) if second < 2 or second >= 100 else None)
    assert 103 in found
    assert alarm.since_us == START + 100 * SECOND


def half(alarm: Alarm, second: int) -> None:
    alarm.unit(START + second * SECOND, "web.service", 60, 99)


def test_half_a_cpu_in_the_kernel_is_suspicious_when_it_lasts() -> None:
    alarm = Alarm()
    assert looks(alarm, 3, lambda second: half(alarm, second)) == []
    assert alarm.since_us is None
    alarm = Alarm()
    found = looks(alarm, 60, lambda second: half(alarm, second))
    assert found[0] == MODERATE_S - 1 + FIRST_LOOK_US // SECOND


def test_half_a_cpu_that_comes_and_goes_is_looked_at_once_in_ten_minutes() -> None:
    alarm = Alarm()
    found = looks(alarm, 1200, lambda second: half(alarm, second) if second % 40 < 8 else None)
    # Each time it is looked at until it is over, and not at the fourteen bouts that follow.
    assert found
    assert {second // 600 for second in found} == {0, 1}
    assert all(second % 600 < 40 for second in found)


@pytest.mark.parametrize(
    ("busy_ms", "waited_us", "suspicious"),
    [
        ([1000, 50, 40, 60], 900_000, True),
        ([1000, 50, 40, 60], 100_000, False),  # one program computes, and nobody waits for it
        ([1000, 990, 980, 1000], 990_000, False),  # a node that is full
        ([600, 50, 40, 60], 900_000, False),
        ([], 900_000, False),
    ],
)
def test_tasks_that_wait_for_one_core_while_others_have_room(
    busy_ms: list[int], waited_us: int, suspicious: bool
) -> None:
    alarm = Alarm()
    looks(alarm, 10, lambda second: alarm.crowd(START + second * SECOND, SECOND, busy_ms, waited_us))
    assert (alarm.since_us is not None) == suspicious


@pytest.mark.parametrize(
    ("happens", "suspicious"),
    [
        (lambda alarm: alarm.core(START, 3, SECOND, 940), False),
        (lambda alarm: alarm.core(START, 3, SECOND, 960), True),
        (lambda alarm: alarm.core(START, 3, 100_000, 100), False),  # too short to tell
        (lambda alarm: alarm.unit(START, "a.service", 88, 99), False),
        (lambda alarm: alarm.unit(START, "a.service", 90, 99), True),
        (lambda alarm: alarm.node(START, 190, 89, 99, 2), False),  # less than a core in the kernel
        (lambda alarm: alarm.node(START, 198, 98, 99, 2), False),  # half of it is a compiler's own time
        (lambda alarm: alarm.node(START, 150, 139, 99, 2), True),  # a caller and the kworkers behind it
        (lambda alarm: alarm.node(START, 500, 400, 99, 96), False),  # four of 96 cores
        (lambda alarm: alarm.node(START, 4000, 2500, 99, 96), True),
        (lambda alarm: alarm.calls(START, 9_000, SECOND, 2), False),
        (lambda alarm: alarm.calls(START, 10_000, SECOND, 2), True),
        (lambda alarm: alarm.hole(START, 3, 99_999), False),
        (lambda alarm: alarm.hole(START, 3, 100_000), True),
        (lambda alarm: alarm.event(START, "soft_lockup", "critical"), True),
        (lambda alarm: alarm.event(START, "soft_lockup", "info"), False),
        (lambda alarm: alarm.event(START, "mark", "warning"), False),
    ],
)
def test_what_is_suspicious(happens: Callable[[Alarm], None], suspicious: bool) -> None:
    alarm = Alarm()
    happens(alarm)
    assert (alarm.since_us is not None) == suspicious


@pytest.mark.parametrize(
    ("suspect", "arguments"),
    [
        ("core", (0, SECOND, 990)),
        ("unit", ("x.service", 95, 99)),
        ("real_time", ("fifo", 95, 99)),
        ("quota", ("/pod", 100, 90)),
    ],
)
def test_a_suspicion_is_looked_at_once_it_has_lasted(suspect: str, arguments: tuple[int | str, ...]) -> None:
    alarm = Alarm()
    getattr(alarm, suspect)(START, *arguments)
    assert alarm.due(START + SECOND) is None
    assert alarm.due(START + FIRST_LOOK_US) == START
    assert alarm.due(START + FIRST_LOOK_US + SECOND) is None
    assert alarm.due(START + OVER_US) == START, "once more when it is over"
    assert alarm.since_us is None


def test_a_little_real_time_and_a_little_throttling_are_no_suspicion() -> None:
    alarm = Alarm()
    alarm.real_time(START, "audio", 40, 99)
    alarm.quota(START, "/pod", 100, 5)
    alarm.quota(START, "/free", 0, 0)
    assert alarm.due(START + 10 * SECOND) is None
