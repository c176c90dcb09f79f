"""Docker's own files of a container: DATA-ROOT/containers/ID/config.v2.json and hostconfig.json.

    config.v2.json    Name ("/web"), Config.Image, Config.Labels, RestartCount, State.Running, .Restarting, .ExitCode
    hostconfig.json   RestartPolicy: Name ("", "no", "always", "unless-stopped", "on-failure"), MaximumRetryCount

Labels name a pod only where the container's cgroup is below that pod's directory, which kubelet made: whoever makes an
image may give it any label.

The data root is /var/lib/docker unless /etc/docker/daemon.json or dockerd's command line say otherwise; a bundle knows
it too, because /etc/hostname is mounted from there. With `--rm` all of it is deleted when the container ends.

Cost: two files of 3 kB. Absence: None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from zombiescope.kernel.procfile import at, read_file
from zombiescope.node.containers import files, labelled
from zombiescope.node.containers.bundle import SANDBOX
from zombiescope.node.containers.description import Description

DATA_ROOT = "/var/lib/docker"
PID_FILES = ("/run/docker.pid", "/var/run/docker.pid")
CMDLINE_BYTES = 16_384


def parse(data: bytes, pod_uid: str | None = None) -> Description | None:
    """config.v2.json of a container whose cgroup is that pod's. None where it is none."""
    config = files.document(data)
    state, settings = files.part(config, "State"), files.part(config, "Config")
    if "ID" not in config and not settings:
        return None
    labels = files.part(settings, "Labels")
    kubelet = labels if pod_uid is not None and labels.get("io.kubernetes.pod.uid") in (None, pod_uid) else {}
    running = state.get("Running")
    is_waiting = state.get("Restarting") is True  # between two runs of a restart policy; Running is true as well
    is_over = is_waiting or (running is False and not _never(state.get("FinishedAt")))
    name = (files.text(config.get("Name")) or "").lstrip("/") or None
    if kubelet.get("io.kubernetes.docker.type") == "podsandbox":
        name = SANDBOX
    return Description(
        name=files.text(kubelet.get("io.kubernetes.container.name")) or name,
        image=files.text(settings.get("Image")),
        runtime="docker",
        namespace=files.text(kubelet.get("io.kubernetes.pod.namespace")),
        pod=files.text(kubelet.get("io.kubernetes.pod.name")),
        pod_uid=files.text(kubelet.get("io.kubernetes.pod.uid")),
        restarts=_restarts(config, kubelet),
        manager=labelled.manager(labels),
        code=files.whole(state.get("ExitCode")) if is_over else None,
        running=running and not is_waiting if isinstance(running, bool) else None,
    )


def _never(value: object) -> bool:
    return not isinstance(value, str) or value.startswith("0001-")


def _restarts(config: dict[str, Any], kubelet: dict[str, Any]) -> int | None:
    counted = files.whole(kubelet.get("annotation.io.kubernetes.container.restartCount"))
    return files.whole(config.get("RestartCount")) if counted is None else counted


def parse_policy(data: bytes) -> str | None:
    """hostconfig.json -> "always", "on-failure:5", "no"; None where it says nothing."""
    host = files.document(data)
    policy = files.part(host, "RestartPolicy")
    name = files.text(policy.get("Name"), 64)
    if not host or ("RestartPolicy" not in host):
        return None
    most = files.whole(policy.get("MaximumRetryCount"))
    return f"{name}:{most}" if name == "on-failure" and most else name or "no"


def parse_daemon(data: bytes) -> str | None:
    """The data root that daemon.json names."""
    config = files.document(data)
    return _absolute(config.get("data-root")) or _absolute(config.get("graph"))


def parse_arguments(data: bytes) -> tuple[str | None, str | None]:
    """(data root, configuration file) from dockerd's command line, words ended by NUL."""
    words = data[:CMDLINE_BYTES].decode("utf-8", "replace").split("\0")
    found: dict[str, str] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        if option in ("--data-root", "--graph", "-g", "--config-file"):
            found[option] = value if equals else following
    data_root = found.get("--data-root") or found.get("--graph") or found.get("-g")
    return _absolute(data_root), _absolute(found.get("--config-file"))


def _absolute(value: object) -> str | None:
    path = files.text(value, 1024)
    return path.rstrip("/") or "/" if path is not None and path.startswith("/") and "/.." not in path else None


def data_roots(root: str = "/") -> Iterator[str]:
    """Where Docker's data may be on this node, the likeliest first."""
    config_file = "/etc/docker/daemon.json"
    for place in PID_FILES:
        found = files.read(place, root)
        pid = found.data.strip() if found else b""
        if pid.isdigit() and len(pid) < 10:
            said, elsewhere = parse_arguments(read_file(at(root, f"proc/{int(pid)}/cmdline")) or b"")
            config_file = elsewhere or config_file
            if said:
                yield said
            break
    config = files.read(config_file, root)
    configured = parse_daemon(config.data) if config else None
    if configured:
        yield configured
    yield DATA_ROOT


def read(directory: str, root: str = "/", pod_uid: str | None = None) -> Description | None:
    """From DATA-ROOT/containers/ID."""
    config = files.read(f"{directory}/config.v2.json", root)
    found = parse(config.data, pod_uid) if config else None
    if found is None:
        return None
    host = files.read(f"{directory}/hostconfig.json", root)
    return found.filled(Description(restart_policy=parse_policy(host.data) if host else None, directory=directory))


def of_container(
    container: str,
    hint: str | None = None,
    root: str = "/",
    learned: Iterable[str] = (),
    pod_uid: str | None = None,
) -> Description | None:
    """By id; `hint` is the directory that its bundle names, `learned` are those of other containers, `pod_uid` is the
    pod of its cgroup's path."""
    if not files.is_component(container):
        return None
    if (
        hint is not None
        and hint.endswith(f"/containers/{container}")
        and (found := read(hint, root, pod_uid)) is not None
    ):
        return found
    for place in learned:
        if (found := read(f"{place}/{container}", root, pod_uid)) is not None:
            return found
    for data_root in dict.fromkeys(data_roots(root)):
        if (found := read(f"{data_root}/containers/{container}", root, pod_uid)) is not None:
            return found
    return None
