"""The chart's own pod as the kubelet gives it to containerd: requests of the Container Runtime Interface, v1.

What helm renders is translated field by field, as the kubelet does it: hostPath (whose type it checks), emptyDir,
ConfigMap, capabilities, seccomp, AppArmor, resources, namespaces, the score for the OOM killer of a node-critical pod.
Everything below is containerd's and runc's own: namespaces, devices, masks, the default seccomp profile, the cgroup.

The kubelet itself is the stand-in: Debian and Ubuntu package none newer than 1.20, and its sources from 1.32 on come
without the kubelet. The image is one, too: the node's own /usr and /opt/zombiescope, with an os-release of its own.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.helpers import chart
from zombiescope.lab import container_image
from zombiescope.lab.node import Done

UID = "99999999-8888-7777-6666-555555555555"
SLICE = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
IMAGE, PAUSE = "registry.local/zombiescope:0.1.0", "registry.local/pause:1"
VOLUMES = f"/var/lib/kubelet/pods/{UID}/volumes"
LOGS = "/var/log/pods/agent"
PLACE, ARCHIVE = "/pod/cri.py", "/pod/image.tar"
PARENT = f"/kubepods.slice/kubepods-burstable.slice/{SLICE}"
SOCKET = "/run/containerd/containerd.sock"
OS_RELEASE = "NAME=image\nID=image\nVERSION_ID=99\nPRETTY_NAME='the image of the pod'\n"
NODE_CRITICAL = -997
NETWORK = {
    "cniVersion": "0.4.0",
    "name": "lab",
    "plugins": [{"type": "ptp", "ipam": {"type": "host-local", "subnet": "10.244.0.0/24"}}],
}
"""For a pod in a network of its own: a pair of interfaces that leads to the node and no further."""
CONFIG = f"""\
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
"""
MASKED = (
    "/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
)  # fmt: skip
READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""What the kubelet masks for a procMount that is not chosen."""

# Fields of a message: [number, value]; a value is text, a number, or a message again. One call over HTTP/2, by hand.
CLIENT = r"""
import json, socket, struct, sys

def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while number > 127:
        out += bytes((number & 127 | 128,))
        number >>= 7
    return out + bytes((number,))

def message(fields):
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else message(value)
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out

def frame(kind, flags, stream, data):
    return struct.pack(">I", len(data))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + data

def text(data):
    return (bytes((len(data),)) if len(data) < 127 else b"\x7f" + varint(len(data) - 127)) + data

def read(stream, size):
    data = b""
    while len(data) < size:
        data += stream.recv(size - len(data)) or sys.exit("containerd closed the connection")
    return data

def call(method, fields):
    path = b"/runtime.v1.RuntimeService/" + method.encode()
    headers = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"localhost"),
               (b"content-type", b"application/grpc"), (b"te", b"trailers"))
    packed = b"".join(b"\x00" + text(name) + text(value) for name, value in headers)
    body = message(fields)
    answer = b""
    with socket.socket(socket.AF_UNIX) as stream:
        stream.settimeout(120)
        stream.connect("SOCKET")
        stream.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 4, 1, packed)
                       + frame(0, 1, 1, b"\0" + struct.pack(">I", len(body)) + body))
        while True:
            head = read(stream, 9)
            kind, flags = head[3], head[4]
            data = read(stream, int.from_bytes(head[:3], "big"))
            if kind == 4 and not flags & 1:
                stream.sendall(frame(4, 1, 0, b""))
            elif kind == 6 and not flags & 1:
                stream.sendall(frame(6, 1, 0, data))
            elif kind == 0:
                answer += data
            elif kind in (3, 7):
                sys.exit("containerd refused the call: %r" % data)
            if kind in (0, 1) and flags & 1 and (kind == 1 or answer):
                break
    if not answer:
        sys.exit(method + " failed: the journal of containerd says why")
    return answer[5:]

def identity(answer):
    return answer[2:2 + answer[1]].decode() if answer else ""

if sys.argv[1] == "start":
    sandbox, container = json.load(sys.stdin)
    made = identity(call("RunPodSandbox", [[1, sandbox]]))
    one = identity(call("CreateContainer", [[1, made], [2, container], [3, sandbox]]))
    call("StartContainer", [[1, one]])
    print(json.dumps([made, one]))
else:
    made, one = sys.argv[2:]
    call("StopContainer", [[1, one], [2, 60]])
    call("StopPodSandbox", [[1, made]])
    call("RemovePodSandbox", [[1, made]])
""".replace("SOCKET", SOCKET)

