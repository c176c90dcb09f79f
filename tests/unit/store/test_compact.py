"""Compaction: the same rows before and after it, and after being stopped at any step."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.helpers.recordings import SECOND, START_US, contents, write_recording

from zombiescope.store import compact, layout
from zombiescope.store.reader import open_recording


def _contents(path: Path, *window: int) -> dict[str, list[Any]]:
    with open_recording(path) as recording:
        found = contents(recording, *window)
        assert recording.damage == []
    return found


def _parquet(node_dir: Path) -> list[Path]:
    return sorted(node_dir.glob("date=*/*.parquet"))


def test_every_table_has_the_same_rows_afterwards(tmp_path: Path) -> None:
    written = write_recording(tmp_path, segment_s=7)
    before = _contents(tmp_path)
    done = compact.compact(written.node_dir)
    assert (len(done.parts), done.segments) == (1, 9)
    assert list((written.node_dir / "log").iterdir()) == []
    assert _contents(tmp_path) == before


def test_any_window_has_the_same_rows_afterwards(tmp_path: Path) -> None:
    written = write_recording(tmp_path, segment_s=7)
    window = (START_US + 12_345_678, START_US + 31_000_000)
    before = _contents(tmp_path, *window)
    compact.compact(written.node_dir)
    assert _contents(tmp_path, *window) == before


def test_log_and_parquet_are_read_as_one(tmp_path: Path) -> None:
    written = write_recording(tmp_path, segment_s=10)
    before = _contents(tmp_path)
    compact.compact(written.node_dir, [path.name for path in written.segments[1:4]])
    assert len(list((written.node_dir / "log").iterdir())) == 3
    assert _contents(tmp_path) == before


def test_gaps_are_the_same_afterwards(tmp_path: Path) -> None:
    first = write_recording(tmp_path, seconds=20)
    write_recording(tmp_path, seconds=20, start_us=first.end_us + 9 * SECOND, boot="later")
    with open_recording(tmp_path) as recording:
        before = recording.gaps()
    assert len(compact.compact(first.node_dir).parts) == 2  # a part never spans two boots
    with open_recording(tmp_path) as recording:
        assert recording.gaps() == before != []


def test_a_part_is_bounded_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "PART_US", 20 * SECOND)
    written = write_recording(tmp_path, segment_s=10)
    before = _contents(tmp_path)
    assert [len(part.segments) for part in compact.compact(written.node_dir).parts] == [2, 2, 2]
    assert _contents(tmp_path) == before


@pytest.mark.parametrize("limit", ["PART_SAMPLES", "PART_STACKS"])
def test_a_part_is_bounded_in_what_it_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(compact, limit, 1)
    written = write_recording(tmp_path, segment_s=20)
    assert len(compact.compact(written.node_dir).parts) == 3


def test_a_part_does_not_span_midnight(tmp_path: Path) -> None:
    midnight = START_US // (86_400 * SECOND) * 86_400 * SECOND
    written = write_recording(tmp_path, seconds=40, segment_s=10, start_us=midnight - 20 * SECOND)
    parts = compact.compact(written.node_dir).parts
    assert [part.folder for part in parts] == ["date=2025-10-08/", "date=2025-10-09/"]


def test_rows_are_sorted_over_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.store.parquet.ROWS_PER_GROUP", 500)
    written = write_recording(tmp_path, segment_s=30)
    before = _contents(tmp_path)
    compact.compact(written.node_dir)
    (path,) = written.node_dir.glob("date=*/samples-*.parquet")
    assert pq.ParquetFile(path).num_row_groups > 5
    times = pq.read_table(path).column("time").to_pylist()
    assert times == sorted(times)
    assert _contents(tmp_path) == before
    with open_recording(tmp_path) as recording:
        window = recording.table("samples", START_US + 20 * SECOND, START_US + 21 * SECOND)
    assert 0 < len(window) < 500


def test_the_part_column_and_the_ids_join_without_the_reader(tmp_path: Path) -> None:
    # GIVEN two parts, as another program sees them
    written = write_recording(tmp_path, segment_s=30)
    for path in written.segments:
        compact.compact(written.node_dir, [path.name])
    # WHEN samples are joined with stacks by part and stack
    samples, stacks = (
        [row for path in written.node_dir.glob(f"date=*/{table}-*.parquet") for row in pq.read_table(path).to_pylist()]
        for table in ("samples", "stacks")
    )
    known = {(row["part"], row["stack"]) for row in stacks}
    # THEN each finds exactly one
    assert len(known) == len(stacks)
    assert len({row["part"] for row in stacks}) == 2
    assert all((row["part"], row["stack"]) in known for row in samples)


def test_a_stack_is_stored_once_in_a_part(tmp_path: Path) -> None:
    written = write_recording(tmp_path, segment_s=5)
    compact.compact(written.node_dir)
    with open_recording(tmp_path) as recording:
        stacks = [tuple(frames) for frames in recording.table("stacks").column("frames").to_pylist()]
        frames = recording.table("frames").select(["name", "module", "kind"]).to_pylist()
    assert len(stacks) == len(set(stacks))
    assert len(frames) == len({tuple(frame.values()) for frame in frames})


# --- stopped half-way ---------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def _kill_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Ends the process' work, without a chance to clean up, at the n-th rename or deletion."""
    left = step
    rename, unlink = os.rename, os.unlink

    def count(action: Any) -> Any:
        def counted(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            if left <= 0:
                raise Killed
            left -= 1
            return action(*arguments, **options)

        return counted

    monkeypatch.setattr(os, "rename", count(rename))
    monkeypatch.setattr(os, "unlink", count(unlink))
    monkeypatch.setattr(compact._Building, "abandon", lambda _: None)


def test_killed_at_any_step_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    write_recording(tmp_path / "template", seconds=20, segment_s=10)
    before = _contents(tmp_path / "template")
    for step in range(30):
        place = tmp_path / str(step)
        written = write_recording(place, seconds=20, segment_s=10)
        with pytest.MonkeyPatch.context() as patch:
            _kill_at(patch, step)
            try:
                compact.compact(written.node_dir)
                finished = True
            except Killed:
                finished = False
        assert _contents(place) == before, f"after {step} steps"
        compact.compact(written.node_dir)
        assert _contents(place) == before
        assert list((written.node_dir / "log").iterdir()) == []
        assert list(written.node_dir.glob("date=*/*.tmp")) == []
        assert len(_parquet(written.node_dir)) == len({path.name.split("-")[0] for path in _parquet(written.node_dir)})
        if finished:
            break
    assert finished


def test_files_of_no_part_do_not_count_and_are_removed(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=20, segment_s=10)
    compact.compact(written.node_dir, [written.segments[0].name])
    (manifest,) = written.node_dir.glob("date=*/part-*.json")
    manifest.unlink()
    with open_recording(tmp_path) as recording:
        assert recording.start_us == START_US + 10 * SECOND
    compact.compact(written.node_dir)
    names = {path.name for path in _parquet(written.node_dir)}
    assert all(str(START_US + 10 * SECOND) in name for name in names)


# --- what is not whole --------------------------------------------------------------------------------------


def test_damage_of_a_segment_is_kept_in_the_manifest(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=20, segment_s=10)
    data = bytearray(written.segments[0].read_bytes())
    data[len(data) // 2] ^= 0xFF
    written.segments[0].write_bytes(data)
    (part,) = compact.compact(written.node_dir).parts
    assert "checksum" in part.damage[0]
    with open_recording(tmp_path) as recording:
        assert "checksum" in recording.damage[0].what
        assert len(recording.gaps()) == 1


def test_a_segment_without_a_header_is_left_alone(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=20, segment_s=10)
    written.segments[0].write_bytes(b"garbage")
    compact.compact(written.node_dir)
    assert [path.name for path in (written.node_dir / "log").iterdir()] == [written.segments[0].name]


@pytest.mark.parametrize("table", ["samples", "stacks", "cores"])
def test_a_flipped_bit_in_parquet_is_damage_not_a_wrong_number(tmp_path: Path, table: str) -> None:
    written = write_recording(tmp_path, seconds=20)
    compact.compact(written.node_dir)
    (path,) = written.node_dir.glob(f"date=*/{table}-*.parquet")
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 0x10
    path.write_bytes(data)
    with open_recording(tmp_path) as recording:
        assert len(recording.table(table)) == 0
        assert [entry.file for entry in recording.damage] == [str(path.relative_to(written.node_dir))]
        assert len(recording.table("census")) == 20


def test_a_broken_manifest_is_damage(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=20, segment_s=10)
    compact.compact(written.node_dir, [written.segments[0].name])
    (manifest,) = written.node_dir.glob("date=*/part-*.json")
    manifest.write_text('{"part": 1}')
    with open_recording(tmp_path) as recording:
        assert "not a manifest" in recording.damage[0].what
        assert len(recording.table("census")) == 10


# --- as a process -------------------------------------------------------------------------------------------


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "zombiescope.store.compact", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_segment_of_a_running_recorder_is_left_alone(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=30, segment_s=10)
    with open(written.node_dir / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = _run(str(written.node_dir))
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["segments"] == 2
    assert report["max_rss_bytes"] > 0
    assert [path.name for path in (written.node_dir / "log").iterdir()] == [written.segments[2].name]


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    with open(written.node_dir / "compact.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = _run(str(written.node_dir))
    assert result.returncode == 1
    assert "another process" in result.stderr


def test_compaction_does_not_import_pandas(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    program = f"""
import sys
from pathlib import Path
from zombiescope.store.compact import compact
compact(Path({str(written.node_dir)!r}))
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_manifest_survives_json() -> None:
    span = layout.Span(1, 2, 3, "b", 4, 5, 6, 7)
    facts = {"samples": layout.TableFacts(3, 100, 1, 2), "stacks": layout.TableFacts(1, 50)}
    manifest = layout.Manifest("n-1", 1, 2, "b", ("1760000000000000.seg",), facts, {"stack": 1}, (span,), ("hurt",))
    assert layout.Manifest.from_json(manifest.to_json()) == manifest
