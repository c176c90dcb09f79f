"""`kill -9` at any moment: the recording opens, and at most the last two seconds are missing."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import RecorderProcess

from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

MOMENTS = 50
AT_ONCE = 5


def _kill_at(directory: Path, seconds: float) -> tuple[float, float]:
    """(when it was killed, the last moment in the recording), both Unix seconds."""
    recorder = RecorderProcess(directory, segment_s=2.0)
    try:
        recorder.wait_for_frames(1)
        time.sleep(seconds)
        killed = time.time()
    finally:
        recorder.kill()
    with open_recording(directory) as opened:
        for name in ("cores", "samples", "stacks", "frames", "tasks", "counters", "events", "census"):
            opened.table(name)
        stacks = set(opened.table("stacks").column("stack").to_pylist())
        assert set(opened.table("samples").column("stack").to_pylist()) <= stacks
        return killed, opened.end_us / 1e6


def test_kill_minus_nine_loses_two_seconds_at_the_most(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    dice = random.Random(20260415)
    moments = [dice.uniform(0.0, 4.0) for _ in range(MOMENTS)]
    places = [tmp_path / str(number) for number in range(MOMENTS)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(_kill_at, places, moments))
    missing = [killed - last for killed, last in outcomes]
    assert max(missing) <= 2.0, sorted(missing)[-5:]


def test_a_recorder_started_after_a_crash_goes_on_and_the_gap_is_told(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    killed, last = _kill_at(tmp_path / "r", 1.0)
    time.sleep(4)
    recorder = RecorderProcess(tmp_path / "r")
    try:
        recorder.wait_for_frames(3)
        recorder.stop()
    finally:
        recorder.kill()
    with open_recording(tmp_path / "r") as opened:
        gaps = [gap for gap in opened.gaps() if gap.source == "recorder"]
        assert len(gaps) == 1
        assert gaps[0].from_us / 1e6 == pytest.approx(last, abs=1.5)
        assert opened.end_us / 1e6 > killed + 3
