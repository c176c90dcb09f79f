"""The laboratory on real runtimes: the image, the pod and the supervisor are named, no plan stops a runtime, and the
machine is afterwards what it was."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.conftest import Needs
from tests.helpers.machine import Machine, of_the_lab

from zombiescope.lab import leftovers
from zombiescope.lab.requirements import lacks
from zombiescope.lab.scenario import by_id

pytestmark = pytest.mark.containers

LAB = [sys.executable, "-m", "zombiescope.cli.main", "lab"]
IMAGE = "registry.local/ecs-agent:1.2"


@pytest.fixture
def machine(needs: Needs) -> Machine:
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    for name in ("docker-loop", "api-loop", "kubelet-crashloop"):
        for missing in lacks(by_id(name)):
            needs.lack(str(missing))
    by_id("kubelet-crashloop").build()
    leftovers.remove(leftovers.find())
    return Machine.now()


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("docker-loop", ("agent-loop", IMAGE)),
        ("api-loop", ("site-agent", "registry.local/collector:3")),
        ("kubelet-crashloop", ("default/leaky", IMAGE)),
    ],
)
def test_a_real_runtime_is_never_the_culprit(machine: Machine, scenario: str, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*LAB, "run", scenario, "--yes", "--json"], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["found"]["pattern"] == "zombie-memcg"
    assert all(word in found["found"]["culprit"] for word in words), found["found"]["culprit"]
    assert found["harm"] == []
    assert found["pass"] is True
    assert Machine.now() == machine


@pytest.mark.parametrize("scenario", ["docker-loop", "kubelet-crashloop"])
def test_clean_mends_what_a_killed_supervisor_left_of_a_runtime(machine: Machine, scenario: str) -> None:
    with subprocess.Popen([*LAB, "run", scenario, "--yes"], stderr=subprocess.DEVNULL) as process:
        end = time.monotonic() + 60
        while not any("containerd-shim" in one for one in of_the_lab()):
            assert time.monotonic() < end, "no container was started"
            time.sleep(0.1)
        supervisor = next(int(one.split()[0]) for one in of_the_lab() if "zombiescope.lab.supervisor" in one)
        os.kill(supervisor, signal.SIGKILL)
        process.kill()
        process.wait()
    assert any("containerd" in one for one in of_the_lab()), "daemons outlive their supervisor"
    subprocess.run([*LAB, "clean", "--keep-images"], timeout=90, check=True, stdout=subprocess.DEVNULL)
    assert Machine.now() == machine
