"""The view of cores: ratios by elapsed time, runs across ticks, parts and holes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import SECOND, START_US, write_recording, write_segment

from zombiescope.query.cores import cores
from zombiescope.store import compact, schema
from zombiescope.store.reader import open_recording


def _tick(end_us: int, cpu: int = 0, interval_us: int = SECOND, **ms: int | None) -> dict[str, Any]:
    return {
        "time": end_us,
        "cpu": cpu,
        "interval_us": interval_us,
        **{f"{mode}_ms": value for mode, value in ms.items()},
    }


def _write(directory: Path, ticks: Sequence[dict[str, Any]], start_us: int = START_US) -> None:
    rows = [tuple(tick.get(name) for name in schema.CORES.names) for tick in ticks]
    write_segment(directory, {"cores": rows}, start_us=start_us)


def test_the_saturated_core_is_seen_and_the_aggregate_hides_it(tmp_path: Path) -> None:
    written = write_recording(tmp_path, cpus=8)
    assert written.incident
    with open_recording(tmp_path) as recording:
        view = cores(recording)
    assert view.interval_s == 1.0
    assert [core.cpu for core in view.cores] == list(range(8))
    bad = view.cores[written.incident.cpu]
    assert bad.longest_saturation_s == 6.0
    assert bad.busiest
    assert bad.busiest.busy == 1.0
    assert bad.busiest.at_us == written.incident.from_us
    assert all(core.longest_saturation_s == 0.0 for core in view.cores[:-1])
    assert view.aggregate.busy is not None
    assert view.aggregate.busy < 0.4


def test_the_view_is_the_same_from_parquet_and_over_part_borders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GIVEN segments and parts that end in the middle of the saturation
    written = write_recording(tmp_path, segment_s=11)
    assert written.incident
    with open_recording(tmp_path) as recording:
        before = cores(recording)
    assert before.cores[1].longest_saturation_s == 6.0
    monkeypatch.setattr(compact, "PART_US", 1)
    compact.compact(written.node_dir)
    with open_recording(tmp_path) as recording:
        assert cores(recording) == before
        inside = cores(recording, written.incident.from_us + SECOND, written.incident.to_us)
    assert inside.cores[1].longest_saturation_s == 5.0
    assert inside.cores[1].modes.system == 1.0


def test_time_is_divided_by_what_elapsed(tmp_path: Path) -> None:
    _write(tmp_path, [_tick(START_US + 2 * SECOND, interval_us=2 * SECOND, user=500, system=500, idle=0)])
    with open_recording(tmp_path) as recording:
        (core,) = cores(recording).cores
    assert (core.modes.user, core.modes.system, core.modes.idle) == (0.25, 0.25, 0.0)
    assert core.modes.busy == 0.5


def test_what_was_not_measured_is_none_and_what_overflows_is_clamped(tmp_path: Path) -> None:
    _write(tmp_path, [_tick(START_US + SECOND, system=1010, idle=-10)])
    with open_recording(tmp_path) as recording:
        (core,) = cores(recording).cores
    assert core.modes.system == 1.0
    assert core.modes.idle == 0.0
    assert core.modes.steal is None


def test_a_core_without_any_value_is_not_said_to_be_healthy(tmp_path: Path) -> None:
    _write(tmp_path, [_tick(START_US + SECOND)])
    with open_recording(tmp_path) as recording:
        view = cores(recording)
    (core,) = view.cores
    assert core.longest_saturation_s is None
    assert core.busiest is None
    assert view.aggregate.busy is None


def test_a_hole_ends_a_run(tmp_path: Path) -> None:
    ticks = [_tick(START_US + second * SECOND, system=1000) for second in (1, 2, 3, 14, 15)]
    _write(tmp_path, ticks)
    with open_recording(tmp_path) as recording:
        (core,) = cores(recording).cores
    assert core.longest_saturation_s == 3.0


def test_a_run_is_broken_by_one_quiet_tick(tmp_path: Path) -> None:
    busy = [1000, 1000, 900, 960, 990, 1000, 0]
    _write(tmp_path, [_tick(START_US + (i + 1) * SECOND, softirq=ms) for i, ms in enumerate(busy)])
    with open_recording(tmp_path) as recording:
        (core,) = cores(recording).cores
    assert core.longest_saturation_s == 3.0


def test_user_time_is_busy_but_not_saturation(tmp_path: Path) -> None:
    _write(tmp_path, [_tick(START_US + second * SECOND, user=1000, system=0) for second in (1, 2, 3, 4)])
    with open_recording(tmp_path) as recording:
        (core,) = cores(recording).cores
    assert core.longest_saturation_s == 0.0
    assert core.longest_busy_s == 4.0


def test_short_ticks_are_judged_by_the_half_second(tmp_path: Path) -> None:
    # GIVEN a core that is always busy, read every tenth of a second through timer ticks of 10 ms
    noise = [90, 110, 100, 90, 110] * 8
    ticks = [_tick(START_US + (i + 1) * 100_000, interval_us=100_000, system=ms) for i, ms in enumerate(noise)]
    _write(tmp_path, ticks)
    with open_recording(tmp_path) as recording:
        (core,) = cores(recording).cores
    assert core.longest_saturation_s == 4.0


def test_a_window_without_ticks(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5)
    with open_recording(tmp_path) as recording:
        view = cores(recording, START_US + 900 * SECOND)
    assert view.interval_s is None
    assert view.cores == ()
    assert view.aggregate.user is None
