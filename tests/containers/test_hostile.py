"""Hostile names on a real Docker, Podman and LXC: how a container is called, labelled and annotated, and what it calls
its processes and directories, makes it nobody else; and a name that moves to a neighbour takes no step with it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.container_node import told_by
from tests.helpers.recorder_process import recording
from tests.helpers.remedies import yes

from zombiescope.fix import log
from zombiescope.fix.actions.container import NoRestart, StopContainer
from zombiescope.fix.apply import apply
from zombiescope.fix.step import Step
from zombiescope.lab.docker import PROGRAMS
from zombiescope.model.plans.plan import Plan
from zombiescope.query.containers import Container, containers
from zombiescope.store.reader import Recording, open_recording

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

UNIT = "postgresql.service"
UID = "11111111-2222-3333-4444-555555555555"
KUBELETS = {
    "io.kubernetes.container.name": "kube-apiserver", "io.kubernetes.pod.name": "kube-apiserver-head",
    "io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.uid": UID,
    "annotation.io.kubernetes.container.restartCount": "99", "io.kubernetes.docker.type": "podsandbox",
}  # fmt: skip
"""Labels that kubelet gives to containers of pods under Docker, here of an image."""
CRI = {
    "io.kubernetes.cri.sandbox-name": "kube-apiserver-head", "io.kubernetes.cri.sandbox-namespace": "kube-system",
    "io.kubernetes.cri.sandbox-uid": UID, "io.kubernetes.cri.container-type": "sandbox",
}  # fmt: skip
INSIDE = r"""
while IFS=: read -r number controller path; do
    if [ "$controller" = memory ] || [ "$number:$controller" = 0: ]; then here=${here:-$path}; fi
done < /proc/self/cgroup
for name in docker-$1.scope:systemd docker/$1:runc postgresql.service:containerd-shim kubepods/pod$2/$1:kubelet; do
    mkdir -p "/memory$here/${name%:*}"
    (
        echo 0 > "/memory$here/${name%:*}/cgroup.procs"
        printf %s "${name##*:}" > /proc/self/comm
        n=0; while [ $n -lt 3000000 ]; do n=$((n + 1)); done; sleep 1000
    ) &
