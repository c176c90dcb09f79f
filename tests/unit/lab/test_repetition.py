"""Recorded seconds laid end to end: clocks and counters go on, who lasted is the same, who came and went is new."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import HZ, SECOND, START_US, Node, write_segment

from zombiescope.lab import score_hours
from zombiescope.lab.repetition import Repetition
from zombiescope.store import columns
from zombiescope.store.reader import Recording, open_recording

SECONDS = 8
SHORT, LONG = "a" * 64, "b" * 64


def load(place: Path) -> None:
    """A trainer that is there all the time, a child in the third second, a container that ends and one that stays."""
    node = Node()
    trainer = node.task(700, "trainer", ppid=1, start_ticks=5000, cgroup="/job")
    child = node.task(720, "cc1", ppid=700, start_ticks=9000, cgroup=f"/docker/{SHORT}", container=SHORT)
    stack = node.stack([node.frame("do_syscall_64")])
    faults = node.series("vmstat", "pgfault")
    for second in range(SECONDS):
        end_us = START_US + (second + 1) * SECOND
        node.sample(end_us - SECOND // HZ, 0, trainer, stack)
        if second == 2:
            node.sample(end_us - 2 * SECOND // HZ, 0, child, stack)
        gap_us = 1_400_000 if second in (1, 5) else 20_000
        node.core(end_us, 0, system=10, user=980, samples=99, idle_samples=0, expected_samples=99, max_gap_us=gap_us)
        node.count(end_us, faults, 100)
        node.census(end_us, 50, 10, created=1000 + second, removed=1000 + second)
    node.add(
        "containers", time=START_US + 3 * SECOND, id=SHORT, started=START_US + 2 * SECOND, exited=START_US + 3 * SECOND
    )
    node.add("containers", time=START_US + 3 * SECOND, id=LONG, started=START_US - 90 * SECOND)
    node.happen(START_US + SECOND, "started", "recorder", "info", "the recorder began")
    node.happen(START_US + 5 * SECOND, "link_down", "kmsg", "info", "eth0: link down")
    write_segment(place, node.tables)


@pytest.fixture
def repeated(tmp_path: Path) -> Recording:
    """Three turns."""
    load(tmp_path / "once")
    with open_recording(tmp_path / "once") as once:
        turn = Repetition(once)
        ticks = list(turn.write(tmp_path / "node=hour", 3 * turn.seconds - 1))
    assert ticks == sorted(ticks)
    return open_recording(tmp_path / "node=hour")


def rows(recording: Recording, table: str) -> list[dict[str, object]]:
    return columns.records(recording.table(table))


def test_time_goes_on_without_a_gap_and_rates_stay(repeated: Recording) -> None:
    with repeated as hour:
        assert len({row["time"] for row in rows(hour, "cores")}) == 3 * SECONDS
        assert not hour.gaps()
        assert [row["value"] for row in rows(hour, "counters")] == [100] * 3 * SECONDS
        assert not hour.damage


def test_what_is_counted_from_the_recorders_start_never_falls(repeated: Recording) -> None:
    with repeated as hour:
        created = [int(str(row["created"])) for row in rows(hour, "census")]
    assert created == sorted(created)
    assert created[-1] - created[0] == 3 * (SECONDS - 1)


def test_who_was_there_all_the_time_is_the_same_and_the_others_are_new(repeated: Recording) -> None:
    with repeated as hour:
        tasks = rows(hour, "tasks")
    trainers = {(row["pid"], row["start_ticks"]) for row in tasks if row["comm"] == "trainer"}
    children = {(row["pid"], row["start_ticks"]) for row in tasks if row["comm"] == "cc1"}
    assert trainers == {(700, 5000)}
    assert len({pid for pid, _ in children}) == 3
    assert len({ticks for _, ticks in children}) == 3
    assert {row["ppid"] for row in tasks if row["comm"] == "cc1"} == {700}


def test_a_container_that_ended_is_another_in_the_next_turn_and_in_its_cgroup(repeated: Recording) -> None:
    with repeated as hour:
        known = rows(hour, "containers")
        tasks = [row for row in rows(hour, "tasks") if row["comm"] == "cc1"]
    assert len({row["id"] for row in known if row["exited"]}) == 3
    assert {(row["id"], row["started"]) for row in known if not row["exited"]} == {(LONG, START_US - 90 * SECOND)}
    assert all(row["cgroup"] == f"/docker/{row['container']}" for row in tasks)
    assert len({row["container"] for row in tasks}) == 3


def test_a_gap_that_began_before_the_turn_is_not_known_in_the_next_one(repeated: Recording) -> None:
    with repeated as hour:
        gaps = [row["max_gap_us"] for row in rows(hour, "cores")]
    once = [20_000, 1_400_000, 20_000, 20_000, 20_000, 1_400_000, 20_000, 20_000]
    assert gaps[:SECONDS] == once
    assert gaps[SECONDS : 2 * SECONDS] == [None, None, *once[2:]]


def test_events_happen_again_but_those_of_the_recorder(repeated: Recording) -> None:
    with repeated as hour:
        kinds = [row["kind"] for row in rows(hour, "events")]
    assert (kinds.count("link_down"), kinds.count("started")) == (3, 1)


def test_the_page_says_that_no_hour_was_recorded_and_what_was_said() -> None:
    alarm = {"severity": "warning", "summary": "a | storm", "pattern": "fork-storm"}
    one = {"scenario": "healthy-pods", "cores": 16, "recorded_cores": 2, "recorded_s": 60, "seconds": 3600, "looks": 60,
           "alarms": [alarm, alarm]}  # fmt: skip
    page = score_hours.into("# x\n\n## The scenarios\n\nrest\n", [one])
    assert "2 warnings in 1 simulated hours" in page
    assert "60 s on 2 cores, 60 times" in page
    assert "healthy-pods on 16 cores: warning: a / storm (2 times)" in page
    again = score_hours.into(page, [{**one, "alarms": []}])
    assert again.count(score_hours.TITLE) == 1
    assert "storm" not in again
    assert again.endswith("rest\n")
