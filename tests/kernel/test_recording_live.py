"""A recording while it is made: fresh, bounded, compacted behind the reader's back, and full of names."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.store.reader import Recording, open_recording

pytestmark = pytest.mark.kernel

POD = "0f3c1d5e-7a52-4b8e-9c1d-2f6b8a4e1c33"
CONTAINER = "4a7d1ed414474e4033ac29ccb8653d9b8a9c1f0e2d3c4b5a69788796a5b4c3d2"


def test_a_reader_sees_what_happened_three_seconds_ago(tmp_path: Path) -> None:
    with recording(tmp_path / "r") as recorder:
        recorder.wait_for_frames(1)
        ages = []
        for _ in range(10):
            time.sleep(0.3)
            with open_recording(tmp_path / "r") as opened:
                newest = opened.table("cores").column("time").cast("int64").to_pylist()[-1]
            ages.append(time.time() - newest / 1e6)
        recorder.stop()
    assert max(ages) < 3, ages


def test_ten_ticks_a_second(tmp_path: Path) -> None:
    with recording(tmp_path / "r", interval_s=0.1) as recorder:
        recorder.wait_for_frames(3)
        result = recorder.stop()
    assert result["ticks"] >= 25
    with open_recording(tmp_path / "r") as opened:
        rows = [row for row in opened.table("cores").to_pylist() if row["cpu"] == 0]
    widths = sorted(row["interval_us"] for row in rows)
    assert widths[len(widths) // 2] == pytest.approx(100_000, rel=0.3)


def test_the_disk_budget_holds_while_it_runs(tmp_path: Path) -> None:
    # GIVEN a budget far smaller than what is recorded, checked every 30 s; the check at the start sees an old recording
    with recording(tmp_path / "r", segment_s=0.5) as recorder:
        recorder.wait_for_frames(12)
        recorder.stop()
    before = {path.name for path in recorder.segments()}
    assert len(before) >= 8
    half = sum(path.stat().st_size for path in recorder.node_dir.rglob("*") if path.is_file()) // 2
    with recording(tmp_path / "r", segment_s=1.0, max_bytes=half) as recorder:
        recorder.wait_for_frames(2)
        left = {path.name for path in recorder.segments()} & before
        recorder.stop()
    assert len(left) < len(before)
    # THEN the oldest went first
    assert sorted(left) == sorted(before)[len(before) - len(left) :]
    with open_recording(tmp_path / "r") as opened:
        assert opened.table("cores").num_rows > 0


def test_compaction_behind_the_readers_back_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with recording(tmp_path / "r", segment_s=2.0, compact_every_s=4.0) as recorder:
        end = time.monotonic() + 60
        while not list(recorder.node_dir.glob("date=*/part-*.json")):
            assert time.monotonic() < end, "no Parquet within a minute"
            time.sleep(0.5)
        recorder.wait_for_frames(3)
        result = recorder.stop()
    assert result["helper_cpu_seconds"] > 0
    with open_recording(tmp_path / "r") as opened:
        assert opened.manifests
        times = [row["time"].timestamp() for row in opened.table("cores").to_pylist() if row["cpu"] == 0]
        assert len(times) == len(set(times))
        assert max(late - early for early, late in itertools.pairwise(sorted(times))) < 2.5
        _names_are_whole(opened)


def _names_are_whole(opened: Recording) -> None:
    """Every id that a sample refers to is defined."""
    stacks = {row["stack"]: row["frames"] for row in opened.table("stacks").to_pylist()}
    frames = set(opened.table("frames").column("frame").to_pylist())
    tasks = set(opened.table("tasks").column("task").to_pylist())
    for row in opened.table("samples").to_pylist():
        assert set(stacks[row["stack"]]) <= frames
        assert row["task"] in tasks


@contextmanager
def pod_cgroup(mount: Path) -> Iterator[Path]:
    """A cgroup where kubelet's cgroupfs driver would have put a container."""
    top = mount / f"zombiescope-test-{os.getpid()}"
    place = top / "kubepods" / "burstable" / f"pod{POD}" / CONTAINER
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        for directory in (place, *itertools.takewhile(lambda one: one != mount, place.parents)):
            directory.rmdir()


