"""What `info` says about a recording, from the log and from Parquet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.helpers.recordings import BOOT, SECOND, write_recording

from zombiescope.query.info import info
from zombiescope.store import compact
from zombiescope.store.reader import open_recording


def test_info_is_the_same_before_and_after_compaction(tmp_path: Path) -> None:
    written = write_recording(tmp_path, rollup_days=1, segment_s=60)
    with open_recording(tmp_path) as recording:
        before = info(recording)
    size = sum(path.stat().st_size for path in written.node_dir.rglob("*") if path.is_file())
    compact.compact(written.node_dir)
    with open_recording(tmp_path) as recording:
        after = info(recording)
    assert (before.node, before.kernel, before.cpus, before.boots) == ("lab", "5.4.0-1024-aws", 2, (BOOT,))
    assert (before.start_us, before.end_us) == (written.start_us, written.end_us)
    assert before.samples == before.tables["samples"] == written.samples
    assert before.tables["minutes"] == 1440
    assert before.tables["tasks"] == 6
    assert (before.parquet_parts, after.parquet_parts) == (0, 1)
    assert before.bytes == size
    assert replace(after, bytes=size, parquet_parts=0, log_segments=1) == before


def test_two_boots_and_the_gap_between_them(tmp_path: Path) -> None:
    first = write_recording(tmp_path, seconds=20)
    write_recording(tmp_path, seconds=20, start_us=first.end_us + 60 * SECOND, boot="second")
    with open_recording(tmp_path) as recording:
        found = info(recording)
    assert found.boots == (BOOT, "second")
    assert [gap.to_us - gap.from_us for gap in found.gaps] == [60 * SECOND]


def test_a_node_file_of_another_shape_is_no_error(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5)
    (written.node_dir / "node.json").write_text('{"kernel": 6, "cpus": 4, "labels": [], "missing": {}}')
    with open_recording(tmp_path) as recording:
        found = info(recording)
    assert (found.kernel, found.cpus, found.labels, found.missing) == (None, None, {}, ())
