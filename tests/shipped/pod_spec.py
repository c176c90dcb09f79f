"""The chart's own pod as an OCI bundle: what helm renders becomes the config.json that containerd would give to runc.

Field by field from the DaemonSet: user, capabilities, seccomp, read-only root, host paths, environment, limits. What
the kubelet and containerd add is added as they do it: on cgroup v2 a container that is not privileged has a cgroup
namespace of its own; the host's PID and network namespaces are shared where the pod says so; devices are refused but
for the usual six; paths of /proc and /sys are masked. The seccomp profile is that of containerd 1.6.20 for these
capabilities, as `ctr containers create --seccomp` writes it (seccomp-containerd.json).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.helpers import chart

POD_UID = "99999999-8888-7777-6666-555555555555"
CONTAINER = "c0ffee" * 10 + "c0ff"
SLICE = "/kubepods.slice/kubepods-burstable.slice"
CGROUP = f"{SLICE}/kubepods-burstable-pod{POD_UID.replace('-', '_')}.slice/cri-containerd-{CONTAINER}.scope"
SECCOMP = Path(__file__).with_name("seccomp-containerd.json")

_SIZES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
_DEVICES = ((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0))
_MASKED = (
    "/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi",
)  # fmt: skip
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def config_map(*settings: str) -> str:
    """agent.yaml as the chart writes it."""
    (found,) = chart.of_kind(chart.objects(*settings), "ConfigMap")
    text: str = found["data"]["agent.yaml"]
    return text


def spec(node: str, pod: str, *settings: str) -> dict[str, Any]:
    """config.json of the container, on a node of that name; settings as --set-json takes them."""
    (found,) = chart.of_kind(chart.objects(*settings), "DaemonSet")
    of_pod = found["spec"]["template"]["spec"]
    (one,) = of_pod["containers"]
    context = one["securityContext"]
    capabilities = [f"CAP_{name}" for name in context["capabilities"]["add"]]
    assert context["capabilities"]["drop"] == ["ALL"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    return {
        "ociVersion": "1.0.2",
        "hostname": None if of_pod["hostNetwork"] else pod,
        "root": {"path": "rootfs", "readonly": context["readOnlyRootFilesystem"]},
        "process": {
            "user": {"uid": context["runAsUser"], "gid": 0},
            "cwd": "/",
            # The image's ENTRYPOINT, and what the chart gives to it.
            "args": ["/opt/zombiescope/bin/zombiescope", *one["args"]],
            "env": ["PATH=/usr/bin:/bin", "PYTHONUNBUFFERED=1", *_environment(one, node)],
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), capabilities),
            "noNewPrivileges": not context["allowPrivilegeEscalation"],
            "oomScoreAdj": 985,
        },
        "mounts": _all_mounts(of_pod, one),
        "linux": {
            "namespaces": _namespaces(of_pod),
            "cgroupsPath": CGROUP,
            "resources": _resources(one["resources"]),
            "seccomp": json.loads(SECCOMP.read_text()),
            "maskedPaths": list(_MASKED),
            "readonlyPaths": list(_READ_ONLY),
        },
    }


def _environment(one: dict[str, Any], node: str) -> list[str]:
    fields = {"spec.nodeName": node}
    return [f"{each['name']}={each.get('value') or fields[each['valueFrom']['fieldRef']['fieldPath']]}"
            for each in one["env"]]  # fmt: skip


def _namespaces(of_pod: dict[str, Any]) -> list[dict[str, str]]:
    kinds = ["mount", "ipc", "cgroup"]
    if not of_pod.get("hostPID"):
        kinds.append("pid")
    if not of_pod["hostNetwork"]:  # a pod in the host's network has the host's UTS namespace, too
        kinds += ["network", "uts"]
    return [{"type": kind} for kind in kinds]


def _usual_mounts() -> list[dict[str, Any]]:
    safe = ["nosuid", "noexec", "nodev"]
    return [
        {"destination": "/proc", "type": "proc", "source": "proc", "options": safe},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": [*safe, "mode=1777"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": [*safe, "ro"]},
        {"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": [*safe, "relatime", "ro"]},
    ]


def _all_mounts(of_pod: dict[str, Any], one: dict[str, Any]) -> list[dict[str, Any]]:
    """containerd leaves out a usual mount over which a volume would lie; runc alone has both, which is tried, too."""
    return [*_usual_mounts(), *_mounts(of_pod, one)]


def _mounts(of_pod: dict[str, Any], one: dict[str, Any]) -> list[dict[str, Any]]:
    """Volumes lie below /pod/NAME on the node, but for paths of the host."""
    sources = {each["name"]: each for each in of_pod["volumes"]}
    made = []
    for mount in one["volumeMounts"]:
        volume = sources[mount["name"]]
        source = volume["hostPath"]["path"] if "hostPath" in volume else f"/pod/{mount['name']}"
        mode = "ro" if mount.get("readOnly") else "rw"
        made.append({"destination": mount["mountPath"], "type": "bind", "source": source,
                     "options": ["rbind", "rprivate", mode]})  # fmt: skip
    return made


def _resources(given: dict[str, Any]) -> dict[str, Any]:
    devices: list[dict[str, Any]] = [{"allow": False, "access": "rwm"}]
    devices += [{"allow": True, "type": "c", "major": major, "minor": minor, "access": "rwm"}
                for major, minor in _DEVICES]  # fmt: skip
    milli = _milli(given["limits"]["cpu"])
    return {
        "devices": devices,
        "memory": {"limit": _bytes(given["limits"]["memory"])},
        "cpu": {"shares": _milli(given["requests"]["cpu"]) * 1024 // 1000, "period": 100_000, "quota": milli * 100},
    }


def _milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else round(float(text) * 1000)


def _bytes(text: str) -> int:
    return int(text[:-2]) * _SIZES[text[-2:]]
