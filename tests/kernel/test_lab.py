"""The laboratory on the real machine: a run from beginning to end, and that nothing of it is left, however it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.machine import Machine, of_the_lab

from zombiescope.lab import leftovers
from zombiescope.lab.requirements import lacks
from zombiescope.lab.scenario import by_id

pytestmark = pytest.mark.kernel

LAB = [sys.executable, "-m", "zombiescope.cli.main", "lab"]
MOMENTS_S = 20.0


@pytest.fixture
def machine(needs: Needs) -> Machine:
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    leftovers.remove(leftovers.find())
    return Machine.now()


def wait_for(what: str, done: object) -> None:
    end = time.monotonic() + MOMENTS_S
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end, what
        time.sleep(0.05)


def test_a_run_names_the_fault_and_leaves_nothing(needs: Needs, machine: Machine) -> None:
    for missing in lacks(by_id("mount-storm")):
        needs.lack(str(missing))
    done = subprocess.run(
        [*LAB, "run", "mount-storm", "--yes", "--json"], capture_output=True, text=True, timeout=120, check=False
    )
    found = json.loads(done.stdout)
    assert found["schema"] == "zombiescope.lab/1"
    assert found["scenario"] == "mount-storm"
    assert found["expected"]["pattern"] == found["found"]["pattern"] == "mount-storm"
    assert found["found"]["culprit"].startswith("mount-reader")
    assert found["pass"] is True
    assert done.returncode == 0
    assert found["onset_to_named_s"] is None or found["onset_to_named_s"] > 0
    assert Machine.now() == machine


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("scenario", ["zombie-tmpfs", "packet-flood"])
def test_a_run_that_is_ended_half_way_leaves_nothing(
    needs: Needs, machine: Machine, scenario: str, number: signal.Signals
) -> None:
    for missing in lacks(by_id(scenario)):
        needs.lack(str(missing))
    with subprocess.Popen([*LAB, "run", scenario, "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find(scenario).processes)
        process.send_signal(number)
        assert process.wait(60) == 130
    assert Machine.now() == machine


def test_a_run_whose_recorder_dies_half_way_says_so_and_leaves_nothing(needs: Needs, machine: Machine) -> None:
    """An exception in the middle of the fault."""
    for missing in lacks(by_id("packet-flood")):
        needs.lack(str(missing))
    with subprocess.Popen([*LAB, "run", "packet-flood", "--yes"], stderr=subprocess.PIPE, text=True) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find("packet-flood").processes)
        recorder = next(int(one.split()[0]) for one in of_the_lab() if "zombiescope.recorder" in one)
        os.kill(recorder, signal.SIGKILL)
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 1
    assert "the recorder ended early" in said
    assert "Traceback" not in said
    assert Machine.now() == machine


def test_a_fault_that_dies_half_way_leaves_nothing(needs: Needs, machine: Machine) -> None:
    for missing in lacks(by_id("packet-flood")):
        needs.lack(str(missing))
    with subprocess.Popen([*LAB, "run", "packet-flood", "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's program", lambda: leftovers.find("packet-flood").processes)
        for pid in leftovers.find("packet-flood").processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert process.wait(60) != 0
    assert Machine.now() == machine


def test_a_run_that_is_killed_takes_everything_with_it(needs: Needs, machine: Machine) -> None:
    """The supervisor is told by the kernel (PR_SET_PDEATHSIG), and cleans up by itself; so does the recorder."""
    with subprocess.Popen([*LAB, "run", "zombie-tmpfs", "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find("zombie-tmpfs").processes)
        process.kill()
        process.wait()
    wait_for("everything but the recording is gone", lambda: not Machine.now().processes)
    assert not leftovers.find().cgroups
    left = leftovers.find()
    assert [path.parent for path in left.directories] == [Path("/dev/shm")], "only the recording: it has no owner now"
    leftovers.remove(left)
    assert Machine.now() == machine


def test_clean_mends_what_a_killed_supervisor_left(needs: Needs, machine: Machine) -> None:
    with subprocess.Popen([*LAB, "run", "zombie-tmpfs", "--yes"], stderr=subprocess.DEVNULL) as process:
        wait_for("the scenario's cgroups", lambda: leftovers.find("zombie-tmpfs").processes)
        supervisor = next(int(one.split()[0]) for one in of_the_lab() if "zombiescope.lab.supervisor" in one)
        os.kill(supervisor, signal.SIGKILL)
        process.kill()
        process.wait()
    assert leftovers.find().cgroups
    done = subprocess.run(
        [*LAB, "clean", "--keep-images", "--json"], capture_output=True, text=True, timeout=60, check=True
    )
    assert json.loads(done.stdout)["removed"]["cgroups"]
    assert Machine.now() == machine
