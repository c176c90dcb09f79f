"""A disk that is full, read-only or gone: frames are held, written later in order, and what is given up is told."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.store import log, schema
from zombiescope.store import segment_writer as segment
from zombiescope.store.segment_writer import SegmentWriter


def frames_in(path: Path) -> tuple[list[int], log.SegmentReader]:
    with open(path, "rb") as file:
        reader = log.SegmentReader(file)
        return [frame.wall_us for frame in reader.frames()], reader


def event(wall_us: int, size: int = 10) -> list[bytes]:
    noise = os.urandom(size).hex()
    return [log.encode_rows(schema.EVENTS, [(wall_us, "mark", "test", "info", noise, "{}")], wall_us)]


def test_frames_reach_the_file_at_once(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path / "log")
    writer.start(1000, {"node": "n"})
    writer.frame(2000, 1, event(2000))
    path = tmp_path / "log" / "0000000000001000.seg"
    assert frames_in(path)[0] == [2000]
    writer.frame(3000, 2, event(3000), closes=True)
    times, reader = frames_in(path)
    assert (times, reader.closed, writer.in_use) == ([2000, 3000], True, set())


@pytest.fixture
def small_disk(needs: Needs, tmp_path: Path) -> Iterator[Path]:
    needs.root()
    place = tmp_path / "disk"
    place.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k tmpfs {place}") != 0:
        pytest.fail("cannot mount a small tmpfs")
    yield place
    os.system(f"umount -l {place}")


@pytest.mark.kernel
def test_a_full_disk_holds_frames_and_writes_them_when_there_is_room(small_disk: Path) -> None:
    # GIVEN a disk with almost no room left
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 52_000)
    writer = SegmentWriter(small_disk / "log")
    writer.start(0, {"node": "n"})
    # WHEN more is written than fits
    for number in range(1, 41):
        writer.frame(number, number, event(number, 1000))
    assert writer.failing is not None
    assert os.strerror(errno.ENOSPC) in writer.failing
    assert writer.held_bytes > 0
    on_disk, reader = frames_in(small_disk / "log" / f"{0:016d}.seg")
    assert reader.damage is None
    assert on_disk == list(range(1, len(on_disk) + 1))
    # AND room is made
    ballast.unlink()
    writer.frame(41, 41, event(41), closes=True)
    # THEN nothing is missing
    assert writer.held_bytes == 0
    assert not writer.failing
    assert frames_in(small_disk / "log" / f"{0:016d}.seg")[0] == list(range(1, 42))


def test_what_memory_cannot_hold_is_given_up_by_whole_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "MAX_HELD_BYTES", 20_000)
    blocked = tmp_path / "log"
    blocked.write_text("a file stands where the directory should be")
    writer = SegmentWriter(blocked)
    for start in range(0, 100, 10):
        writer.start(start, {"node": "n"})
        for number in range(start, start + 10):
            writer.frame(number, number, event(number, 1000), closes=number == start + 9)
    assert writer.failing is not None
    dropped = writer.take_dropped()
    assert dropped[0].from_us == 0
    assert all(one.to_us - one.from_us == 9 for one in dropped)
    assert writer.held_bytes <= 20_000 + 25_000
    # WHEN the obstacle goes, what is still held is written
    blocked.unlink()
    writer.flush(1000)
    kept = sorted(path.name for path in blocked.iterdir())
    assert len(kept) + len(dropped) == 10
    assert all(frames_in(blocked / name)[1].closed for name in kept)
