"""History from rollups."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.recordings import BOOT, SECOND, START_US, write_recording, write_rollups

from zombiescope.query.history import history
from zombiescope.store import schema
from zombiescope.store.log import SegmentEncoder, encode_rows
from zombiescope.store.reader import Recording, open_recording

MINUTE_US = 60 * SECOND
HOUR_US = 60 * MINUTE_US
NOON_US = START_US // (24 * HOUR_US) * 24 * HOUR_US + 12 * HOUR_US


def _write(directory: Path, **tables: list[dict[str, Any]]) -> Recording:
    folder = directory / "node=lab" / "rollup"
    folder.mkdir(parents=True, exist_ok=True)
    (directory / "node=lab" / "log").mkdir(exist_ok=True)
    (directory / "node=lab" / "node.json").write_text("{}")
    encoder = SegmentEncoder({})
    blocks = []
    for name, rows in tables.items():
        table = schema.BY_NAME[name]
        blocks.append(encode_rows(table, [tuple(row.get(key) for key in table.names) for row in rows], NOON_US))
    (folder / f"{NOON_US:016d}.seg").write_bytes(encoder.preamble + encoder.frame(NOON_US, 0, blocks))
    return open_recording(directory)


def _minute(offset: int, boot: str = BOOT, **values: int) -> dict[str, Any]:
    return {"time": NOON_US + offset * MINUTE_US, "boot": boot, "seconds": 60, "cores": 2, **values}


def test_a_month_makes_at_most_a_thousand_points(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    write_rollups(written.node_dir, START_US, days=30)
    with open_recording(tmp_path) as recording:
        points = history(recording)
        day = history(recording, START_US - 24 * HOUR_US)
    assert 500 < len(points) <= 1000
    assert sum(point.cores_saturated_s for point in points) == pytest.approx(30 * 4)
    assert points[-1].dying == 100 * 29 + 95
    assert points[0].busy_ratio == pytest.approx(0.15)
    assert points[0].longest_cpu is None
    assert all(later.at_us > earlier.at_us for earlier, later in pairwise(points))
    assert 250 < len(day) <= 300


def test_minutes_add_up_and_the_longest_keeps_its_core(tmp_path: Path) -> None:
    minutes = [
        _minute(
            0,
            cores_saturated_ms=3000,
            longest_saturation_ms=2000,
            longest_cpu=1,
            dying=5,
            restarts=2,
            busy_ms=60_000,
        ),
        _minute(
            1,
            cores_saturated_ms=9000,
            longest_saturation_ms=7000,
            longest_cpu=7,
            dying=6,
            nic_events=1,
            busy_ms=0,
        ),
        _minute(2, critical_events=1, lost=3),
    ]
    with _write(tmp_path, minutes=minutes) as recording:
        (point,) = history(recording, step_us=HOUR_US)
    assert (point.cores_saturated_s, point.longest_saturation_s, point.longest_cpu) == (12.0, 7.0, 7)
    assert (point.dying, point.restarts, point.nic_events, point.critical_events, point.lost) == (
        6,
        2,
        1,
        1,
        3,
    )
    assert point.recorded_s == 180
    assert point.busy_ratio == 0.25  # of the two minutes in which it was measured
    assert point.memory_cgroups is None
    assert point.system_ratio is None


def test_a_reboot_stays_visible(tmp_path: Path) -> None:
    minutes = [_minute(0, "one", dying=9000), _minute(1, "two", dying=4)]
    with _write(tmp_path, minutes=minutes) as recording:
        points = history(recording, step_us=HOUR_US)
    assert [(point.boot, point.dying) for point in points] == [("one", 9000), ("two", 4)]


def test_no_rollups_no_points(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=5)
    with open_recording(tmp_path) as recording:
        assert history(recording) == []


def test_damaged_rollups_give_what_is_whole(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    write_rollups(written.node_dir, START_US, days=2)
    first, _ = sorted(written.node_dir.glob("rollup/*"))
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    with open_recording(tmp_path) as recording:
        minutes = len(recording.table("minutes"))
        assert 1440 < minutes < 2880
        assert [entry.file for entry in recording.damage] == [f"rollup/{first.name}"]
