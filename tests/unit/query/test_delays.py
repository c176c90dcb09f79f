"""Who delayed whom, from rows of the table `schedule`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.schedule import ran, softirq_waited, waited, watched

from zombiescope.query.delays import Delays, delays, long_waits
from zombiescope.store.reader import open_recording

MS = 1_000
AT = START_US + SECOND


def at(milliseconds: float) -> int:
    return AT + round(milliseconds * MS)


def found_in(node: Node, place: Path, *, from_ms: float = -1000, to_ms: float = 8000, least_s: float = 0.001) -> Delays:
    write_segment(place, node.take())
    with open_recording(place) as recording:
        return delays(recording, at(from_ms), at(to_ms), least_s=least_s)


def told(found: Delays) -> list[tuple[str, str | None, float, int]]:
    return [(one.victim.name, one.by.comm if one.by else None, one.seconds, one.waits) for one in found.delays]


@pytest.fixture
def node() -> Node:
    made = Node()
    made.task(1893, "kubelet", unit="kubelet.service")
    made.task(4711, "train.py")
    made.task(20, "loader")
    watched(made, 0, at(0), at(7000))
    return made


def test_who_ran_while_a_task_could_have_run_delayed_it(node: Node, tmp_path: Path) -> None:
    kubelet, train = node.task(1893, "kubelet", unit="kubelet.service"), node.task(4711, "train.py")
    ran(node, 0, kubelet, at(0), at(900))
    ran(node, 0, train, at(900), at(1000))
    waited(node, 0, train, at(100), at(900))
    found = found_in(node, tmp_path)
    (one,) = found.delays
    assert (one.victim.pid, one.by and one.by.pid, one.by and one.by.unit) == (4711, 1893, "kubelet.service")
    assert (one.cpu, one.from_us, one.to_us, one.seconds, one.waits) == (0, at(100), at(900), 0.8, 1)
    assert (found.reach_s, found.watched_cpus) == (7.0, [0])


def test_two_hogs_share_a_wait_by_how_long_each_of_them_ran(node: Node, tmp_path: Path) -> None:
    kubelet, train, loader = node.task(1893, "kubelet"), node.task(4711, "train.py"), node.task(20, "loader")
    ran(node, 0, kubelet, at(0), at(600))
    ran(node, 0, loader, at(600), at(900))
    waited(node, 0, train, at(100), at(900))
    assert told(found_in(node, tmp_path)) == [("train.py", "kubelet", 0.5, 1), ("train.py", "loader", 0.3, 1)]


def test_a_decoy_that_ran_at_other_times_or_on_another_core_delayed_nobody(node: Node, tmp_path: Path) -> None:
    kubelet, train, decoy = node.task(1893, "kubelet"), node.task(4711, "train.py"), node.task(66, "decoy")
    for turn in range(10):
        begin = turn * 100
        ran(node, 0, kubelet, at(begin), at(begin + 40))
        waited(node, 0, train, at(begin), at(begin + 40))
        ran(node, 0, train, at(begin + 40), at(begin + 60))
        ran(node, 0, decoy, at(begin + 60), at(begin + 100))
        ran(node, 1, decoy, at(begin), at(begin + 40))
    found = found_in(node, tmp_path)
    assert told(found) == [("train.py", "kubelet", 0.4, 10)]


def test_a_softirq_is_a_victim_with_its_device(node: Node, tmp_path: Path) -> None:
    ran(node, 0, node.task(1893, "kubelet"), at(398), at(6998))
    softirq_waited(node, 0, 3, at(402), at(7001), "eth0-Tx-Rx-5")
    (one,) = found_in(node, tmp_path).delays
    assert (one.victim.softirq, one.victim.queue, one.victim.pid) == ("net_rx", "eth0-Tx-Rx-5", None)
    assert (one.by and one.by.comm, one.seconds) == ("kubelet", 6.596)


def test_a_delay_goes_on_through_the_one_who_woke_the_victim(node: Node, tmp_path: Path) -> None:
    kubelet, train, loader = node.task(1893, "kubelet"), node.task(4711, "train.py"), node.task(20, "loader")
    ran(node, 0, kubelet, at(0), at(500))
    waited(node, 0, loader, at(100), at(500))
    ran(node, 0, loader, at(500), at(510))
    waited(node, 1, train, at(510), at(510.1), waker=loader, slept=at(50))
    direct, through = found_in(node, tmp_path).delays
    assert (direct.victim.pid, direct.by and direct.by.pid, direct.through) == (20, 1893, [])
    assert (through.victim.pid, through.by and through.by.pid) == (4711, 1893)
    assert [one.pid for one in through.through] == [20]
    assert through.seconds == 0.4


def test_two_tasks_that_wake_each_other_end(node: Node, tmp_path: Path) -> None:
    one, two = node.task(1, "ping"), node.task(2, "pong")
    hog = node.task(3, "hog")
    ran(node, 0, hog, at(0), at(1000))
    for turn in range(10):
        waited(node, 0, one, at(turn * 20), at(turn * 20 + 10), waker=two, slept=at(0))
        waited(node, 0, two, at(turn * 20 + 10), at(turn * 20 + 20), waker=one, slept=at(0))
    assert found_in(node, tmp_path).delays[0].by is not None


def test_what_two_snapshots_hold_counts_once(node: Node, tmp_path: Path) -> None:
    kubelet, train = node.task(1893, "kubelet"), node.task(4711, "train.py")
    ran(node, 0, kubelet, at(0), at(500), open_=2)
    waited(node, 0, train, at(100), at(500), open=2)
    ran(node, 0, kubelet, at(0), at(900))
    waited(node, 0, train, at(100), at(900))
    (one,) = found_in(node, tmp_path).delays
    assert (one.seconds, one.waits, one.goes_on) == (0.8, 1, False)


def test_a_run_that_a_later_snapshot_cut_is_not_counted_twice(node: Node, tmp_path: Path) -> None:
    kubelet, train = node.task(1893, "kubelet"), node.task(4711, "train.py")
    ran(node, 0, kubelet, at(0), at(500), open_=2)
    ran(node, 0, kubelet, at(400), at(900), open_=1)
    waited(node, 0, train, at(100), at(900))
    assert told(found_in(node, tmp_path)) == [("train.py", "kubelet", 0.8, 1)]


def test_a_wait_counts_as_far_as_it_lies_in_the_window(node: Node, tmp_path: Path) -> None:
    kubelet, train = node.task(1893, "kubelet"), node.task(4711, "train.py")
    ran(node, 0, kubelet, at(0), at(900))
    waited(node, 0, train, at(100), at(900))
    assert told(found_in(node, tmp_path, from_ms=200, to_ms=300)) == [("train.py", "kubelet", 0.1, 1)]


def test_what_ran_is_not_known_where_the_core_seemed_idle(node: Node, tmp_path: Path) -> None:
    softirq_waited(node, 0, 3, at(100), at(400), "eth0")
    (one,) = found_in(node, tmp_path).delays
    assert one.by is None
    assert one.seconds == 0.3


def test_no_snapshot_is_not_no_delay(tmp_path: Path) -> None:
    made = Node()
    made.add("cores", time=AT, interval_us=SECOND, cpu=0)
    found = found_in(made, tmp_path)
    assert (found.delays, found.reach_s, found.watched_cpus) == ([], None, [])


def test_the_longest_waits_are_drawn_one_by_one_with_who_ran_longest(node: Node, tmp_path: Path) -> None:
    kubelet, train, loader = node.task(1893, "kubelet"), node.task(4711, "train.py"), node.task(20, "loader")
    ran(node, 0, kubelet, at(0), at(600))
    ran(node, 0, loader, at(600), at(900))
    waited(node, 0, train, at(100), at(900))
    waited(node, 0, train, at(950), at(960))
    write_segment(tmp_path, node.take())
    with open_recording(tmp_path) as recording:
        waits, known, too_many = long_waits(recording, at(-1000), at(8000), 1, 1000)
        assert long_waits(recording, at(-1000), at(8000), 1, 3) == ([], [], True)
    (one,) = waits
    assert (one.victim.pid, one.by and one.by.pid, one.from_us, one.to_us) == (4711, 1893, at(100), at(900))
    assert [(span.cpu, span.from_us, span.to_us) for span in known] == [(0, at(0), at(7000))]
    assert not too_many
