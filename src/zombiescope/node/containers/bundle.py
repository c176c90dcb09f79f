"""The OCI bundle: config.json, with which a runtime was told what to run.

    linux.cgroupsPath   where its cgroup shall be: "/docker/ID", or "system.slice:docker:ID" for systemd's driver
    process.args        what it runs
    annotations         under Kubernetes who it is: io.kubernetes.cri.* (containerd), io.kubernetes.cri-o.* (CRI-O)
    mounts              under Docker /etc/hostname comes from DATA-ROOT/containers/ID

Found in the working directory of runc while it makes the cgroup, and in the state directories of containerd, CRI-O and
podman for as long as the container is there. Absence: None.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from zombiescope.base.secrets import mask_words
from zombiescope.kernel import process
from zombiescope.kernel.procfile import at, read_link
from zombiescope.node.containers import files, labelled
from zombiescope.node.containers.description import Description

STATES = (
    "/run/containerd", "/run/docker/containerd/daemon", "/run/docker/containerd", "/run/k3s/containerd",
    "/var/snap/microk8s/common/run/containerd",
)  # fmt: skip
TASKS = ("io.containerd.runtime.v2.task", "io.containerd.runtime.v1.linux")
NAMESPACES = ("moby", "k8s.io", "default")
MAX_NAMESPACES = 16
STORAGES = ("/run/containers/storage", "/var/lib/containers/storage")
SANDBOX = "POD"
"""The name of the container that only holds a pod's namespaces, as kubelet calls it."""
MAX_ARGUMENTS = 16
MEMBERS_BYTES = 256
MAX_MEMBERS = 4

_NAME = (
    "io.kubernetes.cri.container-name", "io.kubernetes.container.name", "nerdctl/name", "io.podman.annotations.name",
)  # fmt: skip
_IMAGE = ("io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName", "io.kubernetes.cri-o.Image")
_NAMESPACE = ("io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri-o.Namespace", "io.kubernetes.pod.namespace")
_POD = ("io.kubernetes.cri.sandbox-name", "io.kubernetes.cri-o.KubeName", "io.kubernetes.pod.name")
_POD_UID = ("io.kubernetes.cri.sandbox-uid", "io.kubernetes.pod.uid")
_KIND = ("io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType")
_RESTARTS = ("io.kubernetes.container.restartCount",)


@dataclass(frozen=True, slots=True)
class Bundle:
    cgroups_path: str | None
    description: Description
    docker_directory: str | None = None
    """DATA-ROOT/containers/ID, where a mount comes from there."""
    is_roots: bool = True
    """Nobody but root wrote it: only then is it believed about pods."""
    directory: str | None = None
    """Where it was found."""

    def is_of(self, container: str) -> bool:
        """Whether it speaks of that container: anybody may have a file of this name where he works."""
        return self.cgroups_path is not None and container in self.cgroups_path


def parse(data: bytes, uid: int = 0) -> Bundle | None:
    """None where it is no config.json."""
    spec = files.document(data)
    if not spec:
        return None
    notes = files.part(spec, "annotations")
    labels = files.document(_bytes(notes.get("io.kubernetes.cri-o.Labels")))
    known = {**labels, **notes}
    found = Description(
        name=SANDBOX if _first(known, _KIND) == "sandbox" else _first(known, _NAME) or _crio_name(known),
        image=_first(known, _IMAGE),
        runtime=_runtime(known),
        namespace=_first(known, _NAMESPACE),
        pod=_first(known, _POD),
        pod_uid=_first(known, _POD_UID),
        manager=labelled.manager(known),
        restarts=next((count for key in _RESTARTS if (count := files.whole(known.get(key))) is not None), None),
        arguments=_arguments(files.part(spec, "process").get("args")),
    )
    if uid:
        found = Description(name=found.name, image=found.image, arguments=found.arguments)
    return Bundle(files.text(files.part(spec, "linux").get("cgroupsPath"), 1024), found, _docker(spec), uid == 0)


def _bytes(value: object) -> bytes:
    return value.encode("utf-8", "replace") if isinstance(value, str) else b""


def _first(notes: dict[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((value for key in keys if (value := files.text(notes.get(key)))), None)


def _runtime(notes: dict[str, Any]) -> str | None:
    """Podman gives annotations of CRI-O's to its containers as well."""
    if notes.get("io.container.manager") == "libpod":
        return "podman"
    if any(key.startswith("io.kubernetes.cri-o.") for key in notes):
        return "crio"
    return "containerd" if any(key.startswith(("io.kubernetes.cri.", "nerdctl/")) for key in notes) else None


def _crio_name(notes: dict[str, Any]) -> str | None:
    """CRI-O's own name is k8s_NAME_POD_NAMESPACE_UID_ATTEMPT."""
    words = (files.text(notes.get("io.kubernetes.cri-o.Name")) or "").split("_")
    return words[1] if len(words) == 6 and words[0] == "k8s" and words[1] else None


def _arguments(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(mask_words([word for one in value[:MAX_ARGUMENTS] if (word := files.text(one)) is not None]))


def _docker(spec: dict[str, Any]) -> str | None:
    mounts = spec.get("mounts")
    for mount in mounts[:256] if isinstance(mounts, list) else ():
        if isinstance(mount, dict) and mount.get("destination") in ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf"):
            source = mount.get("source")
            if isinstance(source, str) and "/containers/" in source and source.startswith("/"):
                return source.rpartition("/")[0]
    return None


def of_process(pid: int, container: str, root: str = "/") -> Bundle | None:
    """The bundle in which a runtime works, if it is that container's."""
    try:
        place = os.open(at(root, f"proc/{pid}/cwd"), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = files.read_below(place, "config.json", links=False)
    finally:
        os.close(place)
    bundle = parse(found.data, found.uid) if found else None
    if bundle is None or not bundle.is_of(container):
        return None
    return replace(bundle, directory=read_link(at(root, f"proc/{pid}/cwd")))


def of_members(cgroup: str, container: str, root: str = "/") -> Bundle | None:
    """The bundle in which the parent of a container's processes works: its shim does so for as long as it lives, in
    whatever mount namespace the runtime has its files."""
    try:
        with open(f"{cgroup}/cgroup.procs", "rb", buffering=0) as file:
            members = file.read(MEMBERS_BYTES) or b""
    except OSError:
        return None
    for word in members.split()[:MAX_MEMBERS]:
        stat = process.read_stat(int(word), root) if word.isdigit() and len(word) < 10 else None
        found = of_process(stat.ppid, container, root) if stat is not None and stat.ppid > 1 else None
        if found is not None:
            return found
    return None


def of_container(container: str, root: str = "/", learned: Iterable[str] = ()) -> Bundle | None:
    """From the places where runtimes keep the bundles of what runs."""
    if not files.is_component(container):
        return None
    for path in _places(container, root, learned):
        found = files.read(path, root)
        bundle = parse(found.data, found.uid) if found else None
        if bundle is not None:
            return replace(bundle, directory=path.rpartition("/")[0])
    return None


def _places(container: str, root: str, learned: Iterable[str]) -> Iterator[str]:
    yield from (f"{place}/{container}/config.json" for place in learned)
    for state in STATES:
        for task in TASKS:
            there = files.names_in(f"{state}/{task}", root)[:MAX_NAMESPACES]
            usual = [name for name in NAMESPACES if name in there]
            others = [name for name in there if name not in usual and files.is_component(name)]
            yield from (f"{state}/{task}/{name}/{container}/config.json" for name in usual + others)
    for storage in STORAGES:
        yield f"{storage}/overlay-containers/{container}/userdata/config.json"
