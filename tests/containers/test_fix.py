"""`fix` and a real Docker: a container that leaks and is restarted for ever is proved, ended, verified, put back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.container_node import told_by
from tests.helpers.recorder_process import recording

from zombiescope.kernel.cgroup import hierarchies, of_controller
from zombiescope.lab.docker import PROGRAMS
from zombiescope.store.container_names import SHORT_ID

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

IMAGE = "registry.local/ecs-agent:1.2"
PINS = Path("/dev/shm/zombiescope-test-fix-container")
LEAST = 1_500
AGENT = r"""
while IFS=: read -r number controller path; do
    if [ "$controller" = memory ] || [ "$number:$controller" = 0: ]; then here=${here:-$path}; fi
done < /proc/self/cgroup
n=0
while [ $n -lt 300 ]; do
    n=$((n + 1)); job=/memory$here/job-$n
    mkdir $job
    sh -c "echo \$\$ > $job/cgroup.procs; read -r name < /proc/sys/kernel/random/uuid; echo x > /pins/\$name"
    rmdir $job
done
exit 3
"""
"""Containers in the container, as an agent makes them; the page of each stays in shared memory."""
SCRIPT = f"""
import ctypes
image, pins, memory = {IMAGE!r}, {str(PINS)!r}, sys.argv[3]
with docker(place, cgroup_parent=parent + "/docker") as daemon:
    daemon.load(image)
    detached = ("run", "--detach", "--network=host")
    daemon.client(*detached, "--name=steady", image, "sleep", "10000")
    daemon.client(*detached, "--name=agent", "--restart=always", "--cgroupns=host",
                  f"--volume={{memory}}:/memory", f"--volume={{pins}}:/pins", image, "sh", "-c", {AGENT!r})
    while len(os.listdir(pins)) < {LEAST}:
        time.sleep(0.2)
    walker = os.fork()
    if walker == 0:
        libc = ctypes.CDLL(None)
        libc.prctl(1, 9)
        libc.prctl(15, b"walker")
        drop = os.open("/proc/sys/vm/drop_caches", os.O_WRONLY)
        while True:
            os.write(drop, b"2")
    own = {{name: daemon.environment[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}}
    tell({{"environment": own, "walker": walker, "id": json.loads(daemon.client("inspect", "agent"))[0]["Id"]}})
"""


@dataclass
class Told:
    """What the commands said, and Docker of its containers afterwards."""

    id: str = ""
    killed: dict[str, bool] = field(default_factory=dict)
    trial: dict[str, Any] = field(default_factory=dict)
    plan: dict[str, Any] = field(default_factory=dict)
    applied: dict[str, Any] = field(default_factory=dict)
    again: dict[str, Any] = field(default_factory=dict)
    undone: dict[str, Any] = field(default_factory=dict)
    exits: dict[str, int] = field(default_factory=dict)
    states: dict[str, dict[str, tuple[str, bool]]] = field(default_factory=dict)
    """When -> container -> (restart policy, whether it runs or is about to)."""
    left: int = -1
    """Files that keep zombies, after the fix."""


class Commands:
    """`zombiescope` and `docker`, both talking to the test's own daemon."""

    def __init__(self, place: Path, environment: dict[str, str]) -> None:
        self._place = place
        self.environment = {**os.environ, **environment, "ZOMBIESCOPE_FIX_DIR": str(place / "log")}

    def words(self, *words: str) -> list[str]:
        command, *rest = words
        return [sys.executable, "-m", "zombiescope.cli.main", command, str(self._place / "r"), *rest]

    def run(self, *words: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            self.words(*words, "--json"), env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.stdout, done.stderr
        said = json.loads(done.stdout)
        sys.stdout.write(f"{words}: {done.returncode} {said.get('verification') or said.get('trial')}\n{done.stderr}")
        return done.returncode, said

    def containers(self) -> dict[str, tuple[str, bool]]:
        words = ["docker", "inspect", "agent", "steady"]
        found = json.loads(subprocess.run(words, env=self.environment, capture_output=True, check=True).stdout)
        return {
            one["Name"].lstrip("/"): (
                one["HostConfig"]["RestartPolicy"]["Name"],
                one["State"]["Running"] or one["State"]["Restarting"],
            )
            for one in found
        }


def until(done: Callable[[], object], within_s: float = 60) -> bool:
    end = time.monotonic() + within_s
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _states(container: str) -> list[str]:
    """Of its freezers, of whatever version: FROZEN or THAWED."""
    found = hierarchies()
    freezer, unified = of_controller("freezer", found), next((one for one in found if one.version == 2), None)
    states = []
    if freezer is not None and freezer.mount is not None:
        states += [file.read_text().strip() for file in Path(freezer.mount).glob(f"**/*{container}*/freezer.state")]
    if unified is not None and unified.mount is not None:
        files = Path(unified.mount).glob(f"**/*{container}*/cgroup.freeze")
        states += ["FROZEN" if file.read_text().strip() == "1" else "THAWED" for file in files]
    return states


def _kill_a_trial(commands: Commands, told: Told, incident: str) -> None:
    """kill -9 of the command while its suspect is frozen: somebody else has to let it go."""
    words = commands.words("fix", "--incident", incident, "--try", "5m", "--yes")
    with subprocess.Popen(words, env=commands.environment, start_new_session=True) as process:
        told.killed["frozen"] = until(lambda: "FROZEN" in _states(told.id))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    told.killed["goes on"] = until(lambda: "FROZEN" not in _states(told.id), 20)
    _, said = commands.run("fix", "--incident", incident)
    told.killed["logged"] = any(entry["step"] == "trial.freeze" for entry in said["log"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    for program, package in PROGRAMS:
        needs.binary(program, package)
    place = tmp_path_factory.mktemp("fix")
    shutil.rmtree(PINS, ignore_errors=True)
    PINS.mkdir()
    try:
        with recording(place / "r") as recorder, told_by(SCRIPT, str(mount)) as said:
            recorder.wait_for_frames(15)
            commands = Commands(place, said["environment"])
            yield _told(commands, said["id"], said["walker"])
    finally:
        shutil.rmtree(PINS, ignore_errors=True)


def _told(commands: Commands, container: str, walker: int) -> Told:
    told = Told(id=container)
    _, said = commands.run("diagnose", "--last", "1m")
    named = [one["id"] for one in said["incidents"] if one["causes"] and one["causes"][0]["pattern"] == "zombie-memcg"]
    assert named, said["incidents"]
    os.kill(walker, signal.SIGSTOP)  # a trial asks who leaks, and needs nobody who walks
    fix = ("fix", "--incident", named[0])
    _kill_a_trial(commands, told, named[0])
    told.exits["trial"], told.trial = commands.run(*fix, "--try", "30s", "--yes")
    told.exits["plan"], told.plan = commands.run(*fix)
    told.states["planned"] = commands.containers()
    os.kill(walker, signal.SIGCONT)
    consent = ("--apply", "--yes", "--force-unit", str(PINS), "--verify-for", "20s")
    told.exits["apply"], told.applied = commands.run(*fix, *consent)
    told.states["applied"], told.left = commands.containers(), len(list(PINS.iterdir()))
    told.exits["again"], told.again = commands.run(*fix, *consent)
    told.exits["undo"], told.undone = commands.run(*fix, "--undo", "--yes")
    told.states["undone"] = commands.containers()
    return told


def state(document: dict[str, Any], kind: str) -> set[str]:
    return {step["state"] for step in document["steps"] if step["id"].startswith(kind)}


def test_a_trial_that_is_killed_lets_the_container_go(told: Told) -> None:
    assert told.killed == {"frozen": True, "goes on": True, "logged": True}


def test_frozen_the_leak_ends_and_begins_again_when_it_is_let_go(told: Told) -> None:
    trial = told.trial["trial"]
    assert trial["verdict"] == "stopped", trial
    assert trial["per_second"]["frozen"] < trial["per_second"]["before"] / 10


def test_the_plan_ends_the_container_and_never_the_runtime(told: Told) -> None:
    commands = [step["command"] for step in told.plan["steps"]]
    assert f"docker update --restart=no {told.id[:SHORT_ID]}" in commands
    assert f"docker stop {told.id[:SHORT_ID]}" in commands
    assert not any("dockerd" in (one or "") or "containerd" in (one or "") for one in commands)
    assert told.states["planned"] == {"agent": ("always", True), "steady": ("no", True)}


def test_without_its_directory_named_no_file_is_deleted(told: Told) -> None:
    pins = [step for step in told.plan["steps"] if step["id"].startswith("tmpfs.remove")]
    assert pins
    assert {(step["protected"], step["state"]) for step in pins} == {(str(PINS), "skipped")}


def test_applied_it_is_ended_released_and_verified(told: Told) -> None:
    assert told.states["applied"] == {"agent": ("no", False), "steady": ("no", True)}
    assert state(told.applied, "container.") == {"applied"}
    assert told.left == 0
    assert told.applied["verified"] is True, told.applied["verification"]
    assert told.exits["apply"] == 0


def test_applied_twice_is_once(told: Told) -> None:
    assert state(told.again, "container.") == {"applied"}
    assert told.states["applied"]["agent"] == ("no", False)


def test_undone_it_restarts_as_before_and_what_cannot_be_brought_back_is_said(told: Told) -> None:
    assert told.states["undone"] == {"agent": ("always", True), "steady": ("no", True)}
    assert state(told.undone, "container.") == {"undone"}
    assert state(told.undone, "tmpfs.remove") == {"failed"}
    assert told.exits["undo"] == 1
