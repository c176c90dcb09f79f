"""A cluster of one node: etcd, kube-apiserver, containerd and kubelet, all real, in namespaces of their own.

    enter_own_namespaces()
    with cluster(place, cgroup_root="/zombiescope-lab-kubelet-crashloop") as api:
        api.load("registry.local/ecs-agent:1.2")
        api.create("pods", pod("leaky", container("agent", "registry.local/ecs-agent:1.2", ["false"])))

It listens on a loopback device that nobody else has. Pods use the node's network, which is that same namespace. There
is no scheduler: a pod names its node. kubelet writes sysctls and files below /var, and gets copies of them.
"""

from __future__ import annotations

import json
import secrets
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zombiescope.lab import container_image, isolation, kubernetes_build, programs
from zombiescope.lab.daemons import Daemons
from zombiescope.lab.failure import LabError

PROGRAMS = (
    ("etcd", "etcd-server"), ("containerd", "containerd"), ("runc", "runc"), ("busybox", "busybox-static"),
    ("ip", "iproute2"), ("openssl", "openssl"), ("/usr/lib/cni/loopback", "containernetworking-plugins"),
)  # fmt: skip
NODE = "node1"
_API = "https://127.0.0.1:16443"
_ETCD = "http://127.0.0.1:23790"
_PEER = "http://127.0.0.1:23800"
_ADDRESS = "10.99.0.2"
_PAUSE = "registry.local/pause:1"
_SYSCTLS = (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)  # fmt: skip
_CONTAINERD = """\
version = 2
root = "{place}/containerd/root"
state = "{place}/containerd/state"
[grpc]
  address = "{place}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  stream_server_address = "127.0.0.1"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{place}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"""

Document = dict[str, Any]


class Api:
    """The cluster's own, with all rights."""

    def __init__(self, place: Path, token: str) -> None:
        self._place, self._token = place, token
        self._trust = ssl.create_default_context()
        self._trust.check_hostname, self._trust.verify_mode = False, ssl.CERT_NONE  # on a loopback of our own

    def ask(self, path: str, document: Document | None = None) -> Document:
        """Read a path; with a document, create it there."""
        request = urllib.request.Request(  # noqa: S310  an address that is written above
            _API + path,
            None if document is None else json.dumps(document).encode(),
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20, context=self._trust) as answer:  # noqa: S310
                read: Document = json.load(answer)
                return read
        except (urllib.error.URLError, OSError, ValueError) as error:
            said = error.read().decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else str(error)
            raise LabError(f"the API server refused {path}: {said[-300:]}") from error

    def create(self, kind: str, document: Document, group: str = "/api/v1", namespace: str = "default") -> None:
        """`kind` as the API spells it: pods, jobs."""
        self.ask(f"{group}/namespaces/{namespace}/{kind}", document)

    def load(self, name: str, *command: str) -> None:
        """An image of that name, with a shell in it."""
        tree = container_image.tree(self._place / "tree")
        archive = self._place / "image.tar"
        archive.write_bytes(container_image.docker_archive(tree, name, command or ("/bin/sh",)))
        programs.call(["ctr", "-a", self._place / "containerd.sock", "-n", "k8s.io", "images", "import", archive])

    def up(self) -> bool:
        return self._answers("/api/v1/namespaces/default")

    def node_ready(self) -> bool:
        try:
            conditions = self.ask(f"/api/v1/nodes/{NODE}")["status"]["conditions"]
        except (LabError, KeyError):
            return False
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def _answers(self, path: str) -> bool:
        try:
            self.ask(path)
        except LabError:
            return False
        return True


