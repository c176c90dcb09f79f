"""Retention against readers: whatever is deleted, whoever reads gets what is left or hears that it is gone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.helpers.recordings import SECOND, Written, write_recording

from zombiescope.base import safe_files
from zombiescope.store import compact
from zombiescope.store.reader import open_recording
from zombiescope.store.retention import enforce

TABLES = ("samples", "stacks", "frames", "tasks", "cores", "events", "gaps")


def made(place: Path) -> Written:
    """Two parts of twenty seconds, and two segments of ten that are log still."""
    written = write_recording(place, seconds=60, segment_s=10)
    for pair in (written.segments[0:2], written.segments[2:4]):
        compact.compact(written.node_dir, [path.name for path in pair])
    return written


def everything_but(written: Written, seconds: int) -> None:
    enforce(written.node_dir, seconds * SECOND, 1 << 40, written.end_us)


@pytest.mark.parametrize("kept_s", [45, 25, 5])
def test_what_was_opened_before_is_read_or_said_to_be_gone(tmp_path: Path, kept_s: int) -> None:
    written = made(tmp_path)
    with open_recording(written.dir) as recording:
        everything_but(written, kept_s)
        for name in TABLES:
            recording.table(name)
        recording.gaps()
        recording.refresh()
        for name in TABLES:
            recording.table(name)


def test_deleted_between_any_two_files_a_new_reader_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention stands still after each file that it deletes, and somebody opens the recording."""
    written = made(tmp_path / "whole")
    real: Callable[[Path], None] = safe_files.remove
    seen: list[int] = []

    def removes(path: Path) -> None:
        real(path)
        with open_recording(written.dir) as recording:
            assert recording.damage == []
            seen.append(recording.table("samples").num_rows)

    monkeypatch.setattr(safe_files, "remove", removes)
    everything_but(written, 15)
    assert len(seen) > 10
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] > 0


def test_the_whole_directory_may_go(tmp_path: Path) -> None:
    written = made(tmp_path)
    with open_recording(written.dir) as recording:
        shutil.rmtree(written.node_dir)
        for name in TABLES:
            recording.table(name)
