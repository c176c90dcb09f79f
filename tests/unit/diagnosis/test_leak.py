"""Whom a leak is charged to: who asked for the containers, and never who only made their cgroups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SYSCALL, Scene

from zombiescope.diagnosis.carriers import is_carrier, is_carrier_unit
from zombiescope.diagnosis.incident import Actor, Cause
from zombiescope.diagnosis.requesters import family
from zombiescope.documents import cgroups
from zombiescope.questions.window import WindowQuestion
from zombiescope.store.reader import open_recording

READ = f"{' '.join(SYSCALL)} vfs_read seq_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
IMAGE = "registry.local/ecs-agent:1.2"
ECS = "docker.io/amazon/amazon-ecs-agent:latest"
RUNC = {"comm": "runc", "pid": 4711, "unit": "containerd.service"}
PID_1 = {"comm": "systemd", "pid": 1, "unit": "init.scope"}
KUBELET = {"comm": "kubelet", "pid": 900, "unit": "kubelet.service"}
UID = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"


def ident(number: int) -> str:
    return f"{number + 0xA000:064x}"


def scene() -> Scene:
    return Scene(kernel="5.4.0").vmstat().census(240, 6_000).hog(READ, "kubelet", unit="kubelet.service")


def leak(made: Scene, path: str, dying: int, creator: dict[str, Any], **more: Any) -> Scene:
    made.made.leak(START_US + SECOND, path, dying, created=dying, removed=dying, **creator, **more)
    return made


def run(made: Scene, path: str, count: int, **known: Any) -> Scene:
    """Containers at a path with {} for the id."""
    for number in range(count):
        one = ident(number)
        made.made.container(START_US + SECOND, one, cgroup=path.format(one), **known)
    return made


def cause_of(made: Scene, directory: Path) -> Cause:
    (incident,) = made.diagnose(directory).incidents
    cause = incident.causes[0]
    assert cause.pattern == "zombie-memcg"
    if cause.culprit is not None:
        assert not is_carrier(cause.culprit)
        assert not is_carrier_unit(cause.culprit.unit)
    for step in cause.fix.steps:
        assert not any(is_carrier_unit(word) for word in step.line.split()), step
    return cause


def facts_of(cause: Cause) -> dict[str, str]:
    return {link.step: link.fact for link in cause.chain}


POD = f"pod{UID}"
SYSTEMD_POD = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
LAYOUTS = [
    pytest.param("/docker/{}", "/docker/*", RUNC, id="docker, cgroupfs"),
    pytest.param("/system.slice/docker-{}.scope", "/system.slice/docker-*.scope", PID_1, id="docker, systemd"),
    pytest.param("/ecs/0123456789abcdef0123456789abcdef/{}", "/ecs/*/*", RUNC, id="ecs"),
    pytest.param("/machine.slice/libpod-{}.scope", "/machine.slice/libpod-*.scope", PID_1, id="podman"),
    pytest.param("/machine.slice/libpod-{}.scope", "/machine.slice/libpod-conmon-*.scope", PID_1, id="conmon"),
    pytest.param("/system.slice/nerdctl-{}.scope", "/system.slice/nerdctl-*.scope", PID_1, id="nerdctl"),
    pytest.param("/default/{}", "/default/*", {"comm": "crun", "pid": 5, "unit": None}, id="ctr, crun"),
]
POD_LAYOUTS = [
    pytest.param(f"/kubepods/burstable/{POD}/{{}}", "/kubepods/burstable/pod*/*", RUNC, id="kubelet, cgroupfs"),
    pytest.param(
        f"/kubepods.slice/kubepods-burstable.slice/{SYSTEMD_POD}/cri-containerd-{{}}.scope",
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod*.slice/cri-containerd-*.scope",
        PID_1,
        id="kubelet, systemd",
    ),
    pytest.param(
        f"/kubepods.slice/kubepods-besteffort-pod{UID.replace('-', '_')}.slice/crio-{{}}.scope",
        "/kubepods.slice/kubepods-besteffort-pod*.slice/crio-*.scope",
        PID_1,
        id="crio",
    ),
]


# --- who asked -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "line", "creator"), LAYOUTS)
def test_a_loop_that_runs_containers_is_the_script_that_runs_them(
    tmp_path: Path, path: str, line: str, creator: dict[str, Any]
) -> None:
    asked = {"requester": "agent-loop", "requester_pid": 812, "requester_unit": "agent-loop.service"}
    made = run(leak(scene(), line, 5_000, creator, names=5_000), path, 60, image=IMAGE, **asked)
    cause = cause_of(made, tmp_path)
    who = cause.culprit
    assert who is not None
    assert (who.comm, who.pid, who.unit, who.image) == ("agent-loop", 812, "agent-loop.service", IMAGE)
    assert f" leaked by agent-loop (agent-loop.service), which runs {IMAGE} (" in cause.summary
    assert {"leak", "container", "requested by"} <= facts_of(cause).keys()
    assert {link.source for link in cause.chain if link.step in ("container", "requested by")} == {"containers"}


@pytest.mark.parametrize(("path", "line", "creator"), LAYOUTS)
def test_a_supervisor_that_asks_over_the_socket_is_its_unit(
    tmp_path: Path, path: str, line: str, creator: dict[str, Any]
) -> None:
    """The founding agent: ever new containers, a unit that systemd never restarts, and no client's command line."""
    asked = {"requester": "amazon-ecs-init", "requester_pid": 812, "requester_unit": "ecs.service"}
    made = run(
        leak(scene(), line, 5_000, creator, names=5_000), path, 39, image=ECS, name="ecs-agent", requester_how="socket",
        **asked,
    )  # fmt: skip
    cause = cause_of(made, tmp_path)
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.unit) == ("amazon-ecs-init", "ecs.service")
    assert [link.value for link in cause.chain if link.step == "requested by"] == ["socket"]
    assert "systemctl disable --now ecs.service" in [step.command for step in cause.fix.steps]


