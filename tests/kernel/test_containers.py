"""Containers on a real kernel: a real runc makes their cgroups, and the recording knows who they were."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.kernel import cgroup
from zombiescope.query.containers import Container, containers
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

ID = "5e1f" * 16
OTHER = "a0b1" * 16
POD = "0a1b2c3d-0001-4002-8003-0123456789ab"
RUNS = 5
"""As a crash loop does it: runc is there for some fifty milliseconds, and one look of five has to find it."""
NOTES = {
    "io.kubernetes.cri.container-type": "container",
    "io.kubernetes.cri.container-name": "trainer",
    "io.kubernetes.cri.image-name": "registry.local/trainer:7",
    "io.kubernetes.cri.sandbox-namespace": "team-a",
    "io.kubernetes.cri.sandbox-name": "trainer-0",
    "io.kubernetes.cri.sandbox-uid": POD,
}


class Runc:
    """Bundles of busybox, run without a daemon."""

    def __init__(self, program: str, place: Path) -> None:
        self._program = program
        self._place = place
        self._rootfs = place / "rootfs"
        (self._rootfs / "bin").mkdir(parents=True)
        shutil.copy("/bin/busybox", self._rootfs / "bin" / "busybox")

    def bundle(self, cgroups_path: str, script: str, annotations: dict[str, str]) -> Path:
        bundle = self._place / f"bundle{len(list(self._place.iterdir()))}"
        bundle.mkdir()
        subprocess.run([self._program, "spec"], cwd=bundle, check=True)
        spec: dict[str, Any] = json.loads((bundle / "config.json").read_text())
        spec["root"] = {"path": str(self._rootfs), "readonly": True}
        spec["process"] |= {"terminal": False, "args": ["/bin/busybox", "sh", "-c", script], "rlimits": []}
        spec["linux"]["cgroupsPath"] = cgroups_path
        spec["annotations"] = annotations
        (bundle / "config.json").write_text(json.dumps(spec))
        return bundle

    def run(self, container: str, bundle: Path) -> None:
        done = subprocess.run(
            [self._program, "--root", self._place / "state", "run", container],
            cwd=bundle, capture_output=True, text=True, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr


@pytest.fixture
def runc(needs: Needs, tmp_path: Path) -> Iterator[Runc]:
    needs.perf_events()
    needs.tracefs()
    needs.memory_cgroup()
    needs.file("/bin/busybox")
    made = Runc(needs.binary("runc", "runc"), tmp_path / "runc")
    before = set(_parents())
    yield made
    for container in (ID, OTHER):
        subprocess.run(
            ["runc", "--root", tmp_path / "runc" / "state", "delete", "--force", container], capture_output=True
        )
    for parent in set(_parents()) - before:
        _remove(parent)


def _parents() -> Iterator[Path]:
    """Of containers' cgroups: runc makes them in every hierarchy, and leaves them."""
    mounts = [Path(one.mount) for one in cgroup.hierarchies() if one.mount]
    yield from (mount / name for mount in mounts for name in ("docker", "kubepods") if (mount / name).is_dir())


def _remove(parent: Path) -> None:
    for place, _, _ in os.walk(parent, topdown=False):
        Path(place).rmdir()


def _known(directory: Path) -> dict[str, Container]:
    with open_recording(directory) as opened:
        return containers(opened, None, None)


def test_a_container_that_lives_for_a_moment_is_identified_by_its_bundle(runc: Runc, tmp_path: Path) -> None:
    bundle = runc.bundle(f"/kubepods/burstable/pod{POD}/{ID}", "true", NOTES)
    with recording(tmp_path / "r") as recorder:
        before = time.time()
        for _ in range(RUNS):
            runc.run(ID, bundle)
        recorder.wait_for_frames(3)
        one = _known(tmp_path / "r")[ID]
    assert (one.name, one.image, one.namespace) == ("trainer", "registry.local/trainer:7", "team-a")
    assert (one.pod, one.pod_uid, one.runs) == ("trainer-0", POD, RUNS)
    assert one.cgroup == f"/kubepods/burstable/pod{POD}/{ID}"
    assert one.started_us is not None
    assert one.exited_us is not None
    assert before * 1e6 <= one.started_us <= one.exited_us <= time.time() * 1e6


def test_who_ran_the_client_is_named(runc: Runc, tmp_path: Path) -> None:
    """The client is no ancestor of runc: a script of its name stands in for docker, and waits as it would. So does the
    container, whose runc keeps the bundle open meanwhile: one that is over at once is the test above."""
    client, loop = tmp_path / "docker", tmp_path / "agent-loop"
    client.write_text("#!/bin/sh\nsleep 6\n")
    loop.write_text(f"#!/bin/sh\n{client} run --rm --name web registry.local/web:1\nexit 0\n")
    for script in (client, loop):
        script.chmod(0o755)
    bundle = runc.bundle(f"/docker/{OTHER}", "sleep 2", {"nerdctl/name": "web"})
    with recording(tmp_path / "r") as recorder:
        with subprocess.Popen([str(loop)]) as supervisor:
            recorder.wait_for_frames(2)
            runc.run(OTHER, bundle)
            recorder.wait_for_frames(3)
            supervisor.wait(timeout=30)
        one = _known(tmp_path / "r")[OTHER]
    assert (one.name, one.requester, one.requester_pid) == ("web", "agent-loop", supervisor.pid)
    assert one.requester_command is not None
    assert "agent-loop" in one.requester_command


def test_a_container_that_ran_before_the_recorder_is_found_by_its_parent(runc: Runc, tmp_path: Path) -> None:
    bundle = runc.bundle(f"/kubepods/burstable/pod{POD}/{ID}", "sleep 20", NOTES)
    program = ["runc", "--root", str(tmp_path / "runc" / "state")]
    with subprocess.Popen([*program, "run", ID], cwd=bundle, stdin=subprocess.DEVNULL):
        time.sleep(1.0)
        with recording(tmp_path / "r") as recorder:
            recorder.wait_for_frames(3)
            one = _known(tmp_path / "r")[ID]
        subprocess.run([*program, "kill", ID, "KILL"], check=True, timeout=30)
    assert (one.name, one.pod, one.runs, one.exited_us) == ("trainer", "trainer-0", 0, None)
