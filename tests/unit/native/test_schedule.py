"""Records of overwrite rings -> who ran, who waited, which softirq was pending."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.helpers.schedule import FORMS, IDS, Ring, form

from zombiescope._native import ScheduleDecoder
from zombiescope.kernel import schedule

MS = 1_000_000
SINCE_NS = 1_000
NAMES = ("kind", "cpu", "from", "to", "tid", "waker", "slept", "text", "open")


def decoder(cpus: int = 2, least_ns: int = 20_000) -> ScheduleDecoder:
    made = ScheduleDecoder(cpus, least_ns)
    for kind in FORMS:
        made.register(IDS[kind], form(kind))
    return made


def rows(*rings: Ring, end_ns: int = 100 * MS, watched: tuple[bool, ...] = (True, True)) -> list[dict[str, Any]]:
    made = decoder()
    for cpu, ring in enumerate(rings):
        made.feed(cpu, ring.data, ring.head, SINCE_NS, end_ns, watched[cpu])
    return [dict(zip(NAMES, row, strict=True)) for row in zip(*made.rows(), strict=True)]


def only(found: list[dict[str, Any]], kind: str, tid: int | None = None) -> list[tuple[int, int]]:
    return [(row["from"], row["to"]) for row in found if row["kind"] == kind and tid in (None, row["tid"])]


def test_a_task_that_was_woken_while_another_ran_waited_until_that_one_left() -> None:
    ring = Ring()
    ring.switch(1 * MS, 7, 8, sleeps=True)
    ring.wakeup(5 * MS, 7, 0, by=8)
    ring.switch(30 * MS, 8, 7)
    found = rows(ring)
    (wait,) = [row for row in found if row["kind"] == "wait" and row["tid"] == 7]
    assert (wait["from"], wait["to"], wait["waker"], wait["slept"], wait["open"]) == (5 * MS, 30 * MS, 8, 1 * MS, 0)
    assert only(found, "run", 8) == [(1 * MS, 30 * MS)]


def test_a_task_that_was_preempted_waits_and_one_that_sleeps_does_not() -> None:
    ring = Ring()
    ring.switch(10 * MS, 7, 8)
    ring.switch(20 * MS, 8, 9, sleeps=True)
    ring.switch(40 * MS, 9, 7)
    found = rows(ring)
    assert only(found, "wait", 7) == [(10 * MS, 40 * MS)]
    assert only(found, "wait", 8) == []


def test_what_has_not_ended_goes_on_to_the_snapshot_and_says_so() -> None:
    ring = Ring()
    ring.switch(10 * MS, 7, 8)
    found = rows(ring, end_ns=50 * MS)
    still = {(row["kind"], row["tid"]): (row["from"], row["to"], row["open"]) for row in found if row["open"] & 2}
    assert still == {("run", 8): (10 * MS, 50 * MS, 2), ("wait", 7): (10 * MS, 50 * MS, 2)}


def test_what_began_before_the_ring_reaches_says_so() -> None:
    ring = Ring()
    ring.switch(10 * MS, 7, 8)
    (first,) = [row for row in rows(ring) if row["tid"] == 7 and row["kind"] == "run"]
    assert (first["from"], first["open"]) == (SINCE_NS, 1)


def test_a_wakeup_from_another_cpu_counts_where_it_goes_to() -> None:
    mine, other = Ring(), Ring()
    mine.switch(1 * MS, 7, 8, sleeps=True)
    other.wakeup(3 * MS, 7, 0, by=20)
    mine.switch(9 * MS, 8, 7)
    found = rows(mine, other, watched=(True, False))
    (wait,) = [row for row in found if row["kind"] == "wait" and row["tid"] == 7]
    assert (wait["cpu"], wait["from"], wait["to"], wait["waker"]) == (0, 3 * MS, 9 * MS, 20)
    assert {row["cpu"] for row in found} == {0}, "nothing of a core that is not watched"


def test_a_wakeup_from_before_the_ring_of_its_core_reaches_is_no_wait() -> None:
    """The task ran and slept again while no ring saw it: seen as a wait, it would last to the snapshot."""
    mine, other = Ring(), Ring()
    other.wakeup(3 * MS, 7, 0, by=20)
    other.wakeup(12 * MS, 9, 0, by=20)
    mine.switch(20 * MS, 8, 9)
    made = decoder()
    made.feed(0, mine.data, mine.head, 10 * MS, 100 * MS, True)
    made.feed(1, other.data, other.head, SINCE_NS, 100 * MS, False)
    found = [dict(zip(NAMES, row, strict=True)) for row in zip(*made.rows(), strict=True)]
    assert only(found, "wait", 7) == []
    assert only(found, "wait", 9) == [(12 * MS, 20 * MS)]


def test_who_was_interrupted_is_no_waker() -> None:
    ring = Ring()
    ring.switch(1 * MS, 7, 8, sleeps=True)
    ring.wakeup(3 * MS, 7, 0, by=8, interrupt=True)
    ring.switch(9 * MS, 8, 7)
    (wait,) = [row for row in rows(ring) if row["kind"] == "wait" and row["tid"] == 7]
    assert wait["waker"] == -1


def test_a_task_that_is_moved_while_it_waits_waits_on_both_cores() -> None:
    first, second = Ring(), Ring()
    first.switch(10 * MS, 7, 8)
    first.migrate(30 * MS, 7, 0, 1, by=8)
    second.switch(45 * MS, 9, 7)
    waits = [
        (row["cpu"], row["from"], row["to"]) for row in rows(first, second) if row["tid"] == 7 and row["kind"] == "wait"
    ]
    assert waits == [(0, 10 * MS, 30 * MS), (1, 30 * MS, 45 * MS)]


def test_a_softirq_waits_from_its_first_raise_and_knows_device_and_interrupt() -> None:
    ring = Ring()
    ring.switch(1 * MS, 7, 8)
    ring.irq(5 * MS, 24, b"eth0-Tx-Rx-5", tid=8)
    ring.softirq(schedule.RAISE, 5 * MS + 10, 3, tid=8)
    ring.irq_ends(5 * MS + 20, 24, tid=8)
    ring.softirq(schedule.RAISE, 6 * MS, 3, tid=8)
    ring.softirq(schedule.ENTRY, 60 * MS, 3, tid=8)
    ring.poll(61 * MS, b"eth0", tid=8)
    ring.softirq(schedule.EXIT, 62 * MS, 3, tid=8)
    ring.softirq(schedule.RAISE, 70 * MS, 3, tid=8)
    ring.softirq(schedule.ENTRY, 75 * MS, 3, tid=8)
    ring.poll(75 * MS + 5, b"eth1", tid=8)
    ring.softirq(schedule.EXIT, 76 * MS, 3, tid=8)
    waits = [(row["from"], row["to"], row["tid"], row["text"]) for row in rows(ring) if row["kind"] == "softirq wait"]
    assert waits == [(5 * MS + 10, 60 * MS, 3, "eth0-Tx-Rx-5"), (70 * MS, 75 * MS, 3, "eth1")]


def test_waits_that_explain_nothing_are_left_out_but_not_who_ended_a_sleep() -> None:
    ring = Ring()
    ring.switch(1 * MS, 7, 8)
    ring.switch(1 * MS + 5_000, 8, 7, sleeps=True)
    ring.switch(2 * MS, 7, 9, sleeps=True)
    ring.wakeup(20 * MS, 7, 0, by=9)
    ring.switch(20 * MS + 3_000, 9, 7)
    assert only(rows(ring), "wait", 7) == [(20 * MS, 20 * MS + 3_000)]


def test_a_ring_that_wrapped_says_how_far_it_reaches() -> None:
    ring = Ring(bytes_=1 << 10)
    for turn in range(100):
        ring.switch(turn * MS, 7 + turn % 2, 7 + (turn + 1) % 2)
    made = decoder()
    made.feed(0, ring.data, ring.head, 0, 100 * MS, True)
    found = rows(ring)
    ((from_ns, to_ns),) = made.reach().values()
    assert (from_ns, to_ns) == (91 * MS, 100 * MS), "nine records of 104 bytes are whole in 1,024"
    assert made.malformed == 0
    assert min(row["from"] for row in found) == 91 * MS


def test_the_newest_name_of_a_task_holds_and_its_process_is_that_of_its_records() -> None:
    ring = Ring()
    ring.names[7] = b"sh"
    ring.switch(1 * MS, 7, 8)
    ring.names[7] = b"train.py"
    ring.switch(2 * MS, 8, 7)
    made = decoder()
    made.feed(0, ring.data, ring.head, 0, 3 * MS, True)
    assert made.task(7) == (7, "train.py")
    assert made.task(8) == (8, "task8")
    assert made.task(99) == (None, None)


def test_a_missing_switch_makes_no_run() -> None:
    ring = Ring()
    ring.switch(1 * MS, 7, 8)
    ring.switch(9 * MS, 10, 11)
    found = rows(ring)
    assert only(found, "run", 8) == []
    assert only(found, "run", 10) == []
    assert only(found, "run", 11) == [(9 * MS, 100 * MS)]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_in_a_ring_is_survived(seed: int) -> None:
    chance = random.Random(seed)
    ring = Ring(bytes_=1 << 12)
    for turn in range(chance.randrange(60)):
        ring.switch(turn * MS, chance.randrange(9), chance.randrange(9), sleeps=chance.random() < 0.5)
        ring.irq(turn * MS + 1, 3, b"x" * chance.randrange(20), tid=1)
        ring.softirq(chance.choice((schedule.RAISE, schedule.ENTRY, schedule.EXIT)), turn * MS + 2, turn % 12, tid=1)
    data = bytearray(ring.data)
    for _ in range(chance.randrange(200)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    made = decoder()
    made.feed(0, bytes(data), chance.choice((ring.head, chance.getrandbits(64))), 0, 100 * MS, True)
    columns = made.rows()
    assert len({len(column) for column in columns}) == 1
    made.reach()


@pytest.mark.parametrize("size", [0, 3, 1000])
def test_memory_that_is_no_ring_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="power of two"):
        decoder().feed(0, bytes(size), 0, 0, 1, True)


def test_a_cpu_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="cpu"):
        decoder(cpus=2).feed(2, bytes(8), 0, 0, 1, True)