@pytest.mark.parametrize(("path", "line", "creator"), LAYOUTS)
def test_an_agents_image_names_its_unit_as_the_last_resort(
    tmp_path: Path, path: str, line: str, creator: dict[str, Any]
) -> None:
    made = run(leak(scene(), line, 5_000, creator, names=5_000), path, 39, image=ECS, name="ecs-agent")
    cause = cause_of(made, tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.unit == "ecs.service"
    assert [link.value for link in cause.chain if link.step == "requested by"] == ["catalogue"]
    assert "systemctl disable --now ecs.service" in [step.command for step in cause.fix.steps]


@pytest.mark.parametrize(("path", "line", "creator"), LAYOUTS[:1])
def test_a_client_inside_a_container_is_that_container(
    tmp_path: Path, path: str, line: str, creator: dict[str, Any]
) -> None:
    """A runner that has the runtime's socket mounted."""
    home = f"{0xC1:064x}"
    asked = {"requester": "runner", "requester_pid": 812, "requester_container": home, "requester_how": "socket"}
    made = run(leak(scene(), line, 5_000, creator, names=5_000), path, 39, image="job:1", **asked)
    made.made.container(
        START_US + SECOND, home, name="main", pod="runner-0", namespace="ci", cgroup=f"/kubepods/podx/{home}"
    )
    who = cause_of(made, tmp_path).culprit
    assert who is not None
    assert (who.comm, who.container, who.unit) == ("runner", home, None)


def test_what_labels_name_is_told_and_proves_nothing(tmp_path: Path) -> None:
    made = run(leak(scene(), "/docker/*", 5_000, RUNC, names=5_000), "/docker/{}", 39, image=IMAGE,
               manager="compose project web")  # fmt: skip
    cause = cause_of(made, tmp_path)
    assert "compose project web" in facts_of(cause)["managed by"]
    assert cause.culprit is not None
    assert (cause.culprit.unit, cause.culprit.image) == (None, IMAGE)


@pytest.mark.parametrize(("path", "line", "creator"), LAYOUTS)
def test_the_same_container_again_and_again_is_its_restart_policy(
    tmp_path: Path, path: str, line: str, creator: dict[str, Any]
) -> None:
    known = {"name": "web-7", "image": IMAGE, "runs": 25, "restarts": 24, "restart_policy": "always"}
    asked = {"requester": "bash", "requester_pid": 812, "requester_unit": "session-3.scope"}
    made = run(leak(scene(), line, 2_000, creator, names=1), path, 1, **known, **asked)
    cause = cause_of(made, tmp_path)
    who = cause.culprit
    assert who is not None
    assert (who.comm, who.container_name, who.container, who.image) == (None, "web-7", ident(0), IMAGE)
    assert f" leaked by container web-7 (image {IMAGE}) (" in cause.summary
    assert "the same container, web-7" in facts_of(cause)["container"]
    assert "25 times" in facts_of(cause)["container"]
    assert facts_of(cause)["restart policy"].startswith("always")


@pytest.mark.parametrize(("path", "line", "creator"), POD_LAYOUTS)
def test_a_job_of_many_pods_is_one_culprit(tmp_path: Path, path: str, line: str, creator: dict[str, Any]) -> None:
    made = leak(leak(scene(), line, 2_000, creator), line.rpartition("/")[0], 1_900, KUBELET)
    for number, end in enumerate(("x7k2p", "b4d5f", "zz2w9")):
        one = ident(number)
        pod = {"pod": f"leak-job-{end}", "namespace": "default", "image": IMAGE}
        made.made.container(START_US + SECOND, one, cgroup=path.format(one), **pod)
    cause = cause_of(made, tmp_path)
    assert cause.culprit is not None
    assert (cause.culprit.namespace, cause.culprit.pod, cause.culprit.image) == ("default", "leak-job-*", IMAGE)
    assert f" leaked by pod default/leak-job-* (image {IMAGE}) (" in cause.summary
    # AND both lines are charged to it
    assert next(link.value for link in cause.chain if link.step == "leak") == 3_900


def test_families_of_one_culprit_are_judged_together(tmp_path: Path) -> None:
    # GIVEN a script whose zombies are spread over four paths, none of which has a third of all
    made = leak(scene(), "/jobs/*", 1_000, {"comm": "jobs", "pid": 6})
    asked = {"requester": "agent-loop", "requester_unit": "agent-loop.service", "image": IMAGE}
    for number in range(4):
        leak(made, f"/pool{'abcd'[number]}/*", 700, RUNC)
        made.made.container(START_US, ident(number), cgroup=f"/pool{'abcd'[number]}/{ident(number)}", **asked)
    cause = cause_of(made, tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.comm == "agent-loop"
    assert "3 more such paths" in facts_of(cause)["leak"]


def test_of_two_who_ask_the_one_with_more_runs_is_named(tmp_path: Path) -> None:
    made = leak(scene(), "/docker/*", 5_000, RUNC)
    run(made, "/docker/{}", 40, image=IMAGE, requester="agent-loop", requester_pid=812)
    made.made.container(START_US, "f" * 64, cgroup=f"/docker/{'f' * 64}", name="db", runs=2, restart_policy="always")
    cause = cause_of(made, tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.comm == "agent-loop"


def test_a_unit_that_runs_the_client_itself_is_the_culprit(tmp_path: Path) -> None:
    # GIVEN ExecStart=/usr/bin/docker run ...: the client's parent is pid 1
    asked = {"requester": "systemd", "requester_pid": 1, "requester_unit": "agent.service", "image": IMAGE}
    cause = cause_of(run(leak(scene(), "/docker/*", 5_000, RUNC), "/docker/{}", 9, **asked), tmp_path)
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.unit) == (None, "agent.service")
    assert f" leaked by agent.service, which runs {IMAGE} (" in cause.summary


# --- nobody ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "creator"),
    [
        ("/docker/*", RUNC),
        ("/docker/*", {"comm": "runc:[2:INIT]", "pid": 9}),
        ("/kubepods/burstable/pod*/*", RUNC),
        ("/kubepods/burstable/pod*", KUBELET),
        ("/system.slice/docker-*.scope", PID_1),
        ("/machine.slice/libpod-*.scope", PID_1),
        ("/ecs/*/*", {"comm": "containerd-shim", "pid": 9, "unit": "docker.service"}),
        ("/system.slice/containerd.service/x-*", {"comm": "bridge", "pid": 9, "unit": "containerd.service"}),
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/docker-*.scope", {"comm": "systemd", "pid": 812}),
    ],
)
def test_where_nobody_asked_visibly_nobody_is_named(tmp_path: Path, line: str, creator: dict[str, Any]) -> None:
    cause = cause_of(leak(scene(), line, 5_000, creator), tmp_path)
    assert cause.culprit is None or cause.culprit.unit in ("user-1000.slice", "app.slice")
    assert not [one for one in cause.fix.steps if "systemctl" in one.line or "kill" in one.line]
    if cause.culprit is None:
        assert "cannot be named" in cause.summary
        assert creator["comm"] in cause.summary


def test_containers_of_another_place_ask_for_nothing_here(tmp_path: Path) -> None:
    # GIVEN scopes that somebody made through pid 1 beside the scopes of containers
    made = leak(scene(), "/system.slice/run-*.scope", 5_000, PID_1)
    run(made, "/system.slice/docker-{}.scope", 20, requester="agent-loop", image=IMAGE)
    cause = cause_of(made, tmp_path)
    assert cause.culprit is None or cause.culprit.comm is None


def test_who_makes_cgroups_itself_is_named_as_ever(tmp_path: Path) -> None:
    cause = cause_of(leak(scene(), "/jobs/*", 5_000, {"comm": "leaky", "pid": 77, "unit": "leaky.service"}), tmp_path)
    assert cause.culprit is not None
    assert cause.culprit.name == "leaky (leaky.service)"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (f"/kubepods/burstable/pod{UID}/{{}}", "/kubepods/burstable/pod*/*/task-*"),
        ("/system.slice/cri-containerd-{}.scope", "/system.slice/cri-containerd-*.scope/task-*"),
    ],
)
def test_what_a_container_makes_below_its_own_cgroup_is_charged_to_its_pod(
    tmp_path: Path, above: str, below: str
) -> None:
    # GIVEN a process of a moment inside the container, of which no more is known than its name
    made = leak(scene(), below, 5_000, {"comm": "mkdir", "pid": 77})
    run(made, above, 4, image=IMAGE, pod="leaky", namespace="default", name="agent")
    cause = cause_of(made, tmp_path)
    assert cause.culprit is not None
    assert (cause.culprit.namespace, cause.culprit.pod, cause.culprit.image) == ("default", "leaky", IMAGE)
    # AND a unit that makes cgroups beside them is still itself
    beside = leak(scene(), below, 5_000, {"comm": "agent", "pid": 77, "unit": "agent.service"})
    run(beside, above, 4, image=IMAGE, pod="leaky", namespace="default", name="agent")
    named = cause_of(beside, tmp_path / "beside").culprit
    assert named is not None
    assert named.unit == "agent.service"


