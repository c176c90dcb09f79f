"""Names of cgroups: what is an id, and whose a path is."""

import time

import pytest

from zombiescope.kernel.cgroup_path import Owner, container_at, normalise, owner

ID = "3f1c0e1dd9b1f9aa7e0c2b3f4a5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f"
UID = "0a1b2c3d-0001-4002-8003-0123456789ab"
UID_ = UID.replace("-", "_")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        # containers, cgroupfs driver
        (f"/docker/{ID}", "/docker/*"),
        (f"/kubepods/burstable/pod{UID}/{ID}", "/kubepods/burstable/pod*/*"),
        (f"/kubepods/besteffort/pod{ID[:32]}/{ID}", "/kubepods/besteffort/pod*/*"),
        (f"/ecs/{ID[:32]}/{ID}", "/ecs/*/*"),
        (f"/ecs/{ID[:32]}/{ID[:32]}-1234567890", "/ecs/*/*-*"),
        ("/docker/buildkit/ktb3w0kq3zi2zyf2w1zkyjxlo", "/docker/buildkit/*"),
        (f"/actions/{ID[:12]}", "/actions/*"),
        # containers, systemd driver
        (f"/system.slice/docker-{ID}.scope", "/system.slice/docker-*.scope"),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope",
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod*.slice/cri-containerd-*.scope",
        ),
        (f"/machine.slice/libpod-{ID}.scope", "/machine.slice/libpod-*.scope"),
        (f"/crio-conmon-{ID}.scope", "/crio-conmon-*.scope"),
        (
            f"/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{ID}",
            "/system.slice/containerd.service/kubepods-burstable-pod*.slice:cri-containerd:*",
        ),
        # systemd
        ("/user.slice/user-1000.slice/session-3.scope", "/user.slice/user-1000.slice/session-*.scope"),
        ("/user.slice/user-0.slice/session-c12.scope", "/user.slice/user-0.slice/session-*.scope"),
        (
            "/user.slice/user-1000.slice/user@1000.service/init.scope",
            "/user.slice/user-1000.slice/user@1000.service/init.scope",
        ),
        (f"/system.slice/run-r{ID[:32]}.scope", "/system.slice/run-*.scope"),
        ("/system.slice/run-p1234-i5678.scope", "/system.slice/run-*.scope"),
        ("/system.slice/run-u42.service", "/system.slice/run-*.service"),
        ("/system.slice/run-1234.scope", "/system.slice/run-*.scope"),
        ("/system.slice/getty@tty1.service", "/system.slice/getty@tty1.service"),
        ("/system.slice/postgresql@14-main.service", "/system.slice/postgresql@14-main.service"),
        ("/system.slice/systemd-coredump@5-21523-0.service", "/system.slice/systemd-coredump@*.service"),
        ("/system.slice/sshd@3-10.0.0.1:22-10.0.0.2:5555.service", "/system.slice/sshd@*.service"),
        ("/system.slice/worker@17.service", "/system.slice/worker@*.service"),
        (f"/system.slice/build@{ID[:16]}.service", "/system.slice/build@*.service"),
        (
            "/machine.slice/machine-qemu\\x2d3\\x2dweb.scope",
            "/machine.slice/machine-qemu\\x2d*\\x2dweb.scope",
        ),
        # churned names
        ("/lab/job-1234", "/lab/job-*"),
        ("/lab/child_17", "/lab/child_*"),
        ("/lab/child_17/worker_3", "/lab/child_*/worker_*"),
        ("/lab/job-12-34", "/lab/job-*"),
        ("/lab/pid1234", "/lab/pid*"),
        ("/lab/4321", "/lab/*"),
        ("/slurm/uid_1000/job_77/step_0", "/slurm/uid_*/job_*/step_*"),
        ("job-7", "job-*"),
        ("/lab/z0", "/lab/z*"),
        ("/lab/z3999", "/lab/z*"),
        ("/lab/job1", "/lab/job*"),
        ("/lab/worker3/z12", "/lab/worker*/z*"),
        ("/lab/worker-a3", "/lab/worker-a*"),
        # names that only look like it
        ("/", "/"),
        ("/system.slice/ecs.service", "/system.slice/ecs.service"),
        ("/system.slice/k3s.service", "/system.slice/k3s.service"),
        ("/system.slice/redis6.service", "/system.slice/redis6.service"),
        ("/system.slice/ifup@eth0.service", "/system.slice/ifup@eth0.service"),
        ("/system.slice/dev-nvme0n1.swap", "/system.slice/dev-nvme0n1.swap"),
        ("/system.slice/mnt-md0.mount", "/system.slice/mnt-md0.mount"),
        ("/machine.slice/machine-web2.scope", "/machine.slice/machine-web2.scope"),
        ("/k8s", "/k8s"),
        ("/system.slice/dbus.service", "/system.slice/dbus.service"),
        ("/system.slice/feedface.service", "/system.slice/feedface.service"),
        ("/lxc.payload.web2", "/lxc.payload.web2"),
        ("/system.slice/system-serial\\x2dgetty.slice", "/system.slice/system-serial\\x2dgetty.slice"),
    ],
)
def test_normalise(path: str, name: str) -> None:
    assert normalise(path) == name


def test_normalise_is_stable() -> None:
    for path in (
        f"/docker/{ID}",
        "/lab/job-12-34",
        f"/ecs/{ID[:32]}/{ID[:32]}-1234567890",
        "/a/run-u42.service",
    ):
        assert normalise(normalise(path)) == normalise(path)