done
sleep 1000
"""
"""In a container that may write below its own cgroup: directories with the names of others, processes in them."""
SCRIPT = f"""
import shutil
memory, kubelets, cri = sys.argv[3], json.loads(sys.argv[4]), json.loads(sys.argv[5])
def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout.strip()
with docker(place, cgroup_parent=parent + "/docker") as daemon:
    daemon.load("plain:1")
    words = [word for key, value in kubelets.items() for word in ("--change", f"LABEL {{key}}={{value}}")]
    given = subprocess.run(["tar", "-C", str(place / "tree"), "-c", "."], capture_output=True, check=True).stdout
    daemon.client("import", *words, "-", "kubelet:1", given=given)
    start = ("run", "--detach", "--network=host", "--restart=always")
    prod = daemon.client(*start, "--name=prod-db", "plain:1", "sleep", "1000").strip()
    evil = daemon.client(*start, "--name={UNIT}", "--hostname=systemd", "--cgroupns=host",
                         f"--volume={{memory}}:/memory", "kubelet:1", "sh", "-c", {INSIDE!r}, "systemd", prod,
                         "{UID}").strip()
    own = {{name: daemon.environment[name] for name in ("DOCKER_HOST", "DOCKER_CONFIG")}}
    tree, found = place / "tree", {{"prod": prod, "evil": evil, "environment": own}}
    if shutil.which("podman"):
        words = [f"--annotation={{key}}={{value}}" for key, value in cri.items()]
        words += [f"--label={{key}}={{value}}" for key, value in kubelets.items()]
        places = ("--root", str(place / "podman"), "--runroot", "/run/podman", "--storage-driver=vfs")
        limits = ("--network=host", "--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
        found["podman"] = run("podman", "--runtime=runc", *places, "--cgroup-manager=cgroupfs", "--events-backend=file",
                              "run", "--detach", *limits, f"--cgroup-parent={{parent}}/podman", "--name={UNIT}", *words,
                              "--rootfs", str(tree), "sleep", "1000")
    if shutil.which("lxc-start"):
        settings = [f"lxc.uts.name = systemd", f"lxc.rootfs.path = dir:{{tree}}", "lxc.init.cmd = /bin/init",
                    "lxc.cgroup.relative = 1", "lxc.apparmor.profile = unconfined", "lxc.net.0.type = none"]
        (place / "lxc").mkdir()
        busy = "n=0; while [ $n -lt 3000000 ]; do n=$((n + 1)); done; sleep 1000"
        (tree / "bin/init").write_text("#!/bin/sh\\n" + busy + "\\n")
        (tree / "bin/init").chmod(0o755)
        (place / "lxc.conf").write_text("\\n".join(settings) + "\\n")
        which = ("--lxcpath", str(place / "lxc"), "--name", "{UNIT}")
        run("lxc-start", *which, "--rcfile", str(place / "lxc.conf"), "--daemon", "--logfile", str(place / "lxc.log"))
        found["lxc"] = run("lxc-info", *which, "--pid", "--no-humanize")
    time.sleep(3)
    tell(found)
"""


@dataclass(frozen=True)
class Seen:
    said: dict[str, Any]
    rows: dict[str, Container]
    recording: Recording

    def one(self, name: str) -> Container:
        if name not in self.said:
            pytest.skip(f"no {name} here")
        return self.rows[self.said[name]]


def inspected(said: dict[str, Any], container: str) -> dict[str, Any]:
    words = ["docker", "inspect", container]
    (found,) = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    return dict(found)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    needs = Needs()
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    for program, package in PROGRAMS:
        needs.binary(program, package)
    place = tmp_path_factory.mktemp("hostile")
    with (
        recording(place / "r") as recorder,
        told_by(SCRIPT, str(mount), json.dumps(KUBELETS), json.dumps(CRI)) as said,
    ):
        recorder.wait_for_frames(3)
        recorder.stop()
        with open_recording(place / "r") as opened:
            yield Seen(said, containers(opened, None, None), opened)


@pytest.mark.parametrize("name", ["evil", "podman"])
def test_labels_and_annotations_make_no_pod_of_a_container(seen: Seen, name: str) -> None:
    row = seen.one(name)
    # Podman's index is where this test put it, and is not found.
    assert row.name == (UNIT if name == "evil" else None), "as it is called, and not as it says of itself"
    assert (row.runtime, row.namespace, row.pod, row.pod_uid) == (
        "docker" if name == "evil" else "podman", None, None, None,
    )  # fmt: skip
    assert row.restarts in (None, 0)


def test_the_neighbour_whose_id_others_use_is_where_its_runtime_made_it(seen: Seen) -> None:
    row = seen.one("prod")
    assert row.name == "prod-db"
    assert row.cgroup is not None
    assert row.cgroup.endswith(f"/docker/{row.id}")
    assert seen.said["evil"] not in row.cgroup
    assert row.runs == 1


def test_processes_in_such_directories_belong_to_the_container_that_made_them(seen: Seen) -> None:
    tasks = [row for row in seen.recording.table("tasks").to_pylist() if seen.said["evil"] in (row["cgroup"] or "")]
    inside = [row for row in tasks if not row["cgroup"].endswith(seen.said["evil"])]
    assert {"systemd", "runc", "containerd-shim", "kubelet"} <= {row["comm"] for row in inside}
    assert {row["unit"] for row in inside} <= {None, ""}
    assert {row["container"] for row in inside} <= {seen.said["evil"]}


def test_a_container_of_lxc_that_is_called_like_a_unit_is_no_unit(seen: Seen) -> None:
    if "lxc" not in seen.said:
        pytest.skip("no lxc here")
    rows = [row for row in seen.recording.table("tasks").to_pylist() if row["pid"] == int(seen.said["lxc"])]
    assert rows
    for row in rows:
        assert f"lxc.payload.{UNIT}" in row["cgroup"]
        assert not row["unit"]
        assert row["container"].startswith(UNIT)


@pytest.mark.parametrize("kind", [NoRestart, StopContainer])
def test_a_name_that_moved_to_a_neighbour_takes_no_step_with_it(
    seen: Seen, kind: type[NoRestart | StopContainer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in seen.said["environment"].items():
        monkeypatch.setenv(name, value)
    docker = shutil.which("docker") or "docker"
    evil, prod = seen.said["evil"], seen.said["prod"]
    action = kind("docker", UNIT, evil)
    plan = Plan("test:moved", "", (Step(action.kind, "change", action.kind, action=action),))
    # WHEN between plan and step the names are exchanged
    for container, name in ((evil, "moved"), (prod, UNIT), (evil, "prod-db")):
        subprocess.run([docker, "rename", container, name], check=True)
    try:
        with log.opened(tmp_path / "log") as held:
            (step,) = apply(plan, held, yes).steps
        assert step.state == "applied"
        known = {one: inspected(seen.said, one) for one in (evil, prod)}
        assert known[prod]["State"]["Running"]
        assert known[prod]["HostConfig"]["RestartPolicy"]["Name"] == "always"
        if kind is NoRestart:
            assert known[evil]["HostConfig"]["RestartPolicy"]["Name"] == "no"
        else:
            assert not known[evil]["State"]["Running"]
    finally:
        for container, name in ((evil, "moved"), (prod, "prod-db"), (evil, UNIT)):
            subprocess.run([docker, "rename", container, name], check=True)
