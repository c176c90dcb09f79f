"""What compaction counts: the same as whoever counts the samples, or nothing at all."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.helpers.recordings import SECOND, START_US, write_recording, write_segment

from zombiescope.store import compact
from zombiescope.store.pack import pack
from zombiescope.store.reader import Recording, open_recording

YEARS = 20 * 365 * 86_400 * SECOND

SAMPLE = st.tuples(
    st.one_of(st.integers(0, 4 * SECOND), st.integers(0, YEARS)),
    st.one_of(st.none(), st.integers(0, 300)),
    st.one_of(st.none(), st.integers(0, 4)),
)
Sample = tuple[int, int | None, int | None]


def compacted(directory: Path, samples: list[Sample], start_us: int = START_US) -> Recording:
    write_segment(
        directory,
        {
            "frames": [(number, f"f{number}", "lib", "user") for number in range(5)],
            "stacks": [(number, (number,)) for number in range(5)],
            "samples": [(start_us + at, cpu, None, stack, None, None) for at, cpu, stack in samples],
        },
        start_us=start_us,
    )
    compact.compact(directory / "node=lab")
    return open_recording(directory)


def heat(recording: Recording) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """Samples by hundredth of a second since the epoch, and by second and core."""
    hundredths: Counter[tuple[int, int]] = Counter()
    cores: Counter[tuple[int, int]] = Counter()
    for row in recording.table("heat").to_pylist():
        second = int(row["time"].timestamp())
        hundredths.update({(second, place): count for place, count in enumerate(row["hundredths"]) if count})
        cores.update({(second, cpu): count for cpu, count in enumerate(row["cores"]) if count})
    return hundredths, cores


@settings(max_examples=40, deadline=None)
@given(st.lists(SAMPLE, min_size=1, max_size=40))
def test_the_summary_counts_every_sample_once(samples: list[Sample]) -> None:
    with tempfile.TemporaryDirectory() as folder, compacted(Path(folder), samples) as recording:
        hundredths, cores = heat(recording)
        counted = {row["stack"]: row["samples"] for row in recording.table("stack_counts").to_pylist()}
        names = {row["stack"]: row["frames"] for row in recording.table("stacks").to_pylist()}
        frames = {row["frame"]: row["name"] for row in recording.table("frames").to_pylist()}
    times = [START_US + at for at, _, _ in samples]
    assert hundredths == Counter((time // SECOND, time % SECOND // 10_000) for time in times)
    assert cores == Counter(
        (time // SECOND, cpu) for time, (_, cpu, _) in zip(times, samples, strict=True) if cpu is not None
    )
    by_name = {None if stack is None else frames[names[stack][0]]: count for stack, count in counted.items()}
    assert by_name == Counter(None if stack is None else f"f{stack}" for _, _, stack in samples)


def test_a_sample_of_an_imported_event_makes_no_summary(tmp_path: Path) -> None:
    write_segment(
        tmp_path,
        {
            "series": [(0, "event", "cycles", "", "sample")],
            "samples": [(START_US + 1, 0, None, None, None, None), (START_US + 2, 0, None, None, None, 0)],
        },
    )
    part = compact.compact(tmp_path / "node=lab").parts[0]
    assert part.tables["samples"].rows == 2
    assert not {"heat", "stack_counts"} & set(part.tables)


def test_a_core_that_no_kernel_can_have_makes_no_summary(tmp_path: Path) -> None:
    with compacted(tmp_path, [(1, 0, 0), (2, 1_000_000_000, 0)]) as recording:
        assert len(recording.table("heat")) == 0
        assert len(recording.table("samples")) == 2


def test_a_part_without_samples_has_no_summary(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=5, busy=0.0, incident=False)
    assert not {"heat", "stack_counts"} & set(compact.compact(written.node_dir).parts[0].tables)


def test_a_pack_copies_whole_parts_with_their_summary_and_counts_what_it_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first row of a summary is older than the part, because seconds are whole: that must not make it a cut."""
    monkeypatch.setattr(compact, "PART_US", 10 * SECOND)
    start_us = START_US + 300_123
    written = write_recording(tmp_path / "whole", segment_s=10, seconds=30, start_us=start_us)
    compact.compact(written.node_dir)
    with open_recording(tmp_path / "whole") as whole:
        second = whole.manifests[1]
        pack(whole, second.from_us, second.to_us + 4 * SECOND, tmp_path / "x.zscope")
        with open_recording(tmp_path / "x.zscope") as packed:
            assert second in packed.manifests, "with the segments that it was made from: a copy, and not cut anew"
            rows = sum(sum(row["hundredths"]) for row in packed.table("heat").to_pylist())
            assert rows == len(packed.table("samples")) > second.tables["samples"].rows
            assert sum(packed.table("stack_counts").column("samples").to_pylist()) == rows


def test_the_files_are_ordinary_and_small(tmp_path: Path) -> None:
    written = write_recording(tmp_path, cpus=8, seconds=60)
    part = compact.compact(written.node_dir).parts[0]
    table = pq.ParquetFile(written.node_dir / part.file("heat")).read()
    assert set(table.column_names) == {"time", "hundredths", "cores", "part"}
    assert part.tables["heat"].bytes + part.tables["stack_counts"].bytes < part.tables["samples"].bytes / 2
