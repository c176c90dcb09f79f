"""The OCI bundle: who a container is, from whichever runtime wrote it; and files that were made to hurt."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from zombiescope.node.containers import bundle, files, identity

ID = "5e1f" * 16
UID = "0a1b2c3d-0001-4002-8003-0123456789ab"
CONTAINERD = {
    "io.kubernetes.cri.container-type": "container",
    "io.kubernetes.cri.container-name": "trainer",
    "io.kubernetes.cri.image-name": "registry.local/trainer:7",
    "io.kubernetes.cri.sandbox-namespace": "team-a",
    "io.kubernetes.cri.sandbox-name": "trainer-0",
    "io.kubernetes.cri.sandbox-uid": UID,
}
CRIO = {
    "io.kubernetes.cri-o.ContainerType": "container",
    "io.kubernetes.cri-o.Name": f"k8s_trainer_trainer-0_team-a_{UID}_4",
    "io.kubernetes.cri-o.ImageName": "registry.local/trainer:7",
    "io.kubernetes.cri-o.Namespace": "team-a",
    "io.kubernetes.cri-o.KubeName": "trainer-0",
    "io.kubernetes.cri-o.Labels": json.dumps({"io.kubernetes.pod.uid": UID, "io.kubernetes.pod.name": "trainer-0"}),
    "io.kubernetes.container.restartCount": "4",
}


def spec(annotations: dict[str, Any], **more: Any) -> bytes:
    linux = {"cgroupsPath": f"/kubepods/burstable/pod{UID}/{ID}"}
    process = {"args": ["/bin/train", "--epochs", "3"]}
    return json.dumps({"linux": linux, "process": process, "annotations": annotations, **more}).encode()


@pytest.mark.parametrize(("annotations", "runtime"), [(CONTAINERD, "containerd"), (CRIO, "crio")])
def test_a_pods_container(annotations: dict[str, str], runtime: str) -> None:
    found = bundle.parse(spec(annotations))
    assert found is not None
    assert found.is_of(ID)
    known = found.description
    assert (known.name, known.image, known.runtime) == ("trainer", "registry.local/trainer:7", runtime)
    assert (known.namespace, known.pod, known.pod_uid) == ("team-a", "trainer-0", UID)
    assert known.arguments == ("/bin/train", "--epochs", "3")
    assert known.restarts == (4 if runtime == "crio" else None)


def test_the_container_that_holds_a_pod_has_the_name_kubelet_gives_it() -> None:
    found = bundle.parse(spec({**CONTAINERD, "io.kubernetes.cri.container-type": "sandbox"}))
    assert found is not None
    assert found.description.name == "POD"


@pytest.mark.parametrize(("pod_uid", "pod"), [(UID, "trainer-0"), (None, None), (UID.replace("0", "f"), None)])
@pytest.mark.parametrize("annotations", [CONTAINERD, {**CONTAINERD, "io.kubernetes.cri.container-type": "sandbox"}])
def test_annotations_of_an_image_make_no_pod_of_it(
    tmp_path: Path, annotations: dict[str, str], pod_uid: str | None, pod: str | None
) -> None:
    """Podman passes on what the image's maker wrote; kubelet's directory in the path of the cgroup he does not make."""
    place = tmp_path / "run/containers/storage/overlay-containers" / ID / "userdata"
    place.mkdir(parents=True)
    (place / "config.json").write_bytes(spec({**annotations, "io.container.manager": "libpod"}))
    found = identity.describe(ID, runtime="podman", pod_uid=pod_uid, pid=1, root=str(tmp_path))
    assert (found.pod, found.pod_uid) == (pod, pod_uid)
    assert found.namespace == ("team-a" if pod else None)
    assert pod or found.name != "POD"


def test_podman_is_known_beside_annotations_that_it_shares_with_crio() -> None:
    found = bundle.parse(spec({"io.container.manager": "libpod", "io.kubernetes.cri-o.TTY": "false"}))
    assert found is not None
    assert found.description.runtime == "podman"


def test_docker_mounts_tell_where_its_files_are() -> None:
    mounts = [
        {"destination": "/proc", "source": "proc"},
        {"destination": "/etc/hostname", "source": f"/data/docker/containers/{ID}/hostname"},
    ]
    found = bundle.parse(spec({}, mounts=mounts))
    assert found is not None
    assert found.docker_directory == f"/data/docker/containers/{ID}"


def test_a_file_that_is_not_roots_is_not_believed_about_pods() -> None:
    found = bundle.parse(spec(CONTAINERD), uid=1000)
    assert found is not None
    assert (found.description.name, found.description.pod, found.description.namespace) == ("trainer", None, None)


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"\xff\xfe", b"{", b'{"annotations":' + b"[" * 100_000, b'{"a":' * 50_000],
)
def test_what_is_no_bundle_is_none(data: bytes) -> None:
    assert bundle.parse(data) is None


@pytest.mark.parametrize("wrong", [7, None, [], "x", {"a": {}}, [[[]]], True])
def test_fields_of_the_wrong_kind_are_not_there(wrong: Any) -> None:
    data = json.dumps(
        {"linux": wrong, "process": wrong, "annotations": dict.fromkeys((*CONTAINERD, *CRIO), wrong), "mounts": wrong}
    )
    found = bundle.parse(data.encode())
    assert found is not None
    assert found.description.pod in (None, "x")
    assert not found.is_of(ID)


def test_names_are_printable_and_short() -> None:
    found = bundle.parse(spec({"nerdctl/name": "a\x1b[2J\n\u202e" + "b" * 9000}))
    assert found is not None
    assert found.description.name is not None
    assert found.description.name.isprintable()
    assert len(found.description.name) <= files.MAX_TEXT


class Node:
    def __init__(self, root: Path) -> None:
        self.root = root

    def file(self, path: str, data: bytes) -> Path:
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        return place


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize(
    "place",
    [
        f"/run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}",
        f"/run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/{ID}",
        f"/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}",
        f"/run/containerd/io.containerd.runtime.v2.task/team-b/{ID}",
        f"/run/containers/storage/overlay-containers/{ID}/userdata",
        f"/var/lib/containers/storage/overlay-containers/{ID}/userdata",
    ],
)
def test_bundles_of_what_runs_are_found(node: Node, place: str) -> None:
    node.file(f"{place}/config.json", spec(CONTAINERD))
    found = bundle.of_container(ID, str(node.root))
    assert found is not None
    assert found.description.arguments[0] == "/bin/train"


def test_the_working_directory_of_the_runtime_is_the_bundle(node: Node) -> None:
    node.file("/somewhere/config.json", spec(CONTAINERD))
    (node.root / "proc/42").mkdir(parents=True)
    (node.root / "proc/42/cwd").symlink_to(node.root / "somewhere")
    assert bundle.of_process(42, ID, str(node.root)) is not None
    # of another container it says nothing
    assert bundle.of_process(42, ID[::-1], str(node.root)) is None
    assert bundle.of_process(43, ID, str(node.root)) is None


def test_a_shim_works_in_the_bundle_for_as_long_as_its_container_lives(node: Node) -> None:
    """Also where the runtime's files are out of our sight, and runc is long gone."""
    node.file("/hidden/config.json", spec(CONTAINERD))
    cgroup = node.root / "cgroup"
    cgroup.mkdir()
    (cgroup / "cgroup.procs").write_text("77\n78\n")
    for pid, ppid in ((77, 1), (78, 42)):
        node.file(f"/proc/{pid}/stat", f"{pid} (app) S {ppid} 1 1 0 -1 0 {'0 ' * 12}5 {'0 ' * 25}\n".encode())
    (node.root / "proc/42").mkdir()
    (node.root / "proc/42/cwd").symlink_to(node.root / "hidden")
    found = bundle.of_members(str(cgroup), ID, str(node.root))
    assert found is not None
    assert found.description.pod == "trainer-0"
    known = identity.describe(ID, runtime=None, pod_uid=UID, pid=0, cgroup=str(cgroup), root=str(node.root))
    assert (known.name, known.pod) == ("trainer", "trainer-0")
    assert bundle.of_members(str(cgroup), ID[::-1], str(node.root)) is None
    assert bundle.of_members("/nowhere", ID, str(node.root)) is None


def test_a_link_a_pipe_and_a_giant_in_its_place_are_refused(node: Node) -> None:
    (node.root / "proc/42").mkdir(parents=True)
    (node.root / "proc/42/cwd").symlink_to(node.root / "somewhere")
    real = node.file("/elsewhere.json", spec(CONTAINERD))
    (node.root / "somewhere").mkdir()
    config = node.root / "somewhere/config.json"
    config.symlink_to(real)
    assert bundle.of_process(42, ID, str(node.root)) is None
    config.unlink()
    os.mkfifo(config)
    assert bundle.of_process(42, ID, str(node.root)) is None
    config.unlink()
    config.write_bytes(spec(CONTAINERD) + b" " * files.MAX_BYTES)
    assert bundle.of_process(42, ID, str(node.root)) is None


@pytest.mark.parametrize("name", ["..", "../../etc", "a/b", "", "x" * 200, "a..b", "\0"])
def test_an_id_that_leads_elsewhere_is_not_looked_for(node: Node, name: str) -> None:
    assert bundle.of_container(name, str(node.root)) is None