Fields = list[list[Any]]


class Node(Protocol):
    """What LabNode and this machine have in common."""

    def run(self, *argv: str, stdin: bytes = b"", limit_s: float = 60.0) -> Done: ...

    def shell(self, script: str, *, limit_s: float = 60.0) -> str: ...

    def put(self, path: str, data: bytes | str) -> None: ...


@dataclass(frozen=True, slots=True)
class Pod:
    """One that runs: the ids of its sandbox and its container."""

    node: Node
    sandbox: str
    container: str

    def exec(self, *command: str) -> str:
        """In the container, as `kubectl exec` does."""
        name = f"exec-{time.monotonic_ns()}"
        argv = ("ctr", "--namespace", "k8s.io", "task", "exec", "--exec-id", name, self.container, *command)
        text: str = self.node.run(*argv, limit_s=150.0).check().text
        return text

    def stop(self) -> None:
        """SIGTERM, and a minute for the last frame."""
        self.node.run("python3", PLACE, "stop", self.sandbox, self.container, limit_s=150.0).check()


def configure(node: Node, config: str = CONFIG) -> None:
    """Everything but the images; containerd has to be started after that."""
    node.put("/etc/containerd/config.toml", config)
    node.put("/etc/cni/net.d/10-lab.conflist", json.dumps(NETWORK))
    node.put(PLACE, CLIENT)
    node.put("/pod/os-release", OS_RELEASE)
    node.shell("test -e /etc/resolv.conf || touch /etc/resolv.conf")  # containerd copies it into each pod


def load_images(node: Node, place: Path) -> None:
    """place: a directory on this machine."""
    pause = container_image.tree(place / "pause")
    trees = ((PAUSE, pause, ("/bin/sleep", "1000000")), (IMAGE, _image(place / "image"), ("/bin/sh",)))
    for name, tree, command in trees:
        node.put(ARCHIVE, container_image.docker_archive(tree, name, command))
        node.shell(f"ctr --namespace k8s.io images import {ARCHIVE}", limit_s=180.0)
        managed = f"ctr --namespace k8s.io images list | grep -F {name} | grep -q managed"
        node.shell(f"for i in $(seq 100); do if {managed}; then exit 0; fi; sleep 0.3; done; exit 1", limit_s=90.0)


def _image(root: Path) -> Path:
    """Empty directories for what is mounted, and the links of a distribution of today."""
    for name in ("usr", "opt/zombiescope", "etc/zombiescope", "proc", "sys", "dev", "run", "tmp", "var/lib"):
        (root / name).mkdir(parents=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "etc/os-release").write_text(OS_RELEASE)
    return root


def start(node: Node, name: str, on: str, *settings: str, parent: str = PARENT) -> Pod:
    """The pod on the node of that name; settings as --set-json takes them. parent: the cgroup of the pod."""
    (found,) = chart.of_kind(chart.objects(*settings), "DaemonSet")
    of_pod = found["spec"]["template"]["spec"]
    _make_volumes(node, of_pod, *settings)
    requests = json.dumps([sandbox(of_pod, name, parent), container(of_pod, on)])
    done = node.run("python3", PLACE, "start", stdin=requests.encode(), limit_s=240.0)
    if done.exit != 0:
        said = node.run("journalctl", "--unit", "containerd", "--output", "cat", "--lines", "5")
        raise AssertionError(f"{done.stderr.decode()}\n{said.text}")
    return Pod(node, *json.loads(done.text))


def sandbox(of_pod: dict[str, Any], name: str, parent: str) -> Fields:
    """PodSandboxConfig."""
    return [
        [1, [[1, name], [2, UID], [3, "zombiescope"], [4, 0]]],
        *([] if of_pod["hostNetwork"] else [[2, name]]),
        [3, LOGS],
        [8, [[1, parent],
             [2, [[1, _namespaces(of_pod)], [9, [[1, 0]]], [10, [[1, 0]]]]]]],
    ]  # fmt: skip


