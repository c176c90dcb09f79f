"""Whoever only carries out may be the hog, and is never the culprit: of no pattern, whatever was sampled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.scenes import Runs, Scene

from zombiescope.diagnosis.carriers import (
    CARRIER_UNITS,
    CARRIERS,
    has_carriers_name,
    is_carrier,
    is_carrier_unit,
    stands_for_nobody,
)
from zombiescope.diagnosis.incident import Cause
from zombiescope.store import schema

IMAGE = "registry.local/ecs-agent:1.2"
KERNEL_THREADS = ("ksoftirqd", "kworker", "kswapd")
CASTS = [
    pytest.param("runc", 4711, "containerd.service", id="runc"),
    pytest.param("systemd", 1, "init.scope", id="pid 1"),
    pytest.param("kubelet", 900, "kubelet.service", id="kubelet"),
    pytest.param("containerd-shim", 901, "containerd.service", id="shim"),
    pytest.param("iptables-restor", 902, "docker.service", id="a helper in a runtime's unit"),
]


def played_by(scene: Scene, comm: str, pid: int, unit: str) -> Scene:
    """The same scene with a carrier in every part that a program has; its leaks and kills are the carrier's, too."""
    for number, runs in enumerate(scene.runs):
        if not runs.comm.startswith(KERNEL_THREADS):
            scene.runs[number] = replace(runs, comm=comm, pid=pid, ppid=0 if pid == 1 else 1, unit=unit, tid=None)
    names = schema.BY_NAME["leaks"].names
    rows = scene.made.tables.get("leaks", [])
    for number, row in enumerate(rows):
        rows[number] = tuple({**dict(zip(names, row, strict=True)), "comm": comm, "pid": pid, "unit": unit}.values())
    events = scene.made.tables.get("events", [])
    for number, event in enumerate(events):
        events[number] = tuple(one.replace('"agent"', f'"{comm}"') if isinstance(one, str) else one for one in event)
    return scene


def assert_blames_no_carrier(cause: Cause) -> None:
    assert cause.culprit is None or not is_carrier(cause.culprit), (cause.pattern, cause.culprit)
    culprit = [link.fact for link in cause.chain if link.step == "culprit"]
    assert culprit == ([] if cause.culprit is None else [cause.culprit.name])
    for step in cause.fix.steps:
        words = step.line.replace("'", " ").split()
        assert not any(is_carrier_unit(word) for word in words), (cause.pattern, step)


@pytest.mark.parametrize(("comm", "pid", "unit"), CASTS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_no_pattern_blames_a_carrier(row: Row, tmp_path: Path, comm: str, pid: int, unit: str) -> None:
    found = played_by(row.confirms(row.base(Scene())), comm, pid, unit).diagnose(tmp_path)
    for incident in found.incidents:
        for cause in incident.causes:
            assert_blames_no_carrier(cause)


# --- whom it worked for ----------------------------------------------------------------------------------------------

MKDIR = "do_syscall_64 do_mkdirat vfs_mkdir kernfs_iop_mkdir cgroup_mkdir cgroup_apply_control_enable"


def churn(**more: Any) -> Scene:
    made = Scene().churn(400)
    return made.hog(MKDIR, "runc", pid=4711, unit="containerd.service", **more)


def cause_of(scene: Scene, directory: Path, pattern: str) -> Cause:
    causes = [incident.causes[0] for incident in scene.diagnose(directory).incidents if incident.causes]
    return next(cause for cause in causes if cause.pattern == pattern)


def container(scene: Scene, number: int, **known: Any) -> None:
    one = f"{number + 0xA000:064x}"
    scene.made.container(START_US + 6 * SECOND, one, started=START_US + 6 * SECOND, cgroup=f"/docker/{one}", **known)


def test_a_runtime_works_for_who_asked_for_most_containers_of_that_time(tmp_path: Path) -> None:
    scene = churn()
    for number in range(9):
        container(scene, number, image=IMAGE, requester="agent-loop", requester_unit="agent-loop.service")
    cause = cause_of(scene, tmp_path, "cgroup-churn")
    assert cause.hog.comm == "runc"
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.unit) == ("agent-loop", "agent-loop.service")
    assert f": agent-loop (agent-loop.service), which runs {IMAGE}, keeps the kernel busy with cgroups" in cause.summary


def test_containers_that_many_asked_for_are_nobodys_in_particular(tmp_path: Path) -> None:
    scene = churn()
    for number in range(9):
        container(scene, number, image=IMAGE, requester=f"job-{number}")
    assert cause_of(scene, tmp_path, "cgroup-churn").culprit is None


def test_who_runs_the_client_is_the_culprit(tmp_path: Path) -> None:
    # GIVEN a script that runs `docker run`, whose client burns the core
    scene = Scene().churn(400).hog(MKDIR, "docker", pid=5000, ppid=812)
    scene.runs.append(Runs("agent-loop", "", cpu=0, share=0.1, pid=812, unit="agent-loop.service"))
    cause = cause_of(scene, tmp_path, "cgroup-churn")
    assert cause.culprit is not None
    assert cause.culprit.comm == "agent-loop"


def test_who_started_a_runtime_did_not_ask_for_what_it_does(tmp_path: Path) -> None:
    scene = Scene().churn(400).hog(MKDIR, "dockerd", pid=5000, ppid=812)
    scene.runs.append(Runs("boot.sh", "", cpu=0, share=0.1, pid=812, unit="boot.service"))
    assert cause_of(scene, tmp_path, "cgroup-churn").culprit is None


def test_a_program_in_a_container_has_its_names(tmp_path: Path) -> None:
    one = f"{0xA001:064x}"
    scene = Scene().churn(400).hog(MKDIR, "job", pid=5000, cgroup=f"/docker/{one}")
    container(scene, 1, name="web-7", image=IMAGE)
    cause = cause_of(scene, tmp_path, "cgroup-churn")
    assert cause.culprit is not None
    assert (cause.culprit.name, cause.culprit.image) == ("job (container web-7)", IMAGE)


# --- the lists -------------------------------------------------------------------------------------------------------


def test_every_name_in_the_list_could_be_a_name_of_the_kernel() -> None:
    assert [name for name in CARRIERS if len(name) > 15] == []
    assert all(has_carriers_name(name) for name in CARRIERS)
    assert all(stands_for_nobody(unit) for unit in CARRIER_UNITS)


@pytest.mark.parametrize(
    ("unit", "nobody"),
    [
        ("ecs.service", False), ("agents.slice", False), ("user-1000.slice", False), ("runner.service", False),
        ("session-manager.service", False), ("docker-cleanup.service", False), ("run-backup.service", False),
        ("system.slice", True), ("kubepods-burstable.slice", True), ("docker-0a1b.scope", True), ("-.slice", True),
        ("cri-containerd-*.scope", True), ("user@1000.service", True), ("session-3.scope", True),
        ("run-r0a1b2c3.scope", True), ("run-u12.service", True), ("machine.slice", True),
    ],
)  # fmt: skip
def test_a_unit_that_says_where_is_told_from_one_that_says_who(unit: str, nobody: bool) -> None:
    assert stands_for_nobody(unit) is nobody