def test_a_process_in_a_pod_is_known_by_container_and_pod(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    with pod_cgroup(needs.memory_cgroup()) as place:
        hog = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(.5)\nwhile True: pass"])
        try:
            (place / "cgroup.procs").write_text(str(hog.pid))
            with recording(tmp_path / "r") as recorder:
                recorder.wait_for_frames(3)
                recorder.stop()
        finally:
            hog.kill()
            hog.wait()
    with open_recording(tmp_path / "r") as opened:
        [task, *_] = [row for row in opened.table("tasks").to_pylist() if row["pid"] == hog.pid]
    assert (task["pod"], task["container"]) == (POD, CONTAINER)
    assert task["cmdline"].startswith(sys.executable)
    assert task["exe"]
    assert task["start_ticks"] > 0


SOURCE = """
#include <unistd.h>
__attribute__((noinline)) void burn_the_core(volatile unsigned long *x) { for (long i = 0; i < 50000000; i++) *x += i; }
__attribute__((noinline)) void walk_the_zombies(volatile unsigned long *x) { burn_the_core(x); *x += 1; }
int main(void) { volatile unsigned long x = 0; alarm(8); for (;;) { walk_the_zombies(&x); x++; } }
"""


def test_names_are_in_the_recording_not_on_the_machine(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    needs.binary("gcc", "gcc")
    program = tmp_path / "trainer"
    subprocess.run(
        ["gcc", "-O0", "-fno-omit-frame-pointer", "-x", "c", "-", "-o", str(program)],
        input=SOURCE,
        text=True,
        check=True,
    )
    process = subprocess.Popen([str(program)])
    try:
        with recording(tmp_path / "r") as recorder:
            recorder.wait_for_frames(4)
            recorder.stop()
    finally:
        process.kill()
        process.wait()
        program.unlink()
    with open_recording(tmp_path / "r") as opened:
        frames = {row["frame"]: (row["name"], row["module"]) for row in opened.table("frames").to_pylist()}
        stacks = [[frames[one] for one in row["frames"]] for row in opened.table("stacks").to_pylist()]
    wanted = [("main", "trainer"), ("walk_the_zombies", "trainer"), ("burn_the_core", "trainer")]
    assert any(wanted == [frame for frame in stack if frame in wanted] for stack in stacks)


def test_the_command_becomes_the_recorder(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "zombiescope"), "record", str(tmp_path / "r"), "--for", "3s", "--json"]
    env = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(tmp_path / "runtime")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    out, _ = process.communicate(timeout=60)
    result = json.loads(out)
    assert process.returncode == 0
    assert result["schema"] == "zombiescope.record/1"
    assert result["ticks"] >= 3
    assert result["recording"] == str(tmp_path / "r")
    wanted = "samples idle_samples lost ticks_late events cpu_seconds startup_cpu_seconds max_rss_bytes bytes missing"
    assert set(wanted.split()) <= set(result)
    # The process that was started is the one that recorded: a kill -9 of it leaves nothing behind.
    lock = json.loads((next((tmp_path / "r").glob("node=*")) / "lock").read_text())
    assert lock["pid"] == process.pid


def test_a_core_that_is_left_out_has_its_time_and_no_stacks(tmp_path: Path) -> None:
    # An idle core has no stacks either. It ends by itself, whatever becomes of us.
    program = "import os, time\nos.sched_setaffinity(0, {0})\nwhile time.process_time() < 20: pass"
    busy = subprocess.Popen([sys.executable, "-c", program])
    with recording(tmp_path / "r", leave_out_cores="1") as recorder:
        recorder.wait_for_frames(4)
        recorder.stop()
    busy.kill()
    busy.wait()
    with open_recording(tmp_path / "r") as opened:
        sampled = set(opened.table("samples", columns=("cpu",)).column("cpu").to_pylist())
        rows = [row for row in opened.table("cores").to_pylist() if row["cpu"] == 1]
        gaps = {gap.source for gap in opened.gaps()}
    assert sampled
    assert 1 not in sampled
    assert rows
    assert {(row["samples"], row["expected_samples"], row["max_gap_us"]) for row in rows} == {(None, None, None)}
    assert not [source for source in gaps if source.startswith("stack samples")]