def test_pid_1_stands_for_the_unit_in_the_path(tmp_path: Path) -> None:
    cause = cause_of(leak(scene(), "/system.slice/ecs.service", 5_000, PID_1), tmp_path)
    assert cause.culprit is not None
    assert (cause.culprit.comm, cause.culprit.unit, cause.culprit.name) == (None, "ecs.service", "ecs.service")


def test_names_that_somebody_chose_to_be_long_do_not_fill_the_report(tmp_path: Path) -> None:
    made = leak(scene(), "/docker/*", 5_000, RUNC)
    run(made, "/docker/{}", 9, image="x" * 40_000, requester="a" * 5_000, requester_unit="b" * 5_000)
    assert len(cause_of(made, tmp_path).summary) < 1_000


def test_cgroups_that_a_runtime_makes_are_told_with_who_asked(tmp_path: Path) -> None:
    made = leak(Scene(kernel="6.18.0").vmstat().census(240, 5_000), "/docker/*", 5_000, RUNC)
    run(made, "/docker/{}", 9, image=IMAGE, requester="agent-loop")
    (said,) = [text for text in made.diagnose(tmp_path).noted if "were made" in text]
    assert f"by runc of containerd.service for agent-loop, which runs {IMAGE}, and 5,000 removed" in said


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ("leak-job-x7k2p", "leak-job-*"),
        ("web-6d4cf56db6-bcd2f", "web-*"),
        ("cron-28374650-qw2zx", "cron-*"),
        ("indexed-3-x7k2p", "indexed-*"),
        ("db-0", "db-*"),
        ("nginx-proxy", "nginx-proxy"),
        ("etcd-node1", "etcd-node1"),
        ("redis", "redis"),
    ],
)
def test_a_pods_name_without_the_end_that_kubernetes_gave_it(pod: str, said: str) -> None:
    assert family(pod) == said


