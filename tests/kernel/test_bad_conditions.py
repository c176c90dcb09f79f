"""What users have: no privileges, no tracefs, a full disk, a second recorder, a clock that is set. Each says what and
how to mend."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import RecorderProcess, recording
from tests.helpers.unprivileged import unprivileged

from zombiescope.store import log
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A directory that nobody may use, too."""
    place = Path("/tmp") / f"zombiescope-test-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    place.chmod(0o1777)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def missing(result: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {one["source"]: one for one in result["missing"]}


def test_an_ordinary_user_records_what_it_may(needs: Needs, open_tmp: Path) -> None:
    needs.root()
    needs.binary("setpriv", "util-linux")
    with recording(open_tmp / "r", prefix=unprivileged()) as recorder:
        recorder.wait_for_frames(3)
        result = recorder.stop()
    said = missing(result)
    # THEN each source that is closed is named, with why and the line that grants it
    assert {"stack samples", "kernel log (/dev/kmsg)", "systemd"} <= set(said)
    assert "CAP_PERFMON" in said["stack samples"]["grant"]
    assert "perf_event_paranoid" in said["stack samples"]["why"]
    assert "CAP_SYSLOG" in said["kernel log (/dev/kmsg)"]["grant"]
    assert result["samples"] == 0
    # AND the rest is there
    with open_recording(open_tmp / "r") as opened:
        assert opened.table("cores").num_rows >= 4
        assert opened.table("census").num_rows >= 2
        assert {gap.source for gap in opened.gaps()} >= {"stack samples"}


def test_only_the_documented_capabilities_give_everything(needs: Needs, open_tmp: Path) -> None:
    needs.tracefs()
    prefix = unprivileged("perfmon", "syslog", "sys_ptrace", "dac_read_search")
    with recording(open_tmp / "r", prefix=prefix) as recorder:
        recorder.wait_for_frames(3)
        result = recorder.stop()
    absent = set() if Path("/proc/schedstat").exists() else {"run queue delay"}  # what no privilege gives
    assert set(missing(result)) <= {"systemd"} | absent, result["missing"]
    with open_recording(open_tmp / "r") as opened:
        modules = {row["kind"] for row in opened.table("frames").to_pylist()}
        assert "kernel" in modules


