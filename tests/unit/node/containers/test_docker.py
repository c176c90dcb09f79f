"""Docker's files of a container, where its data root is, and what is left of one that ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zombiescope.node.containers import docker, identity
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.places import Places

ID = "dcf1" * 16


def config(**more: Any) -> bytes:
    state = {"Running": True, "ExitCode": 0, "FinishedAt": "0001-01-01T00:00:00Z", **more.pop("state", {})}
    settings = {"Image": "registry.local/ecs-agent:1.2", "Labels": more.pop("labels", {})}
    return json.dumps(
        {"ID": ID, "Name": "/agent", "State": state, "Config": settings, "RestartCount": 3, **more}
    ).encode()


def node(root: Path, directory: str, host: bytes | None = None, **more: Any) -> str:
    place = root / directory.lstrip("/")
    place.mkdir(parents=True)
    (place / "config.v2.json").write_bytes(config(**more))
    if host is not None:
        (place / "hostconfig.json").write_bytes(host)
    return str(root)


def test_name_image_and_policy(tmp_path: Path) -> None:
    host = b'{"RestartPolicy": {"Name": "always", "MaximumRetryCount": 0}}'
    root = node(tmp_path, f"/var/lib/docker/containers/{ID}", host)
    found = identity.describe(ID, runtime="docker", pod_uid=None, pid=1, root=root)
    assert (found.name, found.image, found.runtime) == ("agent", "registry.local/ecs-agent:1.2", "docker")
    assert (found.restarts, found.restart_policy, found.code) == (3, "always", None)


@pytest.mark.parametrize(
    ("host", "policy"),
    [
        (b'{"RestartPolicy": {"Name": "no", "MaximumRetryCount": 0}}', "no"),
        (b'{"RestartPolicy": {"Name": "", "MaximumRetryCount": 0}}', "no"),
        (b'{"RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 5}}', "on-failure:5"),
        (b'{"RestartPolicy": {"Name": "unless-stopped"}}', "unless-stopped"),
        (b'{"RestartPolicy": []}', "no"),
        (b"{}", None),
        (b"no json", None),
    ],
)
def test_restart_policies(host: bytes, policy: str | None) -> None:
    assert docker.parse_policy(host) == policy


def test_the_code_is_that_of_a_container_that_has_ended() -> None:
    over = docker.parse(config(state={"Running": False, "ExitCode": 137, "FinishedAt": "2026-11-16T08:00:00Z"}))
    waiting = docker.parse(config(state={"Running": True, "Restarting": True, "ExitCode": 3}))
    never = docker.parse(config(state={"Running": False}))
    assert waiting is not None
    assert (waiting.code, waiting.running) == (3, False)
    assert over is not None
    assert never is not None
    assert (over.code, over.running, never.code) == (137, False, None)


def test_a_pods_container_of_old_kubelets() -> None:
    labels = {
        "io.kubernetes.container.name": "trainer", "io.kubernetes.pod.name": "trainer-0",
        "io.kubernetes.pod.namespace": "team-a", "io.kubernetes.pod.uid": "u1",
        "annotation.io.kubernetes.container.restartCount": "7",
    }  # fmt: skip
    found = docker.parse(config(labels=labels), "u1")
    assert found is not None
    assert (found.name, found.namespace, found.pod, found.restarts) == ("trainer", "team-a", "trainer-0", 7)


@pytest.mark.parametrize("pod_uid", [None, "u2"])
def test_an_image_that_calls_itself_a_pod_is_none(tmp_path: Path, pod_uid: str | None) -> None:
    """Whoever makes an image chooses its labels; kubelet's directory in the path of the cgroup he does not make."""
    labels = {
        "io.kubernetes.container.name": "kube-apiserver", "io.kubernetes.pod.name": "kube-apiserver-head",
        "io.kubernetes.pod.namespace": "kube-system", "io.kubernetes.pod.uid": "u1",
        "annotation.io.kubernetes.container.restartCount": "7", "io.kubernetes.docker.type": "podsandbox",
    }  # fmt: skip
    directory = f"/var/lib/docker/containers/{ID}"
    root = node(tmp_path, directory, labels=labels)
    found = identity.describe(ID, runtime="docker", pod_uid=pod_uid, pid=1, root=root)
    assert (found.name, found.namespace, found.pod, found.pod_uid) == ("agent", None, None, pod_uid)
    assert found.restarts == 3
    assert identity.ending(ID, runtime="docker", directory=directory, pod_uid=pod_uid, root=root).restarts == 3