def test_a_path_of_any_depth_is_read() -> None:
    assert normalise("/a1" * 1300) == "/a*" * 1300


def test_a_storm_of_new_names_is_cheap_and_one_name() -> None:
    paths = [f"/docker/{index:064x}" for index in range(5000)]
    started = time.process_time()
    names = {normalise(path) for path in paths}
    spent = time.process_time() - started
    assert names == {"/docker/*"}
    assert spent / len(paths) < 100e-6  # measured at 2 us; the bound only catches a quadratic mistake


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", Owner()),
        ("/system.slice/foo.service/sub", Owner("foo.service", "system.slice")),
        (
            "/user.slice/user-1000.slice/session-3.scope",
            Owner("session-3.scope", "user-1000.slice"),
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/ray.service",
            Owner("user@1000.service", "user-1000.slice", user_unit="ray.service"),
        ),
        (f"/docker/{ID}", Owner(container=ID, runtime="docker")),
        # Names below a unit, a container or a plain directory were chosen there, and are no units of this node.
        (f"/docker/{ID}/init.scope", Owner(container=ID, runtime="docker")),
        ("/lxc.payload.web/system.slice/nginx.service", Owner(container="web", runtime="lxc")),
        ("/system.slice/ci-runner.service/postgresql.service/job", Owner("ci-runner.service", "system.slice")),
        ("/slurm/uid_1000/system.slice/nginx.service", Owner()),
        (
            "/machine.slice/machine-web.scope/payload/system.slice/nginx.service",
            Owner("machine-web.scope", "machine.slice", "web", None, "machined"),
        ),
        (
            f"/system.slice/docker-{ID}.scope",
            Owner(f"docker-{ID}.scope", "system.slice", ID, None, "docker"),
        ),
        (f"/kubepods/burstable/pod{UID}/{ID}", Owner(container=ID, pod_uid=UID)),
        (
            f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope",
            Owner(f"cri-containerd-{ID}.scope", f"kubepods-burstable-pod{UID_}.slice", ID, UID, "containerd"),
        ),
        (
            f"/system.slice/containerd.service/kubepods-burstable-pod{UID_}.slice:cri-containerd:{ID}",
            Owner("containerd.service", "system.slice", ID, UID, "containerd"),
        ),
        (f"/kubepods/besteffort/pod{ID[:32]}", Owner(pod_uid=ID[:32])),
        (
            f"/kubepods.slice/kubepods-pod{UID_}.slice/crio-{ID}.scope/container",
            Owner(f"crio-{ID}.scope", f"kubepods-pod{UID_}.slice", ID, UID, "crio"),
        ),
        (f"/ecs/{ID[:32]}/{ID}", Owner(container=ID, runtime="ecs")),
        (f"/ecs/{ID[:32]}/{ID[:32]}-123456", Owner(container=f"{ID[:32]}-123456", runtime="ecs")),
        (
            f"/machine.slice/libpod-{ID}.scope",
            Owner(f"libpod-{ID}.scope", "machine.slice", ID, None, "podman"),
        ),
        ("/lxc.payload.web.1", Owner(container="web.1", runtime="lxc")),
        (
            "/machine.slice/systemd-nspawn@web.service/payload",
            Owner("systemd-nspawn@web.service", "machine.slice", "web", None, "machined"),
        ),
        (
            f"/docker/{ID}/kubelet/kubepods/burstable/pod{UID}/{ID[::-1]}",
            Owner(container=ID[::-1], pod_uid=UID, runtime="docker"),
        ),
        (f"/../../docker/{ID}", Owner(container=ID, runtime="docker")),
        (
            "/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
            Owner("slurmstepd.scope", "system.slice", "slurm-4711", None, "slurm"),
        ),
        (
            "/system.slice/node7_slurmstepd.scope/job_4711",
            Owner("node7_slurmstepd.scope", "system.slice", "slurm-4711", None, "slurm"),
        ),
        ("/slurm/uid_1000/job_77/step_batch/task_0", Owner(container="slurm-77", runtime="slurm")),
        ("/slurm_node7/uid_1000/job_77", Owner(container="slurm-77", runtime="slurm")),
        (f"/slurm/uid_1000/job_77/step_0/{ID}", Owner(container=ID)),
        ("/system.slice/web.service/job_77", Owner("web.service", "system.slice")),
    ],
)
def test_owner(path: str, expected: Owner) -> None:
    assert owner(path) == expected


@pytest.mark.parametrize(
    ("path", "container"),
    [
        (f"/docker/{ID}", ID),
        (f"/system.slice/docker-{ID}.scope", ID),
        (f"/kubepods/burstable/pod{UID}/{ID}", ID),
        (f"/docker/{ID}/docker/{ID[::-1]}", ID[::-1]),
        ("/lxc.payload.web", "web"),
        ("/docker", None),
        (f"/docker/{ID}/init.scope", None),
        (f"/docker/{ID}/{ID}", None),
        (f"/machine.slice/libpod-conmon-{ID}.scope", None),
        (f"/machine.slice/libpod-{ID}.scope/container", None),
        (f"/kubepods/burstable/pod{UID}", None),
        ("/lab/z12", None),
    ],
)
def test_a_containers_own_cgroup(path: str, container: str | None) -> None:
    found = container_at(path)
    assert (found.container if found else None) == container