def pod(name: str, *containers: Document, volumes: Sequence[Document] = (), restart: str = "Always") -> Document:
    spec = {
        "nodeName": NODE,
        "hostNetwork": True,
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 0,
        "tolerations": [{"operator": "Exists"}],
        "containers": list(containers),
        "volumes": list(volumes),
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def container(name: str, image: str, command: Sequence[str], **more: object) -> Document:
    return {"name": name, "image": image, "imagePullPolicy": "Never", "command": list(command), **more}


@contextmanager
def cluster(place: Path, *, cgroup_root: str = "/", controllers: bool = False) -> Iterator[Api]:
    """With `controllers` also the controller manager, which Jobs need. Kubelet makes kubepods below `cgroup_root`."""
    binaries = kubernetes_build.binaries()
    token = secrets.token_hex(16)
    _own_machine(place)
    _files(place, token, cgroup_root)
    api = Api(place, token)
    with Daemons(place) as daemons:
        _control_plane(daemons, place, binaries, api)
        daemons.start("containerd", "--config", str(place / "containerd.toml"))
        daemons.wait_until((place / "containerd.sock").exists)
        api.load(_PAUSE, "/bin/sleep", "1000000")
        if controllers:
            daemons.start(binaries / "kube-controller-manager", *_controller_options(place))
        daemons.start(binaries / "kubelet", *_kubelet_options(place))
        daemons.wait_until(api.node_ready)
        yield api


def _own_machine(place: Path) -> None:
    """What kubelet wants to see and to change: a network device with an address, sysctls, /var."""
    for words in (
        "link set lo up", "link add lab0 type veth peer name lab1", "link set lab1 up", "link set lab0 up",
        f"addr add {_ADDRESS}/24 dev lab0", "route add default via 10.99.0.1 dev lab0",
    ):  # fmt: skip
        programs.call(["ip", *words.split()])
    isolation.copies_of_sysctls(_SYSCTLS, place / "sysctls")
    isolation.own_copy(Path("/var"), place / "var")


def _files(place: Path, token: str, cgroup_root: str) -> None:
    (place / "tokens.csv").write_text(f"{token},admin,1,system:masters\n")
    programs.call(["openssl", "genrsa", "-out", place / "accounts.key", "2048"])
    (place / "cni").mkdir()
    loopback = {"cniVersion": "0.4.0", "name": "lo", "plugins": [{"type": "loopback"}]}
    (place / "cni/10-lo.conflist").write_text(json.dumps(loopback))
    (place / "containerd.toml").write_text(_CONTAINERD.format(place=place, pause=_PAUSE))
    access = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": _API, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }  # fmt: skip
    (place / "kubeconfig").write_text(json.dumps(access))
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": "127.0.0.1",
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup_root,
        "failSwapOn": False, "makeIPTablesUtilChains": False, "enforceNodeAllocatable": ["pods"],
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }  # fmt: skip
    (place / "kubelet.json").write_text(json.dumps(settings))


def _control_plane(daemons: Daemons, place: Path, binaries: Path, api: Api) -> None:
    daemons.start(
        "etcd", "--name=lab", f"--data-dir={place}/etcd", f"--listen-client-urls={_ETCD}",
        f"--advertise-client-urls={_ETCD}", f"--listen-peer-urls={_PEER}", f"--initial-advertise-peer-urls={_PEER}",
        f"--initial-cluster=lab={_PEER}", "--unsafe-no-fsync",
    )  # fmt: skip
    daemons.start(
        binaries / "kube-apiserver", f"--etcd-servers={_ETCD}", "--bind-address=127.0.0.1", "--secure-port=16443",
        "--advertise-address=127.0.0.1", f"--cert-dir={place}/api-certificates",
        f"--token-auth-file={place}/tokens.csv", "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={place}/accounts.key",
        f"--service-account-signing-key-file={place}/accounts.key", "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=AlwaysAllow", "--allow-privileged=true", "--disable-admission-plugins=ServiceAccount",
        "--endpoint-reconciler-type=none",
    )  # fmt: skip
    daemons.wait_until(api.up)


def _controller_options(place: Path) -> list[str]:
    return [
        f"--kubeconfig={place}/kubeconfig", f"--service-account-private-key-file={place}/accounts.key",
        "--bind-address=127.0.0.1", f"--cert-dir={place}/controller-certificates", "--leader-elect=false",
        "--controllers=job,garbagecollector",
    ]  # fmt: skip


def _kubelet_options(place: Path) -> list[str]:
    return [
        f"--kubeconfig={place}/kubeconfig", f"--config={place}/kubelet.json", f"--hostname-override={NODE}",
        f"--node-ip={_ADDRESS}", f"--root-dir={place}/kubelet", f"--cert-dir={place}/kubelet-certificates",
        "--container-runtime=remote", f"--container-runtime-endpoint=unix://{place}/containerd.sock",
        f"--pod-infra-container-image={_PAUSE}",
    ]  # fmt: skip
