"""Who a container is: its bundle, its runtime's files and its pod's directory, asked in the order of what they know.

Called while the container's cgroup is new, in a thread that may wait. Cost: about ten small files; the figure measured
stands in docs/design/0019.
"""

from __future__ import annotations

from dataclasses import replace

from zombiescope.node.containers import bundle, docker, exits, files, pods, storage
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.places import Places

_SHARED_STORAGE = ("podman", "crio")
_BY_NAME = ("lxc", "machined")
"""Their paths hold a name and no id."""


def describe(
    container: str,
    *,
    runtime: str | None,
    pod_uid: str | None,
    pid: int | None,
    cgroup: str | None = None,
    places: Places | None = None,
    root: str = "/",
) -> Description:
    """As far as files say it. `pid` made the cgroup: a runtime works in the bundle; pid 1 does not. `cgroup` is its
    directory, `pod_uid` the pod of its path: kubelet makes that directory, and without it nothing is a pod's."""
    if runtime == "slurm":
        return Description(name=container, runtime=runtime, owner=f"slurm/{container.removeprefix('slurm-')}")
    if runtime in _BY_NAME:
        return Description(name=files.text(container), runtime=runtime)
    places = places or Places()
    told = bundle.of_process(pid, container, root) if pid is not None and pid > 1 else None
    told = told or bundle.of_container(container, root, places.bundles)
    told = told or (bundle.of_members(cgroup, container, root) if cgroup is not None else None)
    if told is not None and told.is_roots:
        places.found_bundle(told.directory, container)
    found = _outside_pods(told.description, pod_uid) if told else Description()
    if runtime in ("docker", "ecs", None) and (told is None or told.description.runtime in (None, "docker")):
        hint = told.docker_directory if told and told.is_roots else None
        found = found.filled(docker.of_container(container, hint, root, places.docker, pod_uid) or Description())
        places.found_docker(found.directory, container)
    if (found.runtime or runtime) in _SHARED_STORAGE and (found.name is None or found.image is None):
        found = found.filled(storage.of_container(container, root) or Description())
    found = found.filled(Description(runtime=runtime, pod_uid=pod_uid))
    return _with_pod(found, root) if found.pod_uid else found


def _outside_pods(told: Description, pod_uid: str | None) -> Description:
    """Without what annotations say of a pod that it is not in: an image brings its own, and Podman passes them on."""
    if pod_uid is not None and told.pod_uid in (None, pod_uid):
        return told
    name = None if told.name == bundle.SANDBOX else told.name
    return replace(told, name=name, namespace=None, pod=None, pod_uid=None, restarts=None)


def _with_pod(found: Description, root: str) -> Description:
    """Namespace, pod and restarts from kubelet's directory."""
    if found.namespace and found.pod and found.pod_uid:
        pod: pods.Pod | None = pods.parse("_".join((found.namespace, found.pod, found.pod_uid)))
    else:
        pod = pods.of_uid(found.pod_uid or "", root)
    if pod is None:
        return found
    found = found.filled(Description(namespace=pod.namespace, pod=pod.name))
    counted = pods.restarts(pod, found.name, root) if found.name and found.restarts is None else None
    return found.filled(Description(restarts=counted))


def ending(
    container: str,
    *,
    runtime: str | None,
    directory: str | None,
    pod_uid: str | None = None,
    places: Places | None = None,
    root: str = "/",
) -> Description:
    """What is left when its cgroup is gone: the exit code and how often it was restarted."""
    if runtime in ("crio", "podman"):
        return Description(code=exits.of_container(container, root))
    if runtime in ("docker", "ecs", None):
        left = docker.of_container(container, directory, root, places.docker if places else (), pod_uid)
        return Description(code=left.code, restarts=left.restarts, running=left.running) if left else Description()
    return Description()
