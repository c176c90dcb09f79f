"""Which cores are watched, within which memory and budget, and when a snapshot is taken."""

from __future__ import annotations

import resource
from typing import Any
from unittest import mock

import pytest

from zombiescope.kernel import privileges
from zombiescope.recorder import schedule as module
from zombiescope.recorder.schedule import MOST_CORES, MOST_RECORDS, RECORD_BYTES, TOTAL_BYTES, Schedule, pinnable_bytes
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tick import CoreTime, Tick
from zombiescope.store.batch import Batch

SECOND = 1_000_000


class Ring:
    """A ring that writes so many records a second."""

    watched = True

    def __init__(self, records_per_s: int) -> None:
        self.rate, self.written_bytes = records_per_s, 0

    def second(self) -> None:
        self.written_bytes += self.rate * RECORD_BYTES


def made(**more: Any) -> Schedule:
    return Schedule(Batch(), Sources(), mock.Mock(), lambda ns: ns // 1000, root="/nowhere", **more)


def wanted(one: Schedule, cores: int, now_us: int = 100 * SECOND) -> tuple[int, ...]:
    one._online = tuple(range(cores))
    return one._wanted(now_us)


def test_a_small_machine_is_watched_whole_but_for_what_is_left_out() -> None:
    assert wanted(made(left_out={1}), 4) == (0, 2, 3)


def test_a_large_machine_is_watched_where_cards_and_gpus_are_served() -> None:
    one = made()
    one.cards = lambda: range(40, 60)
    with mock.patch.object(one, "_gpu_cores", return_value=range(100, 120)):
        found = wanted(one, 192)
    assert len(found) == MOST_CORES
    assert set(range(40, 48)) | set(range(100, 108)) == set(found)


def test_a_core_that_was_full_lately_is_watched_on_a_large_machine() -> None:
    one = made()
    one.tick(Tick(0, 100 * SECOND, SECOND, online=tuple(range(192)), times=[CoreTime(39, 1000, 1000)]))
    assert wanted(one, 192) == (39,)
    assert wanted(one, 192, 200 * SECOND) == ()


def judged(records_per_s: int, seconds: int) -> Schedule:
    one, ring = made(), Ring(records_per_s)
    one._rings = {0: ring}  # type: ignore[dict-item]  # a stand-in
    for second in range(seconds):
        ring.second()
        one._judge(Tick(second * 1_000_000_000, second * SECOND, SECOND))
    return one


def test_a_core_within_its_budget_stays_and_one_over_it_is_let_go_and_named() -> None:
    assert not judged(MOST_RECORDS, 300)._let_go
    over = judged(10 * MOST_RECORDS, 20)
    assert 0 in over._let_go
    assert over._sources.why(module.BUSY_CORES) is not None


def test_a_burst_is_kept() -> None:
    assert not judged(5 * MOST_RECORDS, 10)._let_go


@pytest.mark.parametrize(
    ("limit", "held", "expected"),
    [
        (8 << 20, frozenset(), 8 << 20),
        (8 << 20, frozenset({"CAP_IPC_LOCK"}), TOTAL_BYTES),
        (resource.RLIM_INFINITY, frozenset(), TOTAL_BYTES),
        (1 << 40, frozenset(), TOTAL_BYTES),
    ],
)
def test_rings_take_no_more_than_may_be_pinned(limit: int, held: frozenset[str], expected: int) -> None:
    may = mock.Mock(effective=held)
    with (
        mock.patch.object(resource, "getrlimit", return_value=(limit, limit)),
        mock.patch.object(privileges, "read", return_value=may),
    ):
        assert pinnable_bytes() == expected


def test_a_mark_asks_for_a_snapshot_once_a_minute() -> None:
    one = made()
    one._rings = {0: mock.Mock()}
    with mock.patch.object(one, "snapshot") as taken:
        for second in range(100, 161, 10):
            one.marked(None)
            one.second(second * SECOND)
        assert [call.args for call in taken.call_args_list] == [("mark",), ("mark",)]


def test_a_suspicion_asks_for_one_again_while_it_lasts() -> None:
    one = made()
    one._rings, one.suspects = {0: mock.Mock()}, lambda: True
    with mock.patch.object(one, "snapshot") as taken:
        for second in range(100, 111):
            one.second(second * SECOND)
        assert [call.args for call in taken.call_args_list] == [("alarm",)] * 3