@pytest.mark.parametrize(
    ("actor", "said"),
    [
        (Actor("kubelet", 1, "kubelet.service"), "kubelet (kubelet.service)"),
        (Actor("leaky"), "leaky"),
        (Actor(unit="ecs.service"), "ecs.service"),
        (Actor("loop", unit="loop.service", image="a:1"), "loop (loop.service), which runs a:1"),
        (Actor("loop", image="a:1", container_name="x"), "loop, which runs a:1"),
        (Actor(container="f" * 64, container_name="web-7", image="a:1"), "container web-7 (image a:1)"),
        (Actor(pod="leak-job-*", namespace="default", image="a:1"), "pod default/leak-job-* (image a:1)"),
        (Actor("python3", container="f" * 64, unit="docker-f.scope", container_name="t"), "python3 (container t)"),
        (Actor("python3", container="f" * 64, pod="t-0", namespace="ml", image="a:1"), "python3 (pod ml/t-0)"),
        (Actor("python3", container="f" * 64, pod=UID), "python3"),
        (Actor(image="a:1"), "containers of image a:1"),
        (Actor(cgroup="/jobs"), "/jobs"),
        (Actor(), "somebody"),
    ],
)
def test_an_actor_is_named_as_a_person_would(actor: Actor, said: str) -> None:
    assert actor.name == said


