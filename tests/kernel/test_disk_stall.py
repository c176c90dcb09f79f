"""A disk that does not answer for a while: rings are emptied and ticks taken all the same, nothing is lost, and the
recording says when the disk was away."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording
from tests.helpers.stalled_disk import StalledDisk, stalled_disk

from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

STALL_S = 12.0


@pytest.fixture
def disk(needs: Needs, tmp_path: Path) -> Iterator[StalledDisk]:
    needs.root()
    needs.binary("mkfs.ext4", "e2fsprogs")
    needs.binary("fsfreeze", "util-linux")
    needs.file("/dev/loop-control")
    with stalled_disk(tmp_path) as made:
        yield made


def test_a_disk_that_hangs_keeps_no_tick_waiting(disk: StalledDisk) -> None:
    with recording(disk.place / "r", segment_s=5.0) as recorder:
        with disk.stalled():
            began = time.time()
            time.sleep(STALL_S)
            ended = time.time()
        recorder.wait_for_frames(int(STALL_S))
        result = recorder.stop()
    assert "disk" not in {one["source"] for one in result["missing"]}
    with open_recording(disk.place / "r") as opened:
        times = sorted(set(opened.table("cores").column("time").cast("int64").to_pylist()))
        gaps = opened.gaps()
    # THEN every second is there
    assert max(after - before for before, after in pairwise(times)) / 1e6 < 2.5
    assert [gap for gap in gaps if gap.source in ("recorder", "ticks")] == []
    # AND the disk was away for as long as it was, to a second or two
    away = [gap for gap in gaps if gap.source == "disk"]
    assert away
    assert all("does not answer" in gap.why for gap in away)
    assert min(gap.from_us for gap in away) / 1e6 == pytest.approx(began, abs=2.5)
    assert max(gap.to_us for gap in away) / 1e6 == pytest.approx(ended, abs=2.5)


def test_a_recorder_that_ends_while_its_disk_hangs_ends_in_order_when_it_is_back(disk: StalledDisk) -> None:
    with recording(disk.place / "r") as recorder:
        with disk.stalled():
            time.sleep(3)
            recorder.signal(15)
            time.sleep(2)
        recorder.stop()
    with open_recording(disk.place / "r") as opened:
        assert [gap for gap in opened.gaps() if gap.source == "recorder"] == []
