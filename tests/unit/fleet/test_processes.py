"""Readers that are processes: they say what one process says, and none is left when the command is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.helpers.cli import Cli
from tests.unit.fleet.conftest import reported

SAYS = """
import json, sys
from pathlib import Path
from zombiescope.fleet.engines import local
from zombiescope.fleet.gather import gather
from zombiescope.fleet.report import make
if __name__ == "__main__":
    local.ALONE = 0
    found = gather(sys.argv[1], Path(sys.argv[2]), local.LocalEngine(2), None)
    print(json.dumps(make(found, "duckdb").document()))
"""


def test_two_processes_say_what_one_says(fleet: Path, tmp_path: Path) -> None:
    script = tmp_path / "says.py"
    script.write_text(SAYS)
    command = [sys.executable, str(script), str(fleet), str(tmp_path / "two")]
    done = subprocess.run(command, env=Cli(tmp_path).environment(), capture_output=True, check=True, timeout=120)
    two = json.loads(done.stdout)
    one = json.loads(json.dumps(reported(fleet, tmp_path / "one").document()))
    assert two | {"read": None} == one | {"read": None}


def children(pid: int) -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.add(int(entry.name))
            except OSError:
                continue
    return found


def gone(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


SCRIPT = """
import sys, time
from pathlib import Path
from zombiescope.fleet.engines import local
from zombiescope.fleet.gather import gather
if __name__ == "__main__":
    local.ALONE = 0
    gather(sys.argv[1], Path(sys.argv[2]), local.LocalEngine(2), None, progress=lambda done, of: time.sleep(60))
"""


def test_readers_end_with_a_command_that_is_killed(fleet: Path, tmp_path: Path) -> None:
    script = tmp_path / "read.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(fleet), str(tmp_path / "results")]
    process = subprocess.Popen(command, env=Cli(tmp_path).environment(), stderr=subprocess.DEVNULL)
    try:
        workers: set[int] = set()
        while len(workers) < 3 or not list((tmp_path / "results").rglob("items-*")):
            assert process.poll() is None
            time.sleep(0.05)
            workers |= children(process.pid)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(10)
    deadline = time.monotonic() + 20
    while not all(map(gone, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in workers if not gone(pid)] == []
