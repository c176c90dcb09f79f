"""A real recorder with a stand-in for the GPU driver: rows are read back, a driver that hangs stops nobody."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.nvml_stand_in import StandIn
from tests.helpers.recorder_process import RecorderProcess, recording

from zombiescope.store.reader import Recording, open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.waits, pytest.mark.timeout(180)]

LONGEST_S = 60.0


@pytest.fixture
def driver(tmp_path: Path) -> StandIn:
    return StandIn(tmp_path)


def rows(opened: Recording, table: str) -> list[dict[str, Any]]:
    from zombiescope.store import columns

    return columns.records(opened.table(table))


def until(recorder: RecorderProcess, is_so: Callable[[Recording], bool]) -> None:
    end = time.monotonic() + LONGEST_S
    while True:
        with open_recording(recorder.node_dir.parent) as opened:
            if is_so(opened):
                return
        assert time.monotonic() < end, "it never came"
        time.sleep(0.5)


def test_gpus_are_recorded_and_a_lost_one_stays(driver: StandIn, tmp_path: Path) -> None:
    driver.script("gpus 2", "util 0 97", "util 1 3", f"process 0 {os.getpid()} 1073741824", "field 5 2", "field 74 1")
    with recording(tmp_path / "rec", gpu_library=str(driver.place), segment_s=5.0) as recorder:
        until(recorder, lambda opened: len(opened.table("gpu_seconds")) >= 8)
        driver.script("gpus 2", "util 0 97", "lost 1", "field 5 2", "field 74 1")
        until(recorder, lambda opened: any(row["kind"] == "gpu_lost" for row in rows(opened, "events")))
        recorder.wait_for_frames(6)  # a segment begins after it
        result = recorder.stop()
    with open_recording(tmp_path / "rec") as opened:
        seconds = rows(opened, "gpu_seconds")
        gpus = rows(opened, "gpus")
        (process,) = {(row["gpu"], row["pid"]) for row in rows(opened, "gpu_processes")}
        gaps = [gap for gap in opened.gaps() if gap.source == "gpu"]
    assert {row["utilisation"] for row in seconds if row["gpu"] == 0} == {97}
    whole = [row for row in seconds if row["gpu"] == 0 and row["utilisation_samples"]][1:-1]
    assert {len(row["utilisation_samples"]) for row in whole} <= {4, 5, 6}, "of the first second only a part was seen"
    assert {row["power_w"] for row in seconds if row["power_w"] is not None} == {140}
    assert process == (0, os.getpid())
    assert [row["state"] for row in gpus if row["gpu"] == 1][-1] == "lost", "also in the last segment"
    assert {row["uuid"] for row in gpus if row["gpu"] == 1} == {"GPU-00000001-0000-4000-8000-000000000000"}
    assert gaps == []
    assert result["gpu_reader_cpu_seconds"] > 0


@pytest.mark.long
def test_a_driver_that_hangs_is_a_gap_and_the_recorder_ticks_on(driver: StandIn, tmp_path: Path) -> None:
    driver.script("gpus 16")
    with recording(tmp_path / "rec", gpu_library=str(driver.place)) as recorder:
        until(recorder, lambda opened: len(opened.table("gpu_seconds")) > 0)
        driver.script("gpus 16", "hang nvmlDeviceGetSamples")
        until(recorder, lambda opened: any(row["kind"] == "gpu_driver_unresponsive" for row in rows(opened, "events")))
        readers = [pid for pid in _children(recorder.pid) if "gpu_reader" in _command(pid)]
        assert len(readers) == 1
        driver.script("gpus 16")
        until(recorder, lambda opened: any(row["kind"] == "gpu_driver_answers" for row in rows(opened, "events")))
        recorder.wait_for_frames(2)
        result = recorder.stop()
    with open_recording(tmp_path / "rec") as opened:
        (gap,) = [gap for gap in opened.gaps() if gap.source == "gpu"]
        spans = [row["interval_us"] for row in rows(opened, "cores") if row["cpu"] == 0]
    assert gap.to_us - gap.from_us >= 15_000_000
    assert "has not answered" in gap.why
    assert max(spans[1:]) < 5_000_000, "the ticks went on"
    assert result["missing"] == [one for one in result["missing"] if one["source"] != "gpu"]


def test_a_recorder_ends_while_the_driver_hangs(driver: StandIn, tmp_path: Path) -> None:
    driver.script("hang nvmlInitWithFlags")
    with recording(tmp_path / "rec", gpu_library=str(driver.place)) as recorder:
        recorder.wait_for_frames(3)
        (reader,) = [pid for pid in _children(recorder.pid) if "gpu_reader" in _command(pid)]
        recorder.stop()
    assert not Path(f"/proc/{reader}").exists()


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
