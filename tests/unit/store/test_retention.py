"""Retention: age, size, what is frozen and what is being written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.helpers.recordings import SECOND, START_US, Written, write_recording, write_rollups

from zombiescope.base import safe_files
from zombiescope.store import compact
from zombiescope.store.freeze import freeze, list_frozen
from zombiescope.store.node_directory import Lock
from zombiescope.store.reader import open_recording
from zombiescope.store.retention import enforce, enforce_earlier

HOUR_US = 3600 * SECOND
PLENTY = 1 << 40


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Six segments of ten seconds: two parts of two and two that are log still."""
    written = write_recording(tmp_path, seconds=60, segment_s=10)
    for pair in (written.segments[0:2], written.segments[2:4]):
        compact.compact(written.node_dir, [path.name for path in pair])
    return written


def _start(written: Written) -> int:
    with open_recording(written.dir) as recording:
        assert recording.damage == []
        return (recording.start_us - written.start_us) // SECOND


def _size(node_dir: Path) -> int:
    return sum(path.stat().st_size for path in node_dir.rglob("*") if path.is_file())


def test_nothing_old_and_nothing_too_much(written: Written) -> None:
    freed = enforce(written.node_dir, HOUR_US, PLENTY, written.end_us)
    assert (freed.parts, freed.segments, freed.bytes, freed.over_bytes) == (0, 0, 0, 0)
    assert _start(written) == 0


def test_what_is_older_than_keep_goes(written: Written) -> None:
    before = _size(written.node_dir)
    freed = enforce(written.node_dir, 30 * SECOND, PLENTY, written.end_us)
    assert (freed.parts, freed.segments) == (1, 0)
    assert freed.bytes == before - _size(written.node_dir)
    assert _start(written) == 20
    assert len(list(written.node_dir.glob("date=*/part-*"))) == 1
    freed = enforce(written.node_dir, 5 * SECOND, PLENTY, written.end_us)
    assert (freed.parts, freed.segments) == (1, 1)
    assert list(written.node_dir.glob("date=*")) == []


def test_the_oldest_goes_until_the_rest_fits(written: Written) -> None:
    limit = _size(written.node_dir) - 1
    freed = enforce(written.node_dir, HOUR_US, limit, written.end_us)
    assert (freed.parts, freed.segments, freed.over_bytes) == (1, 0, 0)
    assert _start(written) == 20
    assert _size(written.node_dir) <= limit


def test_the_segment_being_written_stays_and_the_excess_is_said(written: Written) -> None:
    newest = written.segments[-1]
    freed = enforce(written.node_dir, 0, 10, written.end_us + HOUR_US, {newest.name})
    assert (freed.parts, freed.segments) == (2, 1)
    assert newest.exists()
    assert freed.over_bytes == _size(written.node_dir) - 10


