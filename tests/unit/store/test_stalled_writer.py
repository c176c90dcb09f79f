"""A write that does not return: frames are held meanwhile, it is said, memory stays bounded, and all comes in order."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from zombiescope.store import log, schema
from zombiescope.store import segment_writer as module
from zombiescope.store.segment_writer import SegmentWriter


class Later:
    """Work that was handed over and is not done yet: a disk that hangs, without a thread."""

    def __init__(self) -> None:
        self._work: Callable[[], object] | None = None

    def __call__(self, work: Callable[[], object]) -> None:
        self._work = work

    def do(self) -> None:
        work, self._work = self._work, None
        if work is not None:
            work()


def frames_of(place: Path) -> list[int]:
    times = []
    for path in sorted(place.iterdir()):
        with path.open("rb") as file:
            times += [frame.wall_us for frame in log.SegmentReader(file).frames()]
    return times


def event(wall_us: int, size: int = 10) -> list[bytes]:
    return [log.encode_rows(schema.EVENTS, [(wall_us, "mark", "t", "info", os.urandom(size).hex(), "{}")], wall_us)]


def test_frames_of_several_segments_wait_and_come_in_order(tmp_path: Path) -> None:
    later = Later()
    writer = SegmentWriter(tmp_path / "log", later)
    for start in (0, 10, 20):
        writer.start(start, {"node": "n"})
        for number in range(start + 1, start + 10):
            writer.frame(number, number, event(number), closes=number == start + 9)
    assert not (tmp_path / "log").exists()
    assert len(writer.in_use) == 3
    later.do()
    assert frames_of(tmp_path / "log") == [*range(1, 10), *range(11, 20), *range(21, 30)]
    assert (writer.in_use, writer.held_bytes, writer.failing) == (set(), 0, None)


def test_a_write_that_does_not_return_is_said_and_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, later = [100.0], Later()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    writer = SegmentWriter(tmp_path / "log", later)
    writer.start(1, {"node": "n"})
    writer.frame(2, 2, event(2))
    said: list[str | None] = []

    def hangs(descriptor: int, data: bytes) -> int:
        monkeypatch.undo()
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        for second in (1.0, 2.5):  # the loop goes on meanwhile
            now[0] = 100.0 + second
            writer.frame(3 + int(second), 3, event(3))
            said.append(writer.failing)
        return os.write(descriptor, data)

    monkeypatch.setattr(os, "write", hangs)
    later.do()
    assert said[0] is None
    assert "does not answer" in str(said[1])
    assert writer.failing is None
    assert frames_of(tmp_path / "log") == [2, 4, 5]


def test_memory_is_bounded_and_the_segment_under_way_is_not_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_HELD_BYTES", 20_000)
    monkeypatch.setattr(module, "STALLED_S", 0.0)
    later = Later()
    writer = SegmentWriter(tmp_path / "log", later)
    writer.start(0, {"node": "n"})
    writer.frame(1, 1, event(1))
    real, most = os.write, [0]

    def hangs(descriptor: int, data: bytes) -> int:
        monkeypatch.setattr(os, "write", real)
        writer.frame(9, 9, event(9, 1000), closes=True)
        for start in range(10, 100, 10):
            writer.start(start, {"node": "n"})
            for number in range(start + 1, start + 10):
                writer.frame(number, number, event(number, 1000), closes=number == start + 9)
                most[0] = max(most[0], writer.held_bytes)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", hangs)
    later.do()
    dropped = writer.take_dropped()
    # THEN whole segments were given up, the oldest first, but for the one that the disk was busy with
    assert dropped
    assert [one.from_us for one in dropped] == list(range(10, 10 + 10 * len(dropped), 10))
    assert most[0] < 3 * 20_000
    kept = frames_of(tmp_path / "log")
    assert kept[:2] == [1, 9]
    spans = [range(one.from_us, one.to_us + 1) for one in dropped]
    assert not [time for time in kept if any(time in span for span in spans)]


def test_what_is_given_up_begins_where_the_disk_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames that had reached the disk before it failed are there, and are not called lost."""
    monkeypatch.setattr(module, "MAX_HELD_BYTES", 4_000)
    writer = SegmentWriter(tmp_path / "log")
    writer.start(0, {"node": "n"})
    for number in range(1, 4):
        writer.frame(number, number, event(number))
    real = os.write

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for number in range(4, 10):
        writer.frame(number, number, event(number, 1000), closes=number == 9)
    writer.start(10, {"node": "n"})
    writer.frame(11, 11, event(11, 1000))
    [dropped] = writer.take_dropped()
    assert (dropped.from_us, dropped.to_us) == (3, 9)
    monkeypatch.setattr(os, "write", real)
    writer.close(12)
    assert frames_of(tmp_path / "log") == [1, 2, 3, 11]
