"""Frames and segments: what a segment begins and ends with, and that there is always one to write into."""

from __future__ import annotations

from pathlib import Path

import pytest

from zombiescope.recorder.segments import Segments
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier, Stage
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.log import LogFrame, SegmentReader
from zombiescope.store.segment_writer import HOLDING_SEGMENT_US, SegmentWriter

SECOND_US = 1_000_000
START_US = 1_790_000_000 * SECOND_US


class Bench:
    def __init__(self, directory: Path) -> None:
        self.directory, self.sources, self.batch = directory, Sources(), Batch()
        self.writer = SegmentWriter(directory)
        barrier = Barrier(self.sources, lambda: START_US, lambda: 0.0)
        self.segments = Segments(self.writer, self.batch, self.sources, barrier, {"format": schema.FORMAT})

    def read(self) -> list[tuple[dict[str, object], list[LogFrame]]]:
        self.writer.close(START_US)
        found = []
        for path in sorted(self.directory.iterdir()):
            with path.open("rb") as file:
                reader = SegmentReader(file)
                found.append((dict(reader.header), list(reader.frames())))
        return found


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def at(second: int) -> Tick:
    return Tick(0, START_US + second * SECOND_US, SECOND_US)


def test_segments_are_counted_and_closed(bench: Bench) -> None:
    for start in (0, 10):
        bench.segments.start(START_US + start * SECOND_US)
        bench.segments.frame(at(start + 1))
        bench.segments.close(at(start + 2))
    found = bench.read()
    assert [(header["seq"], header["started_us"]) for header, _ in found] == [
        (0, START_US),
        (1, START_US + 10 * SECOND_US),
    ]
    assert [[frame.closes for frame in frames] for _, frames in found] == [[False, True]] * 2


def test_each_segment_says_what_is_missing_as_far_as_it_goes(bench: Bench) -> None:
    bench.sources.lacks("systemd", "absent", "a bus", START_US)
    for start in (0, 10):
        bench.segments.start(START_US + start * SECOND_US)
        bench.segments.close(at(start + 5))
    gaps = [block.columns for _, frames in bench.read() for frame in frames for block in frame.blocks]
    assert [(list(gap["time"]), list(gap["end"])) for gap in gaps] == [
        ([START_US], [START_US + 5 * SECOND_US]),
        ([START_US + 10 * SECOND_US], [START_US + 15 * SECOND_US]),
    ]


def test_stages_run_before_and_after_the_last_frame(bench: Bench) -> None:
    order: list[str] = []
    bench.segments.finish = [Stage("a", lambda _: order.append(f"finish, {bench.writer.bytes_written > 0}"))]
    bench.segments.renew = [Stage("b", lambda _: order.append(f"renew, {bench.writer.bytes_written > 0}"))]
    bench.segments.start(START_US)
    bench.segments.close(at(1))
    assert order == ["finish, False", "renew, True"]


def test_a_frame_without_a_segment_begins_one(bench: Bench) -> None:
    bench.segments.start(START_US)
    bench.segments.close(at(1))
    bench.segments.frame(at(2))
    assert [header["seq"] for header, _ in bench.read()] == [0, 1]


def test_while_the_disk_takes_nothing_segments_are_short(bench: Bench) -> None:
    bench.segments.start(START_US)
    assert not bench.segments.due(START_US + HOLDING_SEGMENT_US, 120 * SECOND_US)
    bench.writer.failing = "No space left on device"
    assert bench.segments.due(START_US + HOLDING_SEGMENT_US, 120 * SECOND_US)
    assert not bench.segments.due(START_US + HOLDING_SEGMENT_US - 1, 120 * SECOND_US)
