"""The rollup writer: minutes, unit hours, restarts, a full disk, and its size."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import BOOT, SECOND, START_US

from zombiescope.query.history import history
from zombiescope.recorder import rollup as module
from zombiescope.recorder.rollup import OTHER, Rollup
from zombiescope.store.log import SegmentReader
from zombiescope.store.reader import open_recording
from zombiescope.store.retention import ROLLUP_MAX_BYTES

MINUTE_US = 60 * SECOND
HOUR_US = 60 * MINUTE_US
NOON_US = START_US // (24 * HOUR_US) * 24 * HOUR_US + 12 * HOUR_US


@pytest.fixture
def node_dir(tmp_path: Path) -> Path:
    path = tmp_path / "node=lab"
    (path / "log").mkdir(parents=True)
    (path / "node.json").write_text("{}")
    return path


def _rows(node_dir: Path, table: str) -> list[dict[str, Any]]:
    with open_recording(node_dir) as recording:
        rows: list[dict[str, Any]] = recording.table(table).to_pylist()
        assert recording.damage == []
    return [{**row, "time": int(row["time"].timestamp() * 1e6)} for row in rows]


def _run(rollup: Rollup, kernel_ms: list[int], start_us: int = NOON_US, cpu: int = 0, interval_us: int = SECOND) -> int:
    wall_us = start_us
    for milliseconds in kernel_ms:
        wall_us += interval_us
        rollup.core(wall_us, cpu, interval_us, milliseconds, milliseconds)
        rollup.flush(wall_us)
    return wall_us


def test_a_minute_is_written_when_it_is_over(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    _run(rollup, [100] * 59)
    assert _rows(node_dir, "minutes") == []
    _run(rollup, [100], NOON_US + 59 * SECOND)
    (minute,) = _rows(node_dir, "minutes")
    assert minute["time"] == NOON_US
    assert (minute["seconds"], minute["busy_ms"], minute["system_ms"], minute["cores"]) == (60, 6000, 6000, 1)
    assert (minute["cores_saturated_ms"], minute["longest_cpu"]) == (0, None)


def test_saturation_is_counted_per_core_and_runs_cross_minutes(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    for second in range(180):
        wall_us = NOON_US + (second + 1) * SECOND
        rollup.core(wall_us, 0, SECOND, 1000, 1000 if 40 <= second < 90 else 0)
        rollup.core(wall_us, 1, SECOND, 1000, 1000 if second in (3, 4, 100) else 940)
        rollup.flush(wall_us)
    rollup.close(NOON_US + 180 * SECOND)
    minutes = _rows(node_dir, "minutes")
    assert [minute["cores_saturated_ms"] for minute in minutes] == [22_000, 31_000, 0]
    assert [minute["longest_saturation_ms"] for minute in minutes] == [20_000, 50_000, 0]
    assert [minute["longest_cpu"] for minute in minutes] == [0, 0, None]
    assert minutes[0]["seconds"] == 60


def test_a_hole_ends_a_run(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    end_us = _run(rollup, [1000] * 10)
    rollup.close(_run(rollup, [1000] * 10, end_us + 5 * SECOND))
    (minute,) = _rows(node_dir, "minutes")
    assert (minute["longest_saturation_ms"], minute["cores_saturated_ms"], minute["seconds"]) == (
        10_000,
        20_000,
        20,
    )


def test_short_ticks_are_judged_by_the_half_second(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    rollup.close(_run(rollup, [90, 110, 100, 90, 110] * 4, interval_us=SECOND // 10))
    (minute,) = _rows(node_dir, "minutes")
    assert minute["longest_saturation_ms"] == 2000


def test_events_census_and_losses(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    _run(rollup, [0])
    rollup.census(70, 20)
    rollup.census(71, 21)
    rollup.event("unit_restart", "warning")
    rollup.event("nic_reset", "critical")
    rollup.lost(4)
    rollup.close(NOON_US + 2 * SECOND)
    (minute,) = _rows(node_dir, "minutes")
    found = [minute[name] for name in ("memory_cgroups", "dying", "restarts", "critical_events", "nic_events", "lost")]
    assert found == [71, 21, 1, 1, 1, 4]


def test_what_was_not_measured_is_null(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    rollup.core(NOON_US + SECOND, 0, SECOND, None, None)
    rollup.close(NOON_US + SECOND)
    (minute,) = _rows(node_dir, "minutes")
    assert (minute["busy_ms"], minute["system_ms"], minute["memory_cgroups"], minute["dying"]) == (None,) * 4


def test_units_are_cut_to_those_with_most_cpu(node_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TOP_UNITS", 2)
    rollup = Rollup(node_dir, BOOT)
    for minute in range(10):
        for unit, cpu_ms in (("a", 10), ("b", 300 if minute == 3 else 200), ("c", 100), ("d", 1)):
            rollup.unit_cpu(unit, cpu_ms, cpu_ms // 10)
        _run(rollup, [1], NOON_US + (minute + 1) * MINUTE_US - SECOND)
    rollup.close(NOON_US + 10 * MINUTE_US)
    rows = {row["unit"]: row for row in _rows(node_dir, "unit_hours")}
    assert {unit: row["cpu_ms"] for unit, row in rows.items()} == {"b": 2100, "c": 1000, OTHER: 110}
    assert rows["b"]["busiest_minute_ms"] == 300
    assert rows[OTHER]["busiest_minute_ms"] is None
    assert {row["time"] for row in rows.values()} == {NOON_US}


def test_names_that_are_new_each_time_fill_no_memory_and_lose_no_time(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    for number in range(20_000):
        rollup.unit_cpu(f"job-{number}", 1, 1)
        rollup.unit_cpu("steady", 2, 0)
        assert len(rollup._units) <= module.MAX_UNITS
    rollup.flush(NOON_US)
    rollup.close(NOON_US + MINUTE_US)
    rows = {row["unit"]: row["cpu_ms"] for row in _rows(node_dir, "unit_hours")}
    assert rows["steady"] == 40_000
    assert sum(rows.values()) == 60_000
    assert len(rows) == module.TOP_UNITS + 1


def test_a_kill_costs_ten_minutes_of_units_at_most(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    for second in range(0, 3600, 10):
        rollup.unit_cpu("a", 7, 1)
        rollup.flush(NOON_US + second * SECOND)
    assert sum(row["cpu_ms"] for row in _rows(node_dir, "unit_hours")) >= 7 * 300  # not closed


def test_a_restart_inside_a_minute_adds_up(node_dir: Path) -> None:
    first = Rollup(node_dir, BOOT)
    end_us = _run(first, [1000] * 20)
    first.close(end_us)
    second = Rollup(node_dir, BOOT)
    second.close(_run(second, [0] * 30, end_us + 5 * SECOND))
    assert len(_rows(node_dir, "minutes")) == 2
    assert len(list((node_dir / "rollup").iterdir())) == 2
    with open_recording(node_dir) as recording:
        (point,) = history(recording)
    assert (point.recorded_s, point.longest_saturation_s, point.cores_saturated_s) == (50, 20.0, 20.0)


def test_each_day_has_a_file(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    for hour in range(49):
        _run(rollup, [1], NOON_US + hour * HOUR_US)
    rollup.close(NOON_US + 49 * HOUR_US)
    assert len(list((node_dir / "rollup").iterdir())) == 3
    assert len(_rows(node_dir, "minutes")) == 49


def test_the_clock_set_back_loses_nothing(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT)
    _run(rollup, [1] * 90)
    rollup.close(_run(rollup, [1] * 30, NOON_US - HOUR_US))
    assert sum(minute["seconds"] for minute in _rows(node_dir, "minutes")) == 120


def test_a_full_disk_is_waited_out(node_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN a disk that fills up in the middle of a frame
    rollup = Rollup(node_dir, BOOT)
    end_us = _run(rollup, [1] * 60)
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:5]))
        # WHEN minutes end meanwhile
        end_us = _run(rollup, [1] * 120, end_us)
        assert not rollup.flush(end_us)
        assert len(_rows(node_dir, "minutes")) == 1
    # THEN they are written when there is room
    rollup.close(_run(rollup, [1] * 60, end_us))
    minutes = _rows(node_dir, "minutes")
    assert [minute["seconds"] for minute in minutes] == [60, 60, 60, 60]


def test_thirty_days_of_a_large_node_fit(node_dir: Path) -> None:
    # GIVEN a day of 192 cores and 200 units with long names and numbers that never repeat
    rollup = Rollup(node_dir, BOOT)
    seed = 1
    for minute in range(24 * 60):
        wall_us = NOON_US + (minute + 1) * MINUTE_US
        for cpu in range(192):
            seed = seed * 1103515245 + 12345 & 0x7FFFFFFF
            rollup.core(wall_us, cpu, MINUTE_US, seed % 60_000, seed % 50_000)
        for unit in range(200):
            seed = seed * 1103515245 + 12345 & 0x7FFFFFFF
            name = f"kubepods-burstable-pod{unit * 7919:032x}.slice/cri-containerd-{unit * 104729:032x}.scope"
            rollup.unit_cpu(name, seed % 60_000, seed % 30_000)
        rollup.census(seed % 70_000, seed % 68_000)
        rollup.flush(wall_us)
    rollup.close(NOON_US + 24 * HOUR_US)
    size = sum(path.stat().st_size for path in (node_dir / "rollup").iterdir())
    # THEN thirty of them fit into the budget, with room for pods that come and go
    assert 30 * size < ROLLUP_MAX_BYTES / 2
    assert len(_rows(node_dir, "unit_hours")) == 101 * 144


def test_the_writer_needs_nothing_heavy() -> None:
    program = "import sys, zombiescope.recorder.rollup; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_file_says_the_labels_that_the_node_had_then(node_dir: Path) -> None:
    rollup = Rollup(node_dir, BOOT, about={"labels": {"image": "v14"}, "kernel": "6.1"})
    _run(rollup, [100] * 60)
    (path,) = (node_dir / "rollup").iterdir()
    with path.open("rb") as file:
        header = SegmentReader(file).header
    assert (header["labels"], header["kernel"], header["boot"]) == ({"image": "v14"}, "6.1", BOOT)