# --- the same answer elsewhere ---------------------------------------------------------------------------------------


def test_the_list_of_cgroups_says_who_asked_and_not_who_carried_out(tmp_path: Path) -> None:
    asked = {"requester": "agent-loop", "requester_pid": 812, "requester_unit": "agent-loop.service"}
    made = run(leak(scene(), "/docker/*", 5_000, RUNC, names=5_000), "/docker/{}", 60, image=IMAGE, **asked)
    made = leak(made, "/system.slice/cron.service/*", 7, {"comm": "cron", "pid": 5, "unit": "cron.service"})
    with open_recording(made.write(tmp_path)) as recording:
        answer = cgroups.answer(recording, WindowQuestion())
    lines = {line["path"]: line for line in answer["leaks"]}
    assert lines["/docker/*"]["charged_to"] == f"agent-loop (agent-loop.service), which runs {IMAGE}"
    assert lines["/docker/*"]["creator"]["comm"] == "runc"
    assert lines["/system.slice/cron.service/*"]["charged_to"] is None


@pytest.mark.parametrize(
    ("path", "comm", "unit", "system"),
    [
        ("/slurm/uid_*/job_*/step_*", "slurmstepd", "slurmd.service", "Slurm"),
        ("/system.slice/slurmstepd.scope/job_*/step_*", "slurmstepd", "slurmstepd.scope", "Slurm"),
        ("/pbs_jobs/*.server", "pbs_mom", "pbs.service", "PBS"),
        ("/nomad.slice/share.slice/*.web.scope", "nomad", "nomad.service", "Nomad"),
        ("/htcondor/condor_*_slot*", "condor_starter", "condor.service", "HTCondor"),
        ("/gridengine/*", "sge_shepherd", None, "Grid Engine"),
    ],
)
def test_the_launcher_of_a_batch_system_is_not_blamed_for_its_jobs(
    tmp_path: Path, path: str, comm: str, unit: str | None, system: str
) -> None:
    made = leak(scene(), path, 5_000, {"comm": comm, "pid": 812, "unit": unit}, names=5_000)
    cause = cause_of(made, tmp_path)
    assert cause.culprit is None
    assert f"{comm} made them for jobs of {system}" in " ".join(step.does for step in cause.fix.steps) + cause.summary
    assert not any("systemctl" in step.line and unit in step.line for step in cause.fix.steps if unit)


def test_a_users_program_called_like_a_batch_daemon_answers_for_itself(tmp_path: Path) -> None:
    made = leak(
        scene(), "/system.slice/agent.service/*", 5_000, {"comm": "slurmstepd", "pid": 9, "unit": "agent.service"}
    )
    culprit = cause_of(made, tmp_path).culprit
    assert culprit is not None
    assert culprit.unit == "agent.service"
