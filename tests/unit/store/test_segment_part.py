"""What reading a segment costs: it is decoded once, and of its samples no more than a window needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.helpers.recordings import SECOND, START_US, contents, write_recording

from zombiescope.store import columns, log, schema, segment_part
from zombiescope.store.log import EncodedBlock
from zombiescope.store.reader import open_recording


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many frames, and how many blocks of samples, were decoded."""
    counted: Counter[str] = Counter()
    decode_frame, decode = log.decode_frame, columns.decoded

    def count_frame(body: bytes, *way: Any, **how: Any) -> log.LogFrame:
        counted["frames"] += 1
        return decode_frame(body, *way, **how)

    def count_blocks(table: schema.Table, blocks: Sequence[EncodedBlock], *names: Any) -> pa.Table:
        counted[table.name] += len(blocks)
        return decode(table, blocks, *names)

    monkeypatch.setattr(log, "decode_frame", count_frame)
    monkeypatch.setattr(columns, "decoded", count_blocks)
    return counted


def test_a_segment_is_decoded_once_whatever_is_asked_of_it(tmp_path: Path, decoded: Counter[str]) -> None:
    write_recording(tmp_path, seconds=30)
    with open_recording(tmp_path) as recording:
        recording.gaps()
        frames = decoded["frames"]
        assert frames >= 30
        for second in range(0, 30, 5):
            for name in ("samples", "cores", "tasks", "stacks", "counters"):
                recording.table(name, START_US + second * SECOND, START_US + (second + 5) * SECOND)
    assert decoded["frames"] == frames


def test_of_the_samples_only_the_frames_of_the_window_are_decoded(tmp_path: Path, decoded: Counter[str]) -> None:
    write_recording(tmp_path, seconds=30)
    with open_recording(tmp_path) as recording:
        every = recording.table("samples").column("time").to_pylist()
        decoded.clear()
        rows = recording.table("samples", START_US + 10 * SECOND, START_US + 13 * SECOND)
    assert 0 < len(rows) < len(every)
    assert decoded["samples"] <= 5


def test_a_segment_with_very_many_samples_keeps_none_and_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_recording(tmp_path, seconds=20)
    with open_recording(tmp_path) as recording:
        kept = contents(recording)
    monkeypatch.setattr(segment_part, "KEPT_SAMPLE_BYTES", 0)
    with open_recording(tmp_path) as recording:
        assert contents(recording) == kept
        assert all(part._samples is None for part in recording.segments)


def test_a_part_that_forgets_reads_again(tmp_path: Path) -> None:
    write_recording(tmp_path, seconds=10)
    with open_recording(tmp_path) as recording:
        before = contents(recording)
        for part in recording.segments:
            part.forget()
        assert contents(recording) == before
