"""Following: every frame once, in order, over rotation, clock steps, damage and deletion."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.store.log import SegmentReader
from zombiescope.store.tail import Tail, follow


def _walls(written: Written) -> list[int]:
    walls = []
    for path in written.segments:
        with path.open("rb") as file:
            walls += [frame.wall_us for frame in SegmentReader(file).frames()]
    return walls


def _replay(written: Written, log: Path, chunk: int) -> list[tuple[Path, bytes]]:
    """The writes of a recorder, in pieces that end anywhere."""
    log.mkdir(parents=True)
    pieces = []
    for path in written.segments:
        data = path.read_bytes()
        pieces += [(log / path.name, data[at : at + chunk]) for at in range(0, len(data), chunk)]
    return pieces


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_every_frame_comes_once_however_it_is_appended(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "source", seconds=12, segment_s=4, hz=20)
    pieces = _replay(written, tmp_path / "node" / "log", 777)
    walls = []
    with Tail(tmp_path / "node") as tail:
        for path, data in pieces:
            _append(path, data)
            walls += [frame.wall_us for frame in tail.poll()]
    assert walls == _walls(written)


def test_it_starts_with_the_segment_that_was_written_last(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=12, segment_s=4)
    written.segments[2].touch()
    with Tail(written.node_dir) as tail:
        walls = [frame.wall_us for frame in tail.poll()]
        assert tail.header["seq"] == 2
        assert tail.poll() == []
    assert walls == _walls(written)[8:]


def test_several_segments_between_two_polls(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "source", seconds=12, segment_s=3)
    pieces = _replay(written, tmp_path / "node" / "log", 1 << 20)
    with Tail(tmp_path / "node") as tail:
        for path, data in pieces:
            _append(path, data)
        assert [frame.wall_us for frame in tail.poll()] == _walls(written)


def test_the_next_segment_is_found_after_the_clock_was_set_back(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=4, segment_s=4)
    with Tail(written.node_dir) as tail:
        assert len(tail.poll()) == 4
        back = START_US - 3600 * SECOND
        write_recording(tmp_path, seconds=4, start_us=back, recorder_started_us=START_US, first_seq=1)
        assert [frame.wall_us for frame in tail.poll()] == [back + second * SECOND for second in (1, 2, 3, 4)]


def test_damage_ends_a_segment_not_the_following(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "source", seconds=8, segment_s=4)
    log = tmp_path / "node" / "log"
    log.mkdir(parents=True)
    data = bytearray(written.segments[0].read_bytes())
    data[-3] ^= 1
    with Tail(tmp_path / "node") as tail:
        _append(log / written.segments[0].name, bytes(data))
        assert len(tail.poll()) == 3
        _append(log / written.segments[1].name, written.segments[1].read_bytes())
        assert len(tail.poll()) == 4


def test_a_deleted_segment_is_read_to_its_end(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "source", seconds=4, segment_s=4)
    log = tmp_path / "node" / "log"
    log.mkdir(parents=True)
    path, data = log / written.segments[0].name, written.segments[0].read_bytes()
    with Tail(tmp_path / "node") as tail, path.open("ab") as writer:
        writer.write(data[:-100])
        writer.flush()
        assert len(tail.poll()) == 3
        path.unlink()
        writer.write(data[-100:])
        writer.flush()
        assert len(tail.poll()) == 1


def test_follow_waits_for_what_comes(tmp_path: Path) -> None:
    written = write_recording(tmp_path / "source", seconds=6, segment_s=3, hz=20)
    pieces = _replay(written, tmp_path / "node" / "log", 2000)

    def write() -> None:
        for path, data in pieces:
            _append(path, data)
            time.sleep(0.002)

    writer = threading.Thread(target=write)

    def stop() -> bool:
        if writer.ident is None:  # only now is there a follower: it begins with the segment that was written last
            writer.start()
        return False

    walls = []
    for frame in follow(tmp_path / "node", stop=stop, poll_s=0.01):
        walls.append(frame.wall_us)
        if len(walls) == 6:
            break
    writer.join()
    assert walls == _walls(written)


def test_follow_stops_when_told(tmp_path: Path) -> None:
    written = write_recording(tmp_path, seconds=2)
    assert len(list(follow(written.node_dir, stop=iter([False, True]).__next__, poll_s=0))) == 2


def test_following_needs_nothing_heavy() -> None:
    modules = "zombiescope.store.tail, zombiescope.query.worst"
    program = f"import sys, {modules}; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
