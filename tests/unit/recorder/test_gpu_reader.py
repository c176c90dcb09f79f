"""What the reader of the GPUs asks, and what becomes of each answer: rows, states, nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

import pytest
from tests.helpers.nvml_stand_in import StandIn

from zombiescope.base import python as _python
from zombiescope.kernel.nvml import GpuProcess, Library
from zombiescope.recorder import gpu_device, gpu_reader
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.gpu_device import LATE_US, SecondBook, WatchedGpu
from zombiescope.recorder.gpu_reader import COUNTERS, EVERY_S, FIGURES, SAMPLES, GpuReader, Pace, Tenants
from zombiescope.store import schema

NOW_US = 1_760_000_000_000_000
SECOND_US = 1_000_000


def rows(table: schema.Table, found: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(table.names, row, strict=True)) for row in found]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> StandIn:
    return StandIn(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def driver(compiled: StandIn) -> StandIn:
    compiled.script()
    return compiled


def library(driver: StandIn) -> Library:
    made = Library(str(driver.place))
    made.start()
    return made


# --- seconds ---------------------------------------------------------------------------------------------------------


def test_samples_are_put_under_the_second_that_they_end_in() -> None:
    book = SecondBook(3)
    book.add_samples("utilisation", [(NOW_US + 200_000 * step, 10 * step) for step in range(1, 11)])
    book.add_samples("power_mw", [(NOW_US + 300_000, 140_600)])
    assert book.take(NOW_US + SECOND_US) == [], "something of it may still come"
    first, second = rows(schema.GPU_SECONDS, book.take(NOW_US + 2 * SECOND_US + LATE_US))
    assert (first["time"], first["gpu"], first["utilisation"]) == (NOW_US + SECOND_US, 3, 30)
    assert first["utilisation_samples"] == [10, 20, 30, 40, 50]
    assert first["power_w"] == 141
    assert (second["utilisation"], second["power_w"]) == (80, None), "not measured is not zero"


def test_what_comes_after_its_second_was_handed_out_makes_no_second_row() -> None:
    book = SecondBook(0)
    book.add_samples("utilisation", [(NOW_US + 1, 5)])
    assert len(book.take(NOW_US + SECOND_US + LATE_US)) == 1
    book.add_samples("utilisation", [(NOW_US + 2, 5)])
    assert book.take(NOW_US + 9 * SECOND_US) == []


def test_a_second_waits_for_the_samples_that_were_not_asked_for_yet() -> None:
    # GIVEN one that was asked for after its first fifth
    book = SecondBook(0)
    book.asked_us = 10_200_000
    book.add_samples("utilisation", [(10_200_000, 50)])
    # WHEN something else is said long after its end
    assert book.take(13_000_000) == []
    # THEN its other samples still belong to it
    book.asked_us = 15_200_000
    book.add_samples("utilisation", [(10_400_000, 60), (11_000_000, 70)])
    (row,) = book.take(15_200_000)
    assert tuple(row[schema.GPU_SECONDS.names.index("utilisation_samples")]) == (50, 60, 70)


def test_a_book_is_bounded() -> None:
    book = SecondBook(0)
    book.add_samples("utilisation", [(NOW_US + second * SECOND_US, 1) for second in range(5000)])
    book.add_samples("utilisation", [(NOW_US + 4999 * SECOND_US + 1, 1)] * 5000)
    found = rows(schema.GPU_SECONDS, book.take(NOW_US + 9999 * SECOND_US))
    assert len(found) == 64
    assert max(len(row["utilisation_samples"]) for row in found) <= 64


# --- a GPU -----------------------------------------------------------------------------------------------------------


def test_counters_of_lost_clocks_are_differences_and_a_fall_is_not_one(driver: StandIn) -> None:
    gpu = WatchedGpu(library(driver), 0, NOW_US)
    for second, value in enumerate((5_000, 7_500, 100, 400)):
        driver.script(f"field 270 {value}")
        gpu.ask_figures(NOW_US + second * 10 * SECOND_US + 1)
    found = rows(schema.GPU_SECONDS, gpu.book.take(NOW_US + 99 * SECOND_US))
    assert [row["hw_thermal_ns"] for row in found] == [None, 2_500, None, 300]
    assert [row["power_cap_ns"] for row in found] == [None] * 4, "not supported"
    assert {row["clock_sm_mhz"] for row in found} == {1980}


def test_the_temperature_limit_is_said(driver: StandIn) -> None:
    driver.script("gpus 2", "slowdown 1 0", "temperature 1 40")
    assert GpuReader(library(driver), WallClock()).turn(0.0)["slowdown_c"] == {"0": 87, "1": 92}


def test_what_is_not_supported_is_asked_once_and_said_once(driver: StandIn) -> None:
    driver.script("fail nvmlDeviceGetTemperature -1 3", "fail nvmlDeviceGetClockInfo -1 4", "field 74 1")
    reader = GpuReader(library(driver), WallClock())
    assert reader.turn(100.0)["lacks"] == ["clocks", "counters of errors", "temperature"]
    driver.script("field 74 1")
    reader.pace.due_s.clear()
    said = reader.turn(120.0)
    assert said["lacks"] == []
    reader.pace.due_s.clear()
    (gpu,) = reader.gpus
    later_us = gpu.book.asked_us = time.time_ns() // 1000 + 9 * SECOND_US
    (row,) = rows(schema.GPU_SECONDS, gpu.book.take(later_us))[-1:]
    assert row["temperature_c"] is None, "off for good: the driver works now, and is not asked"
    assert row["reasons"] == 4


def test_mig_has_no_utilisation_and_says_so(driver: StandIn) -> None:
    driver.script("gpus 2", "mig 1", "util 0 50", "util 1 50", "field 74 1", "field 5 0")
    reader = GpuReader(library(driver), WallClock())
    now_us = time.time_ns() // 1000
    for gpu in reader.gpus:
        gpu.forget_time(now_us - 5 * SECOND_US)
    said = reader.turn(100.0)
    assert said["lacks"] == [gpu_device.MIG]
    whole, sliced = rows(schema.GPUS, said["tables"]["gpus"])
    assert (whole["mig"], sliced["mig"]) == (0, 1)
    seconds = rows(schema.GPU_SECONDS, said["tables"]["gpu_seconds"])
    assert {row["utilisation"] for row in seconds if row["gpu"] == 0} == {50}
    sliced_seconds = [row for row in seconds if row["gpu"] == 1]
    assert sliced_seconds
    assert {row["utilisation"] for row in sliced_seconds} == {None}
    assert {row["power_w"] for row in sliced_seconds} == {140}


@pytest.mark.parametrize(("line", "state"), [("lost 1", "lost"), ("fail nvmlDeviceGetSamples 1 16", "reset_required")])
def test_a_gpu_that_is_lost_keeps_its_row_and_comes_back(driver: StandIn, line: str, state: str) -> None:
    driver.script("gpus 2")
    reader = GpuReader(library(driver), WallClock())
    reader.turn(100.0)
    driver.script("gpus 2", line)
    (row,) = rows(schema.GPUS, reader.turn(105.0)["tables"]["gpus"])
    assert (row["gpu"], row["state"], row["name"]) == (1, state, "Stand-in GPU")
    assert reader.turn(110.0)["tables"]["gpus"] == [], "said once"
    driver.script("gpus 2")
    (row,) = rows(schema.GPUS, reader.turn(300.0)["tables"]["gpus"])
    assert (row["gpu"], row["state"]) == (1, "ok")


def test_a_gpu_that_answers_nothing_is_unreadable(driver: StandIn) -> None:
    reader = GpuReader(library(driver), WallClock())
    reader.turn(100.0)
    calls = (
        "nvmlDeviceGetSamples", "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetFieldValues", "nvmlDeviceGetClockInfo",
        "nvmlDeviceGetTemperature", "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetComputeRunningProcesses_v3",
    )  # fmt: skip
    driver.script(*(f"fail {call} -1 999" for call in calls))
    (row,) = rows(schema.GPUS, reader.turn(120.0)["tables"]["gpus"])
    assert row["state"] == "unreadable"
    driver.script()
    (row,) = rows(schema.GPUS, reader.turn(140.0)["tables"]["gpus"])
    assert row["state"] == "ok"


def test_sums_of_counters_that_a_generation_has(driver: StandIn) -> None:
    driver.script("field 5 11", "field 38 1", "field 52 2", "field 213 4", "field 144 1")
    gpu = WatchedGpu(library(driver), 0, NOW_US)
    gpu.ask_counters()
    (row,) = rows(schema.GPUS, [gpu.row(NOW_US, "570")])
    assert (row["ecc_corrected"], row["nvlink_errors"], row["nvlink_recoveries"], row["remap_pending"]) == (11, 3, 4, 1)
    assert row["pcie_replays"] is None, "not measured is not zero"


def test_sixteen_gpus_and_no_more_than_sixty_four(driver: StandIn) -> None:
    driver.script("gpus 16")
    assert len(GpuReader(library(driver), WallClock()).turn(1.0)["tables"]["gpus"]) == 16
    driver.script("gpus 200")
    reader = GpuReader(library(driver), WallClock())
    assert len(reader.gpus) == 64
    assert "136 GPUs beyond the first 64" in reader.turn(1.0)["lacks"]


def test_a_clock_that_is_set_back_does_not_stop_the_samples(driver: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = WallClock()
    reader = GpuReader(library(driver), clock)
    hour_us = 3600 * SECOND_US
    for gpu in reader.gpus:
        gpu.forget_time(time.time_ns() // 1000 + hour_us)  # as far as was read, before the clock was set back an hour
    clock.offset_ns += hour_us * 1000
    reader.turn(100.0)
    time.sleep(0.5)
    reader.gpus[0].ask_samples(time.time_ns() // 1000 + 9 * SECOND_US)
    assert reader.gpus[0].book.take(time.time_ns() // 1000 + 9 * SECOND_US)


# --- processes -------------------------------------------------------------------------------------------------------


def proc(root: Path, pid: int, ticks: int, cgroup: str = "/system.slice/train.service", comm: str = "python3") -> None:
    place = root / "proc" / str(pid)
    place.mkdir(parents=True, exist_ok=True)
    tail = ["R", "1", *["0"] * 17, str(ticks), *["0"] * 30]
    (place / "stat").write_text(f"{pid} ({comm}) {' '.join(tail)}\n")
    (place / "cgroup").write_text(f"0::{cgroup}\n")


def test_a_process_comes_grows_and_leaves(tmp_path: Path) -> None:
    proc(tmp_path, 7, 100, "/kubepods/burstable/pod0a1b2c3d-0000-4000-8000-000000000000/" + "ab12" * 16)
    tenants = Tenants(2, str(tmp_path))
    (came,) = tenants.update([GpuProcess(7, 1 << 30)])
    assert (came.gpu, came.pid, came.start_ticks, came.comm, came.ended) == (2, 7, 100, "python3", 0)
    assert (came.container, came.pod) == ("ab12" * 16, "0a1b2c3d-0000-4000-8000-000000000000")
    assert tenants.update([GpuProcess(7, (1 << 30) + 1)]) == []
    (grown,) = tenants.update([GpuProcess(7, 1 << 33)])
    assert grown.memory_bytes == 1 << 33
    (left,) = tenants.update([])
    assert (left.pid, left.ended, left.container) == (7, 1, "ab12" * 16)
    assert len(left.row(NOW_US)) == len(schema.GPU_PROCESSES.names)


def test_a_process_that_exits_while_it_is_read_is_no_row(tmp_path: Path) -> None:
    tenants = Tenants(0, str(tmp_path))
    assert tenants.update([GpuProcess(7, None)]) == []
    assert tenants.update([]) == []
    assert tenants.update([GpuProcess(8, None)]) == []
    (nameless,) = tenants.update([GpuProcess(8, None)])
    assert (nameless.pid, nameless.comm) == (8, None), "the host's processes are not ours to see"


def test_a_number_that_another_process_has_now(tmp_path: Path) -> None:
    proc(tmp_path, 7, 100)
    tenants = Tenants(0, str(tmp_path))
    tenants.update([GpuProcess(7, None)])
    proc(tmp_path, 7, 900, comm="evil\x1b[31m")
    left, came = tenants.update([GpuProcess(7, None)])
    assert (left.start_ticks, left.ended, came.start_ticks, came.ended) == (100, 1, 900, 0)
    assert came.comm is not None
    assert came.comm.isprintable()


# --- how often -------------------------------------------------------------------------------------------------------


def test_cheap_questions_are_asked_often_and_dear_ones_rarely() -> None:
    cheap, dear, absurd = Pace(8), Pace(8), Pace(8)
    for kind in EVERY_S:
        cheap.asked(kind, 0.0, 0.002)
        dear.asked(kind, 0.0, 0.010)
        absurd.asked(kind, 0.0, 2.0)
    assert [cheap.every_s(kind) for kind in EVERY_S] == [often for often, _ in EVERY_S.values()]
    assert [absurd.every_s(kind) for kind in EVERY_S] == [rare for _, rare in EVERY_S.values()]
    assert sum(0.010 / dear.every_s(kind) for kind in EVERY_S) <= 0.002 * 1.001
    assert Pace(16).allowed == 2 * Pace(8).allowed
    assert Pace(1).due(5.0) == [SAMPLES, FIGURES, COUNTERS], "all of them at the start"
    assert absurd.every_s(SAMPLES) < 14, "the driver keeps samples for 14 s"


# --- the process -----------------------------------------------------------------------------------------------------


def start(driver: StandIn) -> subprocess.Popen[bytes]:
    command = _python.module("zombiescope.recorder.gpu_reader", str(driver.place))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def first_round(lines: IO[Any]) -> dict[str, Any]:
    """What is said before it is what is asked."""
    while "asks" in (said := json.loads(lines.readline())):
        pass
    return dict(said)


def test_it_ends_when_nobody_listens(driver: StandIn) -> None:
    with start(driver) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        said = first_round(process.stdout)
        assert said["first"] is True
        assert said["cpu_us"] > 0
        process.stdin.close()
        assert process.wait(timeout=20) == 0


@pytest.mark.parametrize("code", [9, 12, 18])
def test_a_driver_that_cannot_be_asked_is_said(driver: StandIn, code: int) -> None:
    driver.script(f"fail nvmlInitWithFlags -1 {code}")
    with start(driver) as process:
        out, _ = process.communicate(timeout=20)
    assert json.loads(out.splitlines()[-1])["fault"] == code


def test_no_library(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "zombiescope.recorder.gpu_reader", str(tmp_path / "none.so")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env=dict(os.environ))
    assert json.loads(done.stdout.splitlines()[-1])["fault"] == gpu_reader.NO_LIBRARY


def test_a_gpu_that_has_to_be_reset_is_let_go_of_once_nobody_uses_it(driver: StandIn) -> None:
    # GIVEN a process on the GPU, which has to be reset
    with subprocess.Popen(["sleep", "60"]) as user:
        reader = GpuReader(library(driver), WallClock())
        reader._tenants[0].update([GpuProcess(user.pid, 1 << 30)])
        for one in reader.gpus:
            one.state = "reset_required"
        reader._tenants[0]._known.setdefault(user.pid, reader._tenants[0]._came(GpuProcess(user.pid, 1), 1))
        others = [one.index for one in reader.gpus[1:]]
        # THEN the user is the one in the way, and when it is gone we are
        assert reader.to_be_reset() == others
        user.kill()
        user.wait()
    assert reader.to_be_reset() == [0, *others]
    reader.gpus[0].state = "ok"
    assert reader.to_be_reset() == others


# --- how it is connected ---------------------------------------------------------------------------------------------


def test_lanes_and_fabric_are_told_with_the_counters(driver: StandIn) -> None:
    driver.script("gpus 2", "lanes 1 8", "fabric 1 1", "field 74 1")
    reader = GpuReader(library(driver), WallClock())
    told = reader.turn(0.0)["links"]
    assert told["0"] == {"pcie_width": 16, "pcie_width_max": 16, "pcie_generation": 5}
    assert told["1"] == {**told["0"], "pcie_width": 8, "fabric_state": 1, "fabric_status": 0}
    assert reader.turn(1.0)["links"] == {}
    assert "fabric" not in str(reader.gpus[0].lacks)
