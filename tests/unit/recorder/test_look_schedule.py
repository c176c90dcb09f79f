"""Hours of made-up seconds: healthy work costs few looks, and what is lost after them is looked at within seconds."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from zombiescope.recorder.alarm import Alarm
from zombiescope.recorder.look_schedule import MOST, MOST_US, OVER_US, RATIO, LookAnswer

SECOND = 1_000_000
START = 1_700_000_000 * SECOND
HOUR = 3600
HZ = 99
WIDTHS = [2, 16, 192]
LOOK_US = {2: 150_000, 16: 300_000, 96: 1_000_000, 192: 2_000_000}
ALLOWED = {2: 0.005, 16: 0.005, 96: 0.005, 192: 0.0075}
"""Of one core. Each load is found out about once, and there that takes a dozen looks of two seconds."""
NAMED_S = 7
"""From the beginning to the look: with a second for the tick and two for the look, named within ten."""


class Node:
    """A node whose seconds are made up, and a doctor that answers in the second after it was asked."""

    def __init__(self, cpus: int, finds: Callable[[int], LookAnswer] | None = None) -> None:
        self.cpus = cpus
        self.alarm = Alarm()
        self.looks: list[int] = []
        self.since: list[int] = []
        self._finds = finds or (lambda _: LookAnswer(LOOK_US[cpus]))
        self.second = 0
        self.chance = random.Random(3)

    @property
    def now_us(self) -> int:
        return START + self.second * SECOND

    def run(self, seconds: int, happens: Callable[[Node], None]) -> list[int]:
        """The looks of so many more seconds, counted from the first of them."""
        first, before = self.second, len(self.looks)
        for self.second in range(first, first + seconds):
            happens(self)
            since_us = self.alarm.due(self.now_us)
            if since_us is not None:
                self.looks.append(self.second)
                self.since.append((since_us - START) // SECOND)
                self.alarm.schedule.answered(self.now_us, self._finds(self.second))
        self.second += 1
        return [second - first for second in self.looks[before:]]

    # --- what happens -------------------------------------------------------------------------------------------------

    def core(self, cpu: int) -> None:
        self.alarm.core(self.now_us, cpu, SECOND, 990)

    def unit(self, name: str, cpus: float) -> None:
        self.alarm.unit(self.now_us, name, round(cpus * HZ), HZ)

    def kernel(self, cpus: float) -> None:
        """Of all tasks together; as much again is their own time, and more."""
        self.alarm.node(self.now_us, round(3 * cpus * HZ), round(cpus * HZ), HZ, self.cpus)


def steady(node: Node) -> None:
    """A unit with 0.9 of a CPU in the kernel, which wanders over the cores, as half of them do."""
    node.unit("store.service", 0.93)
    if node.second % 2:
        node.core(node.second * 7 % node.cpus)


def training(node: Node) -> None:
    """Data loaders: a fifth of the cores in the kernel, up and down; a core is held for a second now and then."""
    chance = node.chance
    used = 0.2 * node.cpus * chance.uniform(0.7, 1.3)
    node.unit("pt_data_worker", used)
    node.kernel(used + chance.uniform(0, 0.3))
    if chance.random() < 0.05:
        node.core(chance.randrange(node.cpus))
    if node.second % 600 == 0:
        node.alarm.hole(node.now_us, 0, 150_000)


def churn(node: Node) -> None:
    """A container a second, each with a name of its own and a second of kernel time to start."""
    node.unit(f"docker-{node.second:012x}.scope", 1.0)
    node.kernel(1.5)


def bursts(node: Node) -> None:
    """A job of eight seconds every minute, in the kernel for two CPUs."""
    if node.second % 60 < 8:
        node.unit("backup.service", 2.0)


HEALTHY = [steady, training, churn, bursts]


@pytest.mark.parametrize("cpus", WIDTHS)
@pytest.mark.parametrize("healthy", HEALTHY)
def test_a_healthy_hour_costs_at_most_half_a_percent_of_a_core(cpus: int, healthy: Callable[[Node], None]) -> None:
    node = Node(cpus)
    for _ in range(2):
        looks = len(node.run(HOUR, healthy))
        assert looks <= 20
        assert looks * LOOK_US[cpus] <= ALLOWED[cpus] * HOUR * SECOND


@pytest.mark.parametrize("cpus", WIDTHS)
@pytest.mark.parametrize("healthy", HEALTHY)
def test_a_core_that_is_lost_after_hours_of_healthy_work_is_looked_at_within_seconds(
    cpus: int, healthy: Callable[[Node], None]
) -> None:
    node = Node(cpus)
    node.run(2 * HOUR if healthy is steady else 20 * 60, healthy)

    def lost(node: Node) -> None:
        healthy(node)
        node.core(1)

    found = node.run(60, lost)
    assert any(2 <= second <= NAMED_S for second in found), found


@pytest.mark.parametrize("cpus", WIDTHS)
@pytest.mark.parametrize("begins", [4, 40, 500, 3000])
def test_a_second_fault_during_a_long_first_one_is_looked_at_within_seconds(cpus: int, begins: int) -> None:
    node = Node(cpus, lambda second: LookAnswer(LOOK_US[cpus], new=int(second < 5), still_open=1, serious=1))

    def first(node: Node) -> None:
        node.core(0)
        node.unit("kubelet.service", 1.0)

    def both(node: Node) -> None:
        first(node)
        node.core(1)
        node.unit("agent.service", 1.0)

    node.run(begins, first)
    assert any(3 <= second <= NAMED_S for second in node.run(60, both))


@pytest.mark.parametrize("cpus", WIDTHS)
def test_a_second_fault_in_the_same_unit_shows_in_what_it_takes(cpus: int) -> None:
    node = Node(cpus, lambda _: LookAnswer(LOOK_US[cpus], still_open=1, serious=1))
    node.run(1000, lambda node: node.unit("docker.service", 1.0))
    assert any(second <= NAMED_S for second in node.run(30, lambda node: node.unit("docker.service", 2.0)))


@pytest.mark.parametrize("cpus", [96, 192])
def test_a_storm_that_is_nothing_beside_all_cores_is_seen_by_what_is_usual(cpus: int) -> None:
    """1.5 CPUs of a hundred short processes a second, none of them a unit that is worth a look."""
    node = Node(cpus)
    chance = random.Random(7)
    node.run(HOUR, lambda node: node.kernel(10 + chance.uniform(-0.2, 0.2)))
    quiet = len(node.looks)
    assert quiet == 0
    assert any(second <= 10 for second in node.run(30, lambda node: node.kernel(11.5 + chance.uniform(-0.2, 0.2))))


def test_what_stays_becomes_usual_and_is_left_alone() -> None:
    node = Node(96)
    node.run(600, lambda node: node.kernel(2.0))
    node.run(HOUR, lambda node: node.kernel(6.0))
    assert node.run(HOUR, lambda node: node.kernel(6.0)) == []


def test_a_suspicion_that_is_over_is_over_though_others_last() -> None:
    node = Node(16)

    def happens(node: Node) -> None:
        node.unit("store.service", 1.0)
        if node.second < 5:
            node.core(3)

    node.run(60, happens)
    assert set(node.alarm.schedule.alive) == {"unit store.service"}


def test_a_core_that_flaps_is_looked_at_a_few_times_and_at_once_when_it_stays() -> None:
    node = Node(16)
    flaps = node.run(HOUR, lambda node: node.core(5) if node.second % 20 < 2 else None)
    assert len(flaps) <= 20
    stays = node.run(60, lambda node: node.core(5))
    assert stays[0] <= NAMED_S


def test_a_fault_that_comes_every_minute_is_looked_at_each_time() -> None:
    """Ten seconds of a core, once a minute: what the first node that was ever diagnosed had."""
    node = Node(96, lambda _: LookAnswer(LOOK_US[96], new=1))
    node.run(HOUR, lambda node: node.core(39) if node.second % 60 < 10 else None)
    minutes = {second // 60 for second in node.looks}
    assert minutes == set(range(60))


def test_a_look_goes_back_to_where_what_it_is_for_began() -> None:
    node = Node(16)

    def happens(node: Node) -> None:
        node.unit("store.service", 1.0)
        if node.second >= 1000:
            node.core(3)

    node.run(1010, happens)
    at = next(number for number, second in enumerate(node.looks) if second >= 1000)
    assert node.since[at] >= 1000 or node.looks[at] < 1003


def test_looks_that_cannot_wait_are_never_closer_than_three_seconds() -> None:
    node = Node(192)

    def everywhere(node: Node) -> None:
        node.core(node.second % 192)
        node.unit(f"u{node.second // 6}", 3.0)

    node.run(600, everywhere)
    assert min(later - earlier for earlier, later in zip(node.looks, node.looks[1:], strict=False)) >= 3


def test_names_that_somebody_makes_up_do_not_pile_up() -> None:
    node = Node(16)

    def hostile(node: Node) -> None:
        for number in range(50):
            node.unit(f"{node.second}-{number}", 0.95)

    node.run(120, hostile)
    schedule = node.alarm.schedule
    assert len(schedule.alive) <= MOST
    assert len(schedule._names) <= MOST

    def lost(node: Node) -> None:
        hostile(node)
        node.core(2)

    assert any(3 <= second <= NAMED_S for second in node.run(30, lost))


def test_the_end_of_an_incident_is_looked_at_and_a_suspicion_of_nothing_has_none() -> None:
    found = Node(16, lambda second: LookAnswer(300_000, new=int(second < 4), still_open=1, serious=1))
    assert found.run(60, lambda node: node.core(3) if node.second < 3 else None) == [3, 2 + OVER_US // SECOND]
    nothing = Node(16)
    assert nothing.run(60, lambda node: node.core(3) if node.second < 3 else None) == [3]


def test_a_clock_that_is_set_back_gives_no_budget_and_a_day_gives_no_more_than_it_holds() -> None:
    budget = Alarm().schedule.budget
    budget.second(START)
    budget.spend(3 * MOST_US)
    assert not budget.allows
    budget.second(START - HOUR * SECOND)
    assert budget.left_us == -MOST_US
    budget.second(START - HOUR * SECOND + 1000 * SECOND)
    assert budget.left_us == pytest.approx(-MOST_US + RATIO * 1000 * SECOND)
    budget.second(START + 24 * HOUR * SECOND)
    assert budget.left_us == MOST_US