def container(of_pod: dict[str, Any], on: str) -> Fields:
    """ContainerConfig of the agent; on: the node's name."""
    (one,) = of_pod["containers"]
    context = one["securityContext"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    fields = {"spec.nodeName": on}
    environment = {"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    for each in one["env"]:
        environment[each["name"]] = each.get("value") or fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
    profiles = {"RuntimeDefault": 0, "Unconfined": 1}
    security = [
        [1, [*([1, name] for name in context["capabilities"]["add"]),
             *([2, name] for name in context["capabilities"]["drop"])]],
        [3, _namespaces(of_pod)],
        [5, [[1, context["runAsUser"]]]],
        [7, int(context["readOnlyRootFilesystem"])],
        [11, int(not context["allowPrivilegeEscalation"])],
        *([13, path] for path in MASKED),
        *([14, path] for path in READ_ONLY),
        [15, [[1, profiles[context["seccompProfile"]["type"]]]]],
        [16, [[1, profiles[context["appArmorProfile"]["type"]]]]],
    ]  # fmt: skip
    return [
        [1, [[1, one["name"]], [2, 0]]],
        [2, [[1, IMAGE]]],
        [3, "/opt/zombiescope/bin/zombiescope"],  # the image's ENTRYPOINT
        *([4, word] for word in one["args"]),
        *([6, [[1, key], [2, value]]] for key, value in environment.items()),
        *([7, mount] for mount in _mounts(of_pod, one)),
        [11, "agent.log"],
        [15, [[1, _resources(one["resources"])], [2, security]]],
    ]


def _namespaces(of_pod: dict[str, Any]) -> Fields:
    pod, of_container, node = 0, 1, 2
    return [[1, node if of_pod["hostNetwork"] else pod], [2, node if of_pod.get("hostPID") else of_container], [3, pod]]


def _volume(volume: dict[str, Any]) -> str:
    path: str = volume["hostPath"]["path"] if "hostPath" in volume else f"{VOLUMES}/{volume['name']}"
    return path


def _mounts(of_pod: dict[str, Any], one: dict[str, Any]) -> list[Fields]:
    sources = {each["name"]: _volume(each) for each in of_pod["volumes"]}
    ours: list[Fields] = [[[1, mount["mountPath"]], [2, sources[mount["name"]]], [3, int(bool(mount.get("readOnly")))]]
            for mount in one["volumeMounts"]]  # fmt: skip
    image: list[Fields] = [[[1, inside], [2, source], [3, 1]] for inside, source in (
        ("/usr", "/usr"), ("/opt/zombiescope", "/opt/zombiescope"), ("/usr/lib/os-release", "/pod/os-release"),
    )]  # fmt: skip
    return [*image, *ours]


def _make_volumes(node: Node, of_pod: dict[str, Any], *settings: str) -> None:
    """What the kubelet does before it asks for a container: a hostPath that is not of its type holds the pod up."""
    for volume in of_pod["volumes"]:
        path = _volume(volume)
        if volume.get("hostPath", {}).get("type") == "Directory":
            node.shell(f"test -d {path}")
        else:
            node.shell(f"mkdir -p {path}")
    (config,) = [one for one in chart.of_kind(chart.objects(*settings), "ConfigMap") if "agent.yaml" in one["data"]]
    node.put(f"{VOLUMES}/config/agent.yaml", config["data"]["agent.yaml"])
    node.shell(f"chmod 755 {VOLUMES}/config; mkdir -p {LOGS}")


def _resources(given: dict[str, Any]) -> Fields:
    milli = _milli(given["limits"]["cpu"])
    return [
        [1, 100_000], [2, milli * 100], [3, _milli(given["requests"]["cpu"]) * 1024 // 1000],
        [4, _bytes(given["limits"]["memory"])], [5, NODE_CRITICAL],
    ]  # fmt: skip


def _milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else round(float(text) * 1000)


def _bytes(text: str) -> int:
    return int(text[:-2]) * {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}[text[-2:]]
