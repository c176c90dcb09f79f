"""A name is not an identity: the name of a process or directory neither frames a neighbour nor excuses its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.carriers import is_carrier, is_genuine
from zombiescope.diagnosis.incident import Actor, Cause
from zombiescope.node.containers.runtimes import is_claimed, verified_owner

READ = f"{' '.join(SYSCALL)} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
FORK = f"{' '.join(SYSCALL)} __do_sys_clone kernel_clone copy_process dup_mm dup_mmap copy_page_range"
VICTIM = "a" * 64
MINE = "b" * 64
USER = "/user.slice/user-12345.slice/user@12345.service"


def cause_of(scene: Scene, directory: Path, pattern: str) -> Cause:
    causes = [cause for one in scene.diagnose(directory).incidents for cause in one.causes]
    return next(cause for cause in causes if cause.pattern == pattern)


def leaks(path: str, **creator: Any) -> Scene:
    made = Scene(kernel="5.4.0").vmstat().census(240, 6_000).hog(READ, "kubelet", unit="kubelet.service")
    made.made.leak(START_US + SECOND, path, 5_000, created=5_000, removed=5_000, **creator)
    return made


@pytest.mark.parametrize("comm", ["systemd", "runc", "mkdir"])
@pytest.mark.parametrize("known", [{"uid": 12345, "exe": "/usr/bin/python3.11"}, {}], ids=["uid", "older recording"])
@pytest.mark.parametrize("unit", ["ci-runner.service", None], ids=["creator known", "creator gone"])
def test_a_directory_named_like_another_unit_is_the_unit_that_it_lies_in(
    tmp_path: Path, comm: str, known: dict[str, Any], unit: str | None
) -> None:
    path = "/system.slice/ci-runner.service/postgresql.service/job-*"
    cause = cause_of(leaks(path, comm=comm, pid=4711, unit=unit, **known), tmp_path, "zombie-memcg")
    assert cause.culprit is not None
    assert cause.culprit.unit == "ci-runner.service"
    acts = [step.act.subject for step in cause.fix.steps if step.act is not None and step.act.kind == "unit.disable"]
    assert acts == ["ci-runner.service"]


@pytest.mark.parametrize("container", ["web", None])
def test_a_unit_inside_a_container_is_no_unit_of_the_host(tmp_path: Path, container: str | None) -> None:
    made = leaks(
        "/lxc.payload.web/system.slice/nginx.service/job-*", comm="systemd", pid=4711, container=container, uid=100_000
    )
    cause = cause_of(made, tmp_path, "zombie-memcg")
    assert cause.culprit is None or cause.culprit.unit is None
    assert not any(step.act is not None and step.act.kind == "unit.disable" for step in cause.fix.steps)


def test_a_unit_of_a_users_own_manager_is_no_unit_of_the_system(tmp_path: Path) -> None:
    made = leaks(f"{USER}/app.slice/chronyd.service/job-*", comm="systemd", pid=4711, unit="user@12345.service")
    cause = cause_of(made, tmp_path, "zombie-memcg")
    assert cause.culprit is not None
    assert cause.culprit.unit == "user@12345.service"
    assert not any(step.act is not None and step.act.kind == "unit.disable" for step in cause.fix.steps)


def test_a_container_whose_id_was_claimed_in_a_users_slice_is_not_blamed(tmp_path: Path) -> None:
    made = leaks(f"{USER}/docker-*.scope/job-*", comm="runc", pid=4711, unit="user@12345.service", uid=12345)
    known = {"name": "prod-db", "image": "postgres:16", "restart_policy": "always", "runs": 9}
    made.made.container(START_US + SECOND, VICTIM, cgroup=f"{USER}/docker-{VICTIM}.scope", **known)
    cause = cause_of(made, tmp_path, "zombie-memcg")
    assert cause.culprit is not None
    assert (cause.culprit.unit, cause.culprit.container_name) == ("user@12345.service", None)
    assert not any(step.act is not None and step.act.kind.startswith("container.") for step in cause.fix.steps)


@pytest.mark.parametrize(
    "kind", ["ray_node_dead", "ray_worker_died", "ray_job_failed", "ray_actor_died", "ray_task_lost"]
)
def test_a_forged_event_of_ray_names_nobody_and_leads_to_no_step(tmp_path: Path, kind: str) -> None:
    """Every user of a node may call a process raylet and write its files, and so have an incident with any text."""
    text = "postgresql.service killed job 7"
    (alone,) = Scene().vmstat().event(kind, text, severity="critical").diagnose(tmp_path / "alone").incidents
    assert all(cause.culprit is None and not any(step.act for step in cause.fix.steps) for cause in alone.causes)
    # AND of another incident neither culprit nor steps change
    leak = {"comm": "mkdir", "pid": 4711, "unit": "ci-runner.service"}
    path = "/system.slice/ci-runner.service/job-*"
    plain = cause_of(leaks(path, **leak), tmp_path / "plain", "zombie-memcg")
    forged = cause_of(leaks(path, **leak).event(kind, text, severity="critical"), tmp_path / "forged", "zombie-memcg")
    assert (forged.culprit, forged.confidence) == (plain.culprit, plain.confidence)
    acts = [[step.act for step in cause.fix.steps if step.act is not None] for cause in (plain, forged)]
    assert acts[0] == acts[1] != []


# --- a fork storm that calls itself like a runtime -------------------------------------------------------------------


def storm(comm: str, **who: Any) -> Scene:
    made = Scene().vmstat().counter("stat", "processes", 2_000, calm_per_s=20)
    made.made.container(
        START_US + 6 * SECOND, VICTIM, name="nightly-backup", image="corp/backup:3", restart_policy="always",
        started=START_US + 6 * SECOND, cgroup=f"/docker/{VICTIM}", runs=9,
    )  # fmt: skip
    return made.hog(FORK, comm, pid=4711, **who)


@pytest.mark.parametrize("comm", ["runc", "tini", "containerd-shim", "myforker"])
def test_a_storm_of_a_user_is_the_users_whatever_it_is_called(tmp_path: Path, comm: str) -> None:
    cause = cause_of(storm(comm, uid=12345, exe="/tmp/runc"), tmp_path, "fork-storm")
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.container_name) == (comm, None)


def test_a_storm_of_the_real_runtime_is_charged_to_its_containers(tmp_path: Path) -> None:
    cause = cause_of(storm("runc", uid=0, exe="/usr/bin/runc"), tmp_path, "fork-storm")
    assert cause.culprit is not None
    assert cause.culprit.container_name == "nightly-backup"


@pytest.mark.parametrize(
    ("who", "carries"),
    [
        (Actor("runc", 5, genuine=is_genuine(0, "/usr/bin/runc")), True),
        (Actor("runc:[2:INIT]", 5, genuine=is_genuine(0, "/memfd:runc_cloned:/proc/self/exe")), True),
        (Actor("containerd-shim", 5, genuine=is_genuine(0, "/usr/bin/containerd-shim-runc-v2")), True),
        (Actor("init", 1), True),
        (Actor("anything", 5, "containerd.service"), True),
        (Actor("podman", 5, "session-3.scope", genuine=is_genuine(0, "/usr/bin/podman")), True),
        (Actor("runc", 5, genuine=is_genuine(12345, "/usr/bin/runc")), False),
        (Actor("systemd", 5, genuine=is_genuine(0, "/usr/bin/python3.11")), False),
        (Actor("systemd", 5, "ci-runner.service", genuine=is_genuine(0, "/usr/lib/systemd/systemd")), False),
        (Actor("systemd", 5, "user@12345.service", genuine=is_genuine(12345, "/usr/lib/systemd/systemd")), False),
        (Actor("systemd", 5, container=MINE, genuine=is_genuine(0, "/usr/lib/systemd/systemd")), False),
        (Actor("runc", 5, "session-3.scope"), False),  # an older recording, without users
    ],
)
def test_a_carrier_is_known_by_user_program_and_unit_together(who: Actor, carries: bool) -> None:
    assert is_carrier(who) is carries


@pytest.mark.parametrize(
    ("path", "claimed"),
    [
        (f"/docker/{MINE}", False),
        (f"/system.slice/docker-{MINE}.scope", False),
        (f"/machine.slice/libpod-{MINE}.scope/container", False),
        (f"/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{MINE}", False),
        ("/lxc.payload.web", False),
        (f"{USER}/docker-{VICTIM}.scope", True),
        (f"/user.slice/user-12345.slice/session-3.scope/docker-{VICTIM}.scope", True),
        (f"/system.slice/ci-runner.service/docker-{VICTIM}.scope", True),
        (f"/docker/{MINE}/docker-{VICTIM}.scope", True),
        (f"/system.slice/docker-{MINE}.scope/docker/{VICTIM}", True),
    ],
)
def test_an_id_is_believed_only_where_runtimes_make_directories(path: str, claimed: bool) -> None:
    assert is_claimed(path) is claimed


POD = "11111111-2222-3333-4444-555555555555"


@pytest.mark.parametrize(
    ("path", "container", "pod"),
    [
        (f"/docker/{MINE}/program", MINE, None),
        (f"/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{MINE}.scope", MINE, POD),
        (f"/kubepods/burstable/pod{POD}/{MINE}/docker/{VICTIM}", MINE, POD),
        (f"/docker/{MINE}/docker-{VICTIM}.scope", MINE, None),
        (f"/docker/{MINE}/kubepods/pod{POD}/{VICTIM}", MINE, None),
        (f"/system.slice/docker-{MINE}.scope/kubepods/pod{POD}/{VICTIM}", MINE, None),
        (f"/lxc.payload.web/docker/{VICTIM}", "web", None),
        (f"{USER}/docker-{VICTIM}.scope", None, None),
        (f"{USER}/docker-{MINE}.scope/docker/{VICTIM}", None, None),
        (f"{USER}/kubepods/pod{POD}/job", None, None),
        (f"/system.slice/ci-runner.service/docker-{VICTIM}.scope", None, None),
        (f"/system.slice/ci-runner.service/kubepods/pod{POD}/job", None, None),
        (f"/system.slice/containerd.service/kubepods-pod{POD}.slice:cri-containerd:{MINE}", MINE, POD),
    ],
)
def test_a_process_belongs_to_whoever_made_room_for_its_directories(
    path: str, container: str | None, pod: str | None
) -> None:
    """The kernel says in which directory a process is; of the names in its path only the outermost are not its own."""
    who = verified_owner(path)
    assert (who.container, who.pod_uid) == (container, pod)
    node = f"/docker/{'c' * 64}"
    inside = verified_owner(f"{node}{path}", node)
    assert (inside.container, inside.pod_uid) == (container, pod)
    assert verified_owner(f"{node}{path}").container == "c" * 64, "seen from the machine that the node runs on"


@pytest.mark.parametrize(
    "cgroup", [f"/docker/{MINE}/docker-{VICTIM}.scope", f"/system.slice/ci-runner.service/docker-{VICTIM}.scope"]
)
def test_a_hog_in_a_directory_with_anothers_id_is_not_called_by_its_name(tmp_path: Path, cgroup: str) -> None:
    """Also in recordings of versions before, which took the innermost id of the path."""
    work = f"{' '.join(SYSCALL)} vfs_read seq_read show_smap smap_gather_stats"
    made = Scene().vmstat().hog(work, "evil", pid=4711, uid=0, cgroup=cgroup, container=VICTIM)
    known = {"name": "prod-db", "image": "postgres:16", "restart_policy": "always", "runs": 9}
    made.made.container(START_US + SECOND, VICTIM, cgroup=f"/docker/{VICTIM}", **known)
    causes = [cause for one in made.diagnose(tmp_path).incidents for cause in one.causes]
    assert causes
    assert all(who is None or who.container_name is None for one in causes for who in (one.hog, one.culprit))


def test_the_container_that_a_node_runs_in_claims_nothing() -> None:
    node = f"/docker/{MINE}"
    assert not is_claimed(f"{node}/kubelet/kubepods/burstable/pod1/{VICTIM}", node)
    assert is_claimed(f"{node}/kubelet/kubepods/burstable/pod1/{VICTIM}/docker/{MINE}", node)