def test_a_frozen_window_outlives_keep_and_size(written: Written) -> None:
    freeze(written.node_dir, START_US + 21 * SECOND, START_US + 25 * SECOND, "incident")
    freed = enforce(written.node_dir, 0, _size(written.node_dir), written.end_us + HOUR_US, frozen_ratio=0.9)
    assert (freed.parts, freed.segments, freed.frozen_given_up) == (1, 1, ())
    with open_recording(written.dir) as recording:
        kept = [(part.start_us - START_US) // SECOND for part in recording.parts]
    assert kept == [20, 50]  # the newest segment ends now, as far as its name tells


def test_beyond_the_budget_the_oldest_frozen_go_and_it_is_said(written: Written) -> None:
    old = freeze(written.node_dir, START_US, START_US + 5 * SECOND, "old")
    new = freeze(written.node_dir, START_US + 30 * SECOND, START_US + 35 * SECOND, "new")
    part = sum(path.stat().st_size for path in written.node_dir.glob(f"date=*/*-{START_US + 20 * SECOND}-*"))
    freed = enforce(written.node_dir, 0, PLENTY, written.end_us + HOUR_US, frozen_ratio=(part + 100) / PLENTY)
    assert freed.frozen_given_up == (old.id,)
    assert list_frozen(written.node_dir) == [new]
    assert _start(written) == 20


def test_a_window_larger_than_the_budget_does_not_stop_the_recorder(written: Written) -> None:
    everything = freeze(written.node_dir, START_US, written.end_us, "all of it")
    limit = _size(written.node_dir) // 2
    freed = enforce(written.node_dir, HOUR_US, limit, written.end_us)
    assert freed.over_bytes == 0
    assert freed.frozen_given_up == (everything.id,)
    assert list_frozen(written.node_dir) == [everything]  # part of it is still there


def test_rollups_are_kept_for_thirty_days(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=10)
    write_rollups(written.node_dir, START_US, days=40)
    freed = enforce(written.node_dir, 365 * 24 * HOUR_US, PLENTY, START_US)
    assert freed.rollups == 10
    assert len(list(written.node_dir.glob("rollup/*"))) == 30


def test_rollups_are_kept_to_their_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write_recording(tmp_path, seconds=10)
    write_rollups(written.node_dir, START_US, days=5)
    sizes = [path.stat().st_size for path in sorted(written.node_dir.glob("rollup/*"))]
    monkeypatch.setattr("zombiescope.store.retention.ROLLUP_MAX_BYTES", sum(sizes[3:]))
    freed = enforce(written.node_dir, HOUR_US, PLENTY, START_US)
    assert freed.rollups == 3
    monkeypatch.setattr("zombiescope.store.retention.ROLLUP_MAX_BYTES", 1)
    enforce(written.node_dir, HOUR_US, PLENTY, START_US)
    assert len(list(written.node_dir.glob("rollup/*"))) == 1  # the one being written


def test_a_recorder_that_is_restarted_all_the_time_does_not_fill_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zombiescope.store.retention.ROLLUP_MAX_FILES", 3)
    written = write_recording(tmp_path, seconds=10)
    write_rollups(written.node_dir, START_US, days=5)
    assert enforce(written.node_dir, HOUR_US, PLENTY, START_US).rollups == 2
    assert len(list(written.node_dir.glob("rollup/*"))) == 3


def test_interrupted_in_a_part_no_reader_sees_half_of_it(written: Written, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, left = safe_files.remove, 3

    def interrupted(path: Path) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(safe_files, "remove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            enforce(written.node_dir, 30 * SECOND, PLENTY, written.end_us)
    assert _start(written) == 20
    compact.compact(written.node_dir)
    assert len(list(written.node_dir.glob(f"date=*/*-{START_US}-*"))) == 0


def test_retention_needs_nothing_heavy() -> None:
    modules = "zombiescope.store.retention, zombiescope.store.freeze"
    program = f"import sys, {modules}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_what_was_recorded_here_under_earlier_names_shares_the_limits(tmp_path: Path) -> None:
    # GIVEN recordings of two earlier pods, an imported one, and one that somebody writes
    ours = write_recording(tmp_path, seconds=20, segment_s=10)
    earlier = {}
    for name, said in (
        ("pod-a", {"started_us": 1}),
        ("other", {"started_us": 1, "imported": {}}),
        ("live", {"started_us": 1}),
    ):
        place = tmp_path / f"node={name}"
        shutil.copytree(ours.node_dir, place)
        (place / "node.json").write_text(json.dumps(said))
        for file in place.glob("log/*"):
            os.utime(file, (ours.end_us / 1e6, ours.end_us / 1e6))
        earlier[name] = place
    segments = {name: len(list(place.glob("log/*"))) for name, place in earlier.items()}
    lock = Lock(earlier["live"], ours.end_us)
    # WHEN what is old goes
    freed = enforce_earlier(ours.node_dir, SECOND, PLENTY, ours.end_us + HOUR_US)
    lock.release()
    # THEN only the earlier pod's recording is emptied
    left = {name: len(list(place.glob("log/*"))) for name, place in earlier.items()}
    assert left == {**segments, "pod-a": 0}
    assert freed > 0
    assert [path for path in ours.segments if not path.exists()] == []


def test_earlier_names_get_what_ours_leaves(tmp_path: Path) -> None:
    ours = write_recording(tmp_path, seconds=20, segment_s=10)
    place = tmp_path / "node=pod-a"
    shutil.copytree(ours.node_dir, place)
    (place / "node.json").write_text('{"started_us": 1}')
    enforce_earlier(ours.node_dir, HOUR_US, _size(ours.node_dir), ours.end_us)
    assert list(place.glob("log/*")) == []
