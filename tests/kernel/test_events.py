"""Events from real sources: a real systemd whose unit crash-loops, the real kernel log, marks from a script."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers import systemd_tree
from tests.helpers.recorder_process import recording

from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel


def events(directory: Path, kind: str) -> list[dict[str, Any]]:
    with open_recording(directory) as opened:
        rows = opened.table("events").to_pylist()
    return [{**row, "fields": json.loads(row["fields"])} for row in rows if row["kind"] == kind]


def test_a_crash_looping_unit_is_on_record_with_its_counter(needs: Needs, tmp_path: Path) -> None:
    lacking = systemd_tree.missing_tool()
    if lacking:
        needs.binary(lacking, "systemd-container")
    with systemd_tree.boot() as machine:
        machine.add_service(
            "agent.service", "ExecStart=/bin/false\nRestart=always\nRestartSec=300ms", "StartLimitIntervalSec=0"
        )
        with recording(tmp_path / "r", env={"DBUS_SYSTEM_BUS_ADDRESS": machine.bus_address}) as recorder:
            machine.run("systemctl", "start", "--no-block", "agent.service")
            recorder.wait_for_frames(5)
            failed = machine.run("systemctl", "--failed", "--plain", "--no-legend")
            result = recorder.stop()
    restarts = events(tmp_path / "r", "unit_restart")
    assert restarts
    assert restarts[-1]["fields"]["unit"] == "agent.service"
    assert restarts[-1]["fields"]["n_restarts"] >= 3
    assert restarts[-1]["source"] == "systemd"
    assert "agent.service" not in failed
    assert "systemd" not in {one["source"] for one in result["missing"]}


def test_a_line_written_by_a_process_is_not_taken_for_the_kernels(needs: Needs, tmp_path: Path) -> None:
    needs.kmsg()
    with recording(tmp_path / "r") as recorder:
        # GIVEN a line that would be a NIC reset if the kernel had written it
        with open("/dev/kmsg", "w") as log:
            log.write("<4>ena 0000:20:03.0 eth0: TX q 5 is paused for too long (threshold 5000000). "
                      "Time since last napi 6596000 usec. napi scheduled: 1\n")  # fmt: skip
        written = time.time()
        recorder.wait_for_frames(2)
        recorder.stop()
    assert not events(tmp_path / "r", "nic_tx_timeout")
    lines = [event for event in events(tmp_path / "r", "kernel_log") if "TX q 5" in event["text"]]
    assert [line["source"] for line in lines] == ["kmsg-user"]
    # The stamp of the kernel log runs on another clock; live records tell the difference.
    assert lines[0]["time"].timestamp() == pytest.approx(written, abs=0.5)


def test_a_training_script_puts_its_marks_on_the_axis(tmp_path: Path) -> None:
    with recording(tmp_path / "r") as recorder:
        runtime = str(tmp_path / "runtime")
        script = "import zombiescope, sys; sys.exit(not zombiescope.mark('epoch 12'))"
        done = subprocess.run([sys.executable, "-c", script], env={"ZOMBIESCOPE_RUNTIME_DIR": runtime})
        sent = time.time()
        recorder.wait_for_frames(2)
        recorder.stop()
    assert done.returncode == 0
    [mark] = events(tmp_path / "r", "mark")
    assert mark["text"] == "epoch 12"
    assert mark["time"].timestamp() == pytest.approx(sent, abs=2)
    assert mark["fields"]["uid"] >= 0


def test_a_flood_of_marks_is_cut_and_the_recorder_goes_on(tmp_path: Path) -> None:
    with recording(tmp_path / "r") as recorder:
        script = "import zombiescope\nfor n in range(5000): zombiescope.mark(str(n))"
        subprocess.run(
            [sys.executable, "-c", script], env={"ZOMBIESCOPE_RUNTIME_DIR": str(tmp_path / "runtime")}, check=True
        )
        recorder.wait_for_frames(2)
        recorder.stop()
    assert 0 < len(events(tmp_path / "r", "mark")) <= 1000


FILL = """
import mmap
with open("/dev/shm/batch", "wb+") as file:
    file.truncate(4 << 20)
    mmap.mmap(file.fileno(), 4 << 20)[:] = bytes(4 << 20)
"""


def test_a_worker_that_found_no_room_in_shared_memory_is_on_record(needs: Needs, tmp_path: Path) -> None:
    needs.tracefs()
    with recording(tmp_path / "r") as recorder:
        recorder.wait_for_frames(1)
        # GIVEN a process with a /dev/shm of 1 MB that maps 4 MB of it and writes them
        script = f"mount -t tmpfs -o size=1m shm /dev/shm && exec {sys.executable} -c '{FILL}'"
        died = subprocess.run(["unshare", "--mount", "sh", "-c", script], check=False, timeout=30)
        recorder.wait_for_frames(3)
        recorder.stop()
    assert died.returncode == -7
    (told,) = [one for one in events(tmp_path / "r", "sigbus") if one["fields"]["comm"].startswith("python")]
    assert told["severity"] == "warning"
