"""The last minutes in memory: what they say of a node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.query.recent import CoreTick, NodeTick, Recent, core_tick, heat, mean
from zombiescope.store import schema
from zombiescope.store.log import SegmentReader, decode_frame, encode_rows


def fed(written: Written, until_us: int | None = None) -> Recent:
    recent = Recent()
    for path in written.segments:
        with path.open("rb") as file:
            for frame in SegmentReader(file).frames():
                if until_us is None or frame.wall_us <= until_us:
                    recent.update(frame)
    return recent


def with_rows(recent: Recent, table: str, wall_us: int, *rows: Mapping[str, object]) -> None:
    """One more frame, with these rows of one table; columns not named were not measured."""
    spec = schema.BY_NAME[table]
    block = encode_rows(spec, [tuple(row.get(name) for name in spec.names) for row in rows], wall_us)
    recent.update(decode_frame(wall_us.to_bytes(8, "little") + bytes(8) + block))


def core(wall_us: int, cpu: int, interval_us: int = SECOND, **modes: int) -> dict[str, int]:
    return {"time": wall_us, "interval_us": interval_us, "cpu": cpu, "user_ms": 0, "system_ms": 0} | {
        f"{mode}_ms": ms for mode, ms in modes.items()
    }


def test_the_hottest_core_is_the_one_lost_to_the_kernel(tmp_path: Path) -> None:
    # GIVEN a node whose last core hangs in the kernel for six seconds
    written = write_recording(tmp_path, cpus=4, seconds=60)
    assert written.incident is not None
    # WHEN four of them have passed
    hottest = fed(written, written.incident.from_us + 4 * SECOND).hottest()
    # THEN it is that core, saturated for four seconds
    assert hottest is not None
    assert (hottest.cpu, hottest.saturated_s, hottest.tick.mode()) == (3, 4.0, "system")
    # WHEN it is over, THEN nobody is saturated
    after = fed(written).hottest()
    assert after is not None
    assert after.saturated_s == 0


def test_a_hole_in_time_ends_a_saturation_and_shows_as_nothing_measured() -> None:
    recent = Recent()
    with_rows(recent, "cores", START_US, core(START_US, 0, system=1000))
    with_rows(recent, "cores", START_US + 5 * SECOND, core(START_US + 5 * SECOND, 0, system=1000))
    hottest = recent.hottest()
    assert hottest is not None
    assert hottest.saturated_s == 1
    assert [slot is None for slot in recent.slots(20)] == [False, True, True, True, True, False]
    assert [slot is None for slot in recent.slots(3)] == [True, True, False]


def test_a_core_that_was_not_measured_is_absent_and_not_idle() -> None:
    recent = Recent()
    unmeasured = {"time": START_US, "interval_us": SECOND, "cpu": 1}
    with_rows(recent, "cores", START_US, core(START_US, 0, user=500), unmeasured)
    assert recent.ticks[-1].cores.keys() == {0}
    average = recent.ticks[-1].average()
    assert average is not None
    assert average.user == 0.5


def test_ticks_shorter_than_a_second_are_shown_as_seconds() -> None:
    # GIVEN ticks of 100 ms, every second one busy
    recent = Recent()
    for number in range(1, 31):
        at_us = START_US + number * SECOND // 10
        with_rows(recent, "cores", at_us, core(at_us, 0, SECOND // 10, user=100 * (number % 2)))
    # THEN three seconds are shown, each half busy
    slots = recent.slots(10)
    assert [round(slot.cores[0].user, 3) for slot in slots if slot] == [0.5, 0.5, 0.5]


def test_short_ticks_are_judged_together_because_one_alone_reads_low() -> None:
    # GIVEN a core at 100% system that tick accounting shows as 0.90 and 1.10 by turns
    recent = Recent()
    for number in range(1, 21):
        at_us = START_US + number * SECOND // 10
        with_rows(recent, "cores", at_us, core(at_us, 0, SECOND // 10, system=90 + 20 * (number % 2)))
    # THEN it was saturated all the time
    hottest = recent.hottest()
    assert hottest is not None
    assert hottest.saturated_s == 2


def test_ratios_are_of_elapsed_time_and_never_above_one() -> None:
    # 30% of a tick lost with interrupts off: busy is what was seen of the whole second
    assert core_tick([500, 0, 200, 0, 0, 0, 0], SECOND) == CoreTick(0.5, 0.2, 0, 0, 0, 0)
    over = core_tick([700, 700, 0, 0, 0, 0, 0], SECOND)
    assert over is not None
    assert over.busy == 1.0
    assert core_tick([None, None, None, None, None, None, None], SECOND) is None
    assert mean([]) is None


def test_six_saturated_seconds_are_hotter_than_a_minute_at_a_third() -> None:
    quiet, third, full = (CoreTick(0, ratio, 0, 0, 0, 0) for ratio in (0.0, 0.3, 1.0))
    slots = [NodeTick(n * SECOND, SECOND, {0: third, 1: full if n < 6 else quiet}) for n in range(60)]
    hot = heat([*slots, None])
    assert hot[1] > hot[0]


def test_zombies_their_growth_and_their_maker(tmp_path: Path) -> None:
    recent = fed(write_recording(tmp_path, seconds=120, dying=5000, leak_per_hour=3600))
    census, leak = recent.census(), recent.top_leak()
    assert census is not None
    assert leak is not None
    assert (census.total, census.dying) == (5000 + 120 + 240, 5000 + 120)
    assert (leak.path, leak.unit) == ("/ecs/*", "ecs.service")
    assert recent.dying_per_hour() == pytest.approx(3600, rel=0.02)


def test_growth_is_unknown_before_a_minute_has_passed(tmp_path: Path) -> None:
    assert fed(write_recording(tmp_path, seconds=30)).dying_per_hour() is None


def test_the_recorders_cost_is_per_elapsed_time() -> None:
    recent = Recent()
    for second in range(11):
        at_us = START_US + second * SECOND
        row = {"time": at_us, "cpu_us": 4000, "helper_cpu_us": 1000, "log_bytes": 1000, "lost": 1}
        # The recorder looks at its memory now and then only.
        with_rows(recent, "cost", at_us, row | ({"rss_bytes": 40_000_000} if second == 5 else {}))
    cost = recent.cost()
    assert cost is not None
    assert cost.cpu_ratio == pytest.approx(0.005)
    assert cost.bytes_per_hour == pytest.approx(3_600_000)
    assert (cost.rss_bytes, cost.lost) == (40_000_000, 11)


def test_only_what_is_asked_for_is_kept(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=60)
    recent = Recent(keep_s=10)
    for path in written.segments:
        with path.open("rb") as file:
            for frame in SegmentReader(file).frames():
                recent.update(frame)
    assert len(recent.ticks) == 11
    assert recent.cpus() == [0, 1]


def test_nothing_seen_is_nothing_known() -> None:
    recent = Recent()
    assert (recent.hottest(), recent.census(), recent.top_leak(), recent.cost()) == (None,) * 4
    assert recent.slots(10) == []