@pytest.mark.parametrize(
    ("files", "data_root"),
    [
        ({}, "/var/lib/docker"),
        ({"etc/docker/daemon.json": b'{"data-root": "/mnt/docker/"}'}, "/mnt/docker"),
        ({"etc/docker/daemon.json": b'{"graph": "/mnt/old"}'}, "/mnt/old"),
        ({"etc/docker/daemon.json": b'{"data-root": "../x"}'}, "/var/lib/docker"),
        ({"run/docker.pid": b"77", "proc/77/cmdline": b"dockerd\0--data-root\0/ssd/d\0"}, "/ssd/d"),
        ({"run/docker.pid": b"77\n", "proc/77/cmdline": b"dockerd\0--data-root=/ssd/d\0-D\0"}, "/ssd/d"),
        (
            {"run/docker.pid": b"77", "proc/77/cmdline": b"dockerd\0--config-file\0/opt/d.json\0",
             "opt/d.json": b'{"data-root": "/nvme"}'},
            "/nvme",
        ),
    ],
)  # fmt: skip
def test_where_the_data_is(tmp_path: Path, files: dict[str, bytes], data_root: str) -> None:
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    assert next(docker.data_roots(str(tmp_path))) == data_root
    root = node(tmp_path, f"{data_root}/containers/{ID}")
    found = docker.of_container(ID, None, root)
    assert found is not None
    assert found.directory == f"{data_root}/containers/{ID}"


def test_what_is_left_of_one_that_ended(tmp_path: Path) -> None:
    state = {"Running": False, "ExitCode": 3, "FinishedAt": "2026-11-16T08:00:00Z"}
    root = node(tmp_path, f"/odd/containers/{ID}", state=state)
    left = identity.ending(ID, runtime="docker", directory=f"/odd/containers/{ID}", root=root)
    assert (left.code, left.restarts) == (3, 3)
    # a directory that is not the container's is not read
    assert identity.ending(ID, runtime="docker", directory="/odd/containers", root=root) == Description()


@pytest.mark.parametrize(("data", "code"), [(b"0", 0), (b"137\n", 137), (b"-1", None), (b"x", None), (b"9" * 40, None)])
def test_exit_files_of_conmon(tmp_path: Path, data: bytes, code: int | None) -> None:
    (tmp_path / "run/crio/exits").mkdir(parents=True)
    (tmp_path / "run/crio/exits" / ID).write_bytes(data)
    assert identity.ending(ID, runtime="crio", directory=None, root=str(tmp_path)).code == code


def test_places_that_one_container_told_are_where_the_next_is_found(tmp_path: Path) -> None:
    """The runtime keeps everything at places of its own; only the first was caught while runc worked."""
    places = Places()
    for number in (1, 2):
        container = f"{number:064x}"
        node(tmp_path, f"/odd/data/containers/{container}")
        bundle = tmp_path / f"odd/exec/moby/{container}"
        bundle.mkdir(parents=True)
        mounts = [{"destination": "/etc/hostname", "source": f"/odd/data/containers/{container}/hostname"}]
        spec = {"linux": {"cgroupsPath": f"/docker/{container}"}, "process": {"args": ["true"]}, "mounts": mounts}
        (bundle / "config.json").write_text(json.dumps(spec))
    (tmp_path / "proc/42").mkdir(parents=True)
    (tmp_path / "proc/42/cwd").symlink_to(tmp_path / f"odd/exec/moby/{1:064x}")

    def described(number: int, pid: int) -> Description:
        return identity.describe(
            f"{number:064x}", runtime="docker", pod_uid=None, pid=pid, places=places, root=str(tmp_path)
        )

    assert described(2, 43).name is None
    assert described(1, 42).name == "agent"
    assert described(2, 43).name == "agent"


def test_a_machine_has_the_name_that_its_path_has(tmp_path: Path) -> None:
    found = identity.describe("web.1", runtime="lxc", pod_uid=None, pid=1, root=str(tmp_path))
    assert (found.name, found.runtime) == ("web.1", "lxc")


def test_podmans_index_names_what_its_bundle_does_not(tmp_path: Path) -> None:
    index = tmp_path / "var/lib/containers/storage/overlay-containers/containers.json"
    index.parent.mkdir(parents=True)
    metadata = json.dumps({"image-name": "docker.io/library/redis:7", "name": "cache"})
    index.write_text(json.dumps([{"id": "x"}, 7, {"id": ID, "names": ["other"], "metadata": metadata}]))
    found = identity.describe(ID, runtime="podman", pod_uid=None, pid=1, root=str(tmp_path))
    assert (found.name, found.image, found.runtime) == ("cache", "docker.io/library/redis:7", "podman")
