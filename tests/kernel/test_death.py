"""What stops or ends a recorder from outside, SIGSTOP and the OOM killer: the recording opens, the gap has its right
length, and the next recorder goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import RecorderProcess, recording

from zombiescope.store.gaps import Gap
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

STOPPED_S = float(os.environ.get("ZOMBIESCOPE_STOPPED_S", "10"))
"""A minute in `make soak-death`."""
LIMIT = 80 << 20
HOG = """
import sys, time
with open(sys.argv[1] + '/cgroup.procs', 'w') as file: file.write('0')
held = [bytearray(b'x') * (1 << 20) for _ in range(60)]
time.sleep(60)
"""


def gaps_of(place: Path, *sources: str) -> list[Gap]:
    with open_recording(place) as opened:
        assert opened.damage == []
        return [gap for gap in opened.gaps() if gap.source in sources]


def length_s(gap: Gap) -> float:
    return (gap.to_us - gap.from_us) / 1e6


def test_a_recorder_that_was_stopped_says_for_how_long(tmp_path: Path) -> None:
    with recording(tmp_path / "r") as recorder:
        recorder.signal(signal.SIGSTOP)
        began = time.time()
        time.sleep(STOPPED_S)
        recorder.signal(signal.SIGCONT)
        ended = time.time()
        recorder.wait_for_frames(4)
        recorder.stop()
    [gap] = gaps_of(tmp_path / "r", "ticks")
    # THEN the gap is as long as it was, to the tick that it fell into
    assert length_s(gap) == pytest.approx(ended - began, abs=1.5)
    assert gap.from_us / 1e6 == pytest.approx(began, abs=1.5)
    # AND what the kernel kept of it in the rings was read afterwards, and nothing else is missing
    with open_recording(tmp_path / "r") as opened:
        times = sorted(set(opened.table("cores").column("time").cast("int64").to_pylist()))
    steps = sorted((after - before) / 1e6 for before, after in pairwise(times))
    assert steps[-1] == pytest.approx(ended - began, abs=2.5)
    assert steps[-2] < 3
    holes = gaps_of(tmp_path / "r", "recorder")
    assert len(holes) <= 1
    assert all(length_s(hole) == pytest.approx(ended - began, abs=2.5) for hole in holes)


@pytest.fixture
def cage(needs: Needs) -> Iterator[Path]:
    place = needs.memory_cgroup() / f"zombiescope-test-oom-{os.getpid()}"
    place.mkdir()
    limit = place / "memory.limit_in_bytes"
    (limit if limit.exists() else place / "memory.max").write_text(str(LIMIT))
    yield place
    for _ in range(100):
        with suppress(OSError):
            place.rmdir()
            return
        time.sleep(0.1)


def test_a_recorder_that_the_oom_killer_took_left_everything_but_two_seconds(cage: Path, tmp_path: Path) -> None:
    caged = ("sh", "-c", f'echo 0 > {cage}/cgroup.procs; exec "$@"', "sh")
    recorder = RecorderProcess(tmp_path / "r", prefix=caged, segment_s=3.0)
    hog = None
    try:
        recorder.wait_for_frames(5)
        Path(f"/proc/{recorder.pid}/oom_score_adj").write_text("1000")
        hog = subprocess.Popen([sys.executable, "-c", HOG, str(cage)])
        code, _, _ = recorder.wait()
        killed = time.time()
    finally:
        recorder.kill()
        if hog is not None:
            hog.kill()
            hog.wait()
    assert code == -signal.SIGKILL
    with open_recording(tmp_path / "r") as opened:
        # A second more than for kill -9: that it has ended is seen some time after it was killed.
        assert killed - opened.end_us / 1e6 <= 3.0
    # WHEN it is started again
    with recording(tmp_path / "r") as again:
        again.wait_for_frames(2)
        again.stop()
    [gap] = gaps_of(tmp_path / "r", "recorder")
    assert gap.why == "the recorder was not running"