def test_no_tracefs_is_reported_and_the_stacks_go_on(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    # GIVEN a mount namespace in which an empty, read-only directory covers tracefs, and nothing may be mounted
    hide = (
        "unshare", "-m", "sh", "-c",
        "umount -l /sys/kernel/tracing 2>/dev/null; umount -l /sys/kernel/debug 2>/dev/null; "
        'exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@"', "sh",
    )  # fmt: skip
    with recording(tmp_path / "r", prefix=hide) as recorder:
        recorder.wait_for_frames(2)
        result = recorder.stop()
    said = missing(result)
    assert "mount -t tracefs" in said["tracefs"]["grant"]
    assert "stack samples" not in said


def test_tracefs_is_mounted_privately_where_it_is_absent(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    bare = ("unshare", "-m", "sh", "-c", 'umount -l /sys/kernel/tracing 2>/dev/null; exec "$@"', "sh")
    before = Path("/proc/self/mountinfo").read_text()
    with recording(tmp_path / "r", prefix=bare) as recorder:
        recorder.wait_for_frames(2)
        result = recorder.stop()
    assert "tracefs" not in missing(result)
    assert Path("/proc/self/mountinfo").read_text() == before


def test_hidden_kernel_symbols_are_said(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    # Without CAP_SYSLOG kallsyms shows zeros, as it does with kptr_restrict=2.
    prefix = ("setpriv", "--bounding-set=-syslog", "--inh-caps=-syslog")
    with recording(tmp_path / "r", prefix=prefix) as recorder:
        recorder.wait_for_frames(3)
        result = recorder.stop()
    assert "kptr_restrict" in missing(result)["kernel symbols"]["why"]
    with open_recording(tmp_path / "r") as opened:
        names = {row["name"] for row in opened.table("frames").to_pylist() if row["kind"] == "kernel"}
    assert names <= {"[kernel]"}


def test_pressure_switched_off_is_said(needs: Needs, tmp_path: Path) -> None:
    needs.root()
    hide = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /proc/pressure && exec "$@"', "sh")
    with recording(tmp_path / "r", prefix=hide) as recorder:
        recorder.wait_for_frames(2)
        result = recorder.stop()
    assert "psi=1" in missing(result)["pressure"]["grant"]


def test_another_pid_namespace_is_not_mistaken_for_an_idle_node(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    # GIVEN a busy process outside, and a recorder that cannot see it
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        prefix = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
        with recording(tmp_path / "r", prefix=prefix) as recorder:
            recorder.wait_for_frames(4)
            os.kill(_only_child(recorder.pid), signal.SIGTERM)
            code, _, err = recorder.wait()
            assert code == 0, err
    finally:
        busy.kill()
        busy.wait()
    with open_recording(tmp_path / "r") as opened:
        assert "host PID namespace" in {one["source"] for one in opened.node["missing"]}
        rows = opened.table("samples").num_rows
        names = {row["comm"] for row in opened.table("tasks").to_pylist()}
    assert rows > 100
    assert "(outside this PID namespace)" in names


def _only_child(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_a_directory_that_may_not_be_written_is_refused_in_one_line(needs: Needs, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    recorder = RecorderProcess(blocked / "r")
    code, out, err = recorder.wait()
    assert (code, out) == (1, "")
    assert str(blocked) in err
    assert len(err.strip().splitlines()) == 1


def test_a_second_recorder_is_refused_with_the_pid_of_the_first(tmp_path: Path) -> None:
    with recording(tmp_path / "r") as first:
        second = RecorderProcess(tmp_path / "r")
        code, _, err = second.wait()
        assert code == 1
        assert f"pid {first.pid}" in err
        assert len(err.strip().splitlines()) == 1


@pytest.fixture
def small_disk(needs: Needs, tmp_path: Path) -> Iterator[Path]:
    needs.root()
    place = tmp_path / "disk"
    place.mkdir()
    assert os.system(f"mount -t tmpfs -o size=256k tmpfs {place}") == 0
    yield place
    os.system(f"umount -l {place}")


def test_a_full_disk_stops_nothing_and_nothing_is_lost_when_there_is_room_again(small_disk: Path) -> None:
    with recording(small_disk / "r", segment_s=5.0) as recorder:
        ballast = small_disk / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        full_since = time.time()
        time.sleep(8)
        # WHEN there is room again
        freed = time.time()
        ballast.unlink()
        recorder.wait_for_frames(6)
        result = recorder.stop()
    assert result["missing"] == [] or "disk" not in missing(result)
    with open_recording(small_disk / "r") as opened:
        times = sorted(set(opened.table("cores").column("time").cast("int64").to_pylist()))
        steps = [(after - before) / 1e6 for before, after in pairwise(times)]
        # THEN every second of the full disk is there, and the trouble is on record
        assert max(steps) < 2.5
        gaps = [gap for gap in opened.gaps() if gap.source == "disk"]
    assert gaps
    # The page that a segment ends in still takes a few frames, and tmpfs counts its pages per CPU: the disk may seem
    # full a little later than it is, and may once more take a frame in between.
    assert all(full_since - 2 < gap.from_us / 1e6 <= gap.to_us / 1e6 < freed + 3 for gap in gaps)


def test_a_clock_set_by_an_hour_bends_nothing(needs: Needs, tmp_path: Path) -> None:
    """The recorder's own view of the wall clock is set by libfaketime; the machine's clock stays as it is."""
    library = next(iter(Path("/usr/lib").glob("*/faketime/libfaketime.so.1")), None)
    if library is None:
        needs.binary("faketime", "faketime")
    control = tmp_path / "clock"
    control.write_text("+0")
    env = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(control),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    started = time.time()
    with recording(tmp_path / "r", env=env) as recorder:
        recorder.wait_for_frames(2)
        control.write_text("+3600")
        recorder.wait_for_frames(4)
        recorder.stop()
    ended = time.time()
    with open_recording(tmp_path / "r") as opened:
        steps = [event for event in opened.table("events").to_pylist() if event["kind"] == "clock_step"]
        rows = opened.table("cores").select(["time", "interval_us"])
        ticks = dict(
            zip(rows.column("time").cast("int64").to_pylist(), rows.column("interval_us").to_pylist(), strict=True)
        )
        times = sorted(ticks)
    assert len(steps) == 1
    assert "3600.0" in steps[0]["text"]
    before = [stamp for stamp in times if stamp < (ended + 60) * 1e6]
    after = [stamp for stamp in times if stamp > (started + 3500) * 1e6]
    # THEN each side is a steady hand, an hour apart, and nothing lies between: a tick is as far from the one before
    # it as the other clock says, which nobody sets
    assert len(before) + len(after) == len(times)
    assert len(before) >= 2
    assert len(after) >= 2
    for side in (before, after):
        assert [late - early for early, late in pairwise(side)] == [
            pytest.approx(ticks[late], abs=50_000) for late in side[1:]
        ]


def test_sigterm_in_the_middle_of_a_segment_closes_it(tmp_path: Path) -> None:
    with recording(tmp_path / "r", segment_s=600.0) as recorder:
        recorder.wait_for_frames(2)
        result = recorder.stop()
    assert result["ticks"] >= 3
    [path] = recorder.segments()
    with path.open("rb") as file:
        reader = log.SegmentReader(file)
        frames = list(reader.frames())
    assert (reader.closed, reader.damage) == (True, None)
    assert len(frames) >= 3
