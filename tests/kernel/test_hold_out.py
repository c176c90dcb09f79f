"""A stressor in its cage on the real kernel: it is measured, it cannot reach the node, and nothing of it stays."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.machine import of_the_lab

from zombiescope.base import python as _python
from zombiescope.lab import cage, leftovers

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="cages need root"),
    pytest.mark.skipif(shutil.which("stress-ng") is None, reason="needs stress-ng: apt-get install stress-ng"),
]


def start(stressor: str, seconds: int) -> subprocess.Popen[str]:
    command = _python.module("zombiescope.lab.cage", stressor, str(seconds))
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def test_it_is_measured_and_nothing_stays() -> None:
    found = result(start("pipe", 1))
    assert found["exit"] == 0, found
    assert found["system_s"] > 0.05
    assert not leftovers.find(cage.mark("pipe"))


def test_one_that_cannot_run_says_why() -> None:
    found = result(start("cyclic", 1))
    assert "skip" in found["said"], "it needs a privilege that nobody has"
    assert found["system_s"] < 0.5


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_gone_when_it_is_told_to_end(number: signal.Signals) -> None:
    process = start("pipe", 30)
    assert process.stdout is not None
    assert process.stdout.readline() == "going\n"
    process.send_signal(number)
    assert "killed" in result(process)["said"]
    assert not leftovers.find(cage.mark("pipe"))


def test_it_has_an_ordinary_user_limits_and_namespaces_of_its_own() -> None:
    process = start("pipe", 10)
    assert process.stdout is not None
    assert process.stdout.readline() == "going\n"
    try:
        pid = _stressor()
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        assert set(status["Uid"].split()) == {"65534"}
        assert int(status["CapEff"], 16) == 0
        for name in ("mnt", "net", "ipc", "uts"):
            assert Path(f"/proc/{pid}/ns/{name}").readlink() != Path(f"/proc/self/ns/{name}").readlink(), name
        assert f"zombiescope-lab-{cage.mark('pipe')}" in Path(f"/proc/{pid}/cgroup").read_text()
    finally:
        process.terminate()
        result(process)


def _stressor() -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for pid in leftovers.find(cage.mark("pipe")).processes:
            if Path(f"/proc/{pid}/comm").read_text().startswith("stress-ng"):
                return pid
        time.sleep(0.05)
    raise AssertionError(f"no stressor came up: {of_the_lab()}")
