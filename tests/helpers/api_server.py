"""A real Kubernetes control plane on loopback: etcd, kube-apiserver with RBAC, and the controllers that tests need.

    with control_plane(place) as plane:
        plane.create("/api/v1/nodes", node("node1"))
        config = plane.account("monitoring", "agent")     # a kubeconfig of a service account, with a token in a file

No scheduler and no kubelet: pods name their node, and tests write what a kubelet would (`plane.status`). The server can
be stopped and started again on the same port, with the same data.
"""

from __future__ import annotations

import json
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.helpers import children
from zombiescope.lab import kubernetes_build

Document = dict[str, Any]
UP_S = 90.0
CONTROLLERS = "deployment,replicaset,job,disruption,serviceaccount,namespace"
"""No garbage collector: owners that tests only name would take their pods along."""
PATCHES = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}


class RefusedError(Exception):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


class ControlPlane:
    """As its administrator."""

    def __init__(self, place: Path, port: int, token: str) -> None:
        self.place, self.port, self.token = place, port, token
        self.url = f"https://127.0.0.1:{port}"
        self._trust = ssl.create_default_context()
        self._trust.check_hostname, self._trust.verify_mode = False, ssl.CERT_NONE  # it made its own, on loopback
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._server: Sequence[str] = ()

    @property
    def authority(self) -> Path:
        return self.place / "certificates/apiserver.crt"

    # --- asking -------------------------------------------------------------------------------------------------------

    def ask(self, path: str, body: Document | None = None, verb: str = "GET", patch: str = "strategic") -> Document:
        kind = PATCHES[patch] if verb == "PATCH" else "application/json"
        request = urllib.request.Request(
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": kind},
            method=verb,
        )
        try:
            with urllib.request.urlopen(request, timeout=20, context=self._trust) as answer:
                read: Document = json.load(answer)
                return read
        except urllib.error.HTTPError as error:
            raise RefusedError(error.code, error.read().decode(errors="replace")[-500:]) from None

    def create(self, path: str, document: Document) -> Document:
        return self.ask(path, document, "POST")

    def delete(self, path: str) -> None:
        self.ask(path, {"gracePeriodSeconds": 0}, "DELETE")

    def status(self, path: str, status: Document) -> Document:
        """What a kubelet would write."""
        return self.ask(f"{path}/status", {"status": status}, "PATCH")

    def items(self, path: str) -> list[Document]:
        found: list[Document] = self.ask(path)["items"]
        return found

    def up(self) -> bool:
        with suppress(RefusedError, OSError, ValueError):
            self.ask("/api/v1/namespaces/default")
            return True
        return False

    # --- accounts -----------------------------------------------------------------------------------------------------

    def token_of(self, namespace: str, account: str, seconds: int = 3600) -> str:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        answer = self.create(path, {**asked, "spec": {"expirationSeconds": seconds, "audiences": []}})
        return str(answer["status"]["token"])

    def account(self, namespace: str, account: str, url: str | None = None) -> Path:
        """A kubeconfig whose token lies in a file beside it, as in a pod."""
        place = self.place / f"{namespace}-{account}"
        place.mkdir(exist_ok=True)
        (place / "token").write_text(self.token_of(namespace, account))
        return self.kubeconfig(place / "kubeconfig", {"tokenFile": str(place / "token")}, url)

    def kubeconfig(self, path: Path, user: Document, url: str | None = None) -> Path:
        cluster = {"server": url or self.url, "certificate-authority": str(self.authority)}
        document = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        }  # fmt: skip
        path.write_text(json.dumps(document))
        return path

    def admin(self, url: str | None = None) -> Path:
        return self.kubeconfig(self.place / "admin.kubeconfig", {"token": self.token}, url)

    # --- processes ----------------------------------------------------------------------------------------------------

    def start(self, name: str, command: Sequence[str]) -> None:
        with (self.place / f"{name}.log").open("ab") as log, children.owned_by_run("control-plane"):
            self._processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start_server(self, command: Sequence[str] | None = None) -> None:
        self._server = command or self._server
        self.start("kube-apiserver", self._server)
        self.wait(self.up, "kube-apiserver")

    def stop_server(self, *, at_once: bool = False) -> None:
        self._end("kube-apiserver", at_once=at_once)

    def wait(self, ready: Callable[[], bool], name: str) -> None:
        end = time.monotonic() + UP_S
        while not ready():
            if self._processes[name].poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{name}: {(self.place / f'{name}.log').read_text()[-500:]}")
            time.sleep(0.1)

    def close(self) -> None:
        for name in reversed(list(self._processes)):
            self._end(name, at_once=name == "etcd")

    def _end(self, name: str, *, at_once: bool = False) -> None:
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.kill() if at_once else process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def control_plane(place: Path, *, controllers: bool = True) -> Iterator[ControlPlane]:
    binaries = kubernetes_build.binaries()
    etcd, peer, port = (_free_port() for _ in range(3))
    plane = ControlPlane(place, port, secrets.token_hex(16))
    _files(plane)
    try:
        plane.start("etcd", _etcd(place, etcd, peer))
        plane.start_server([str(binaries / "kube-apiserver"), *_server(place, etcd, port)])
        if controllers:
            config = plane.admin()
            plane.start("controllers", [str(binaries / "kube-controller-manager"), *_controllers(place, config)])
        yield plane
    finally:
        plane.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _files(plane: ControlPlane) -> None:
    (plane.place / "tokens.csv").write_text(f"{plane.token},admin,1,system:masters\n")
    key = plane.place / "accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)


def _etcd(place: Path, port: int, peer: int) -> list[str]:
    client, peers = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        "etcd", "--name=lab", f"--data-dir={place}/etcd", f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}", f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=lab={peers}", "--unsafe-no-fsync",
    ]  # fmt: skip


def _server(place: Path, etcd: int, port: int) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1", f"--secure-port={port}",
        "--advertise-address=127.0.0.1", f"--cert-dir={place}/certificates", f"--token-auth-file={place}/tokens.csv",
        "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={place}/accounts.key",
        f"--service-account-signing-key-file={place}/accounts.key", "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC", "--allow-privileged=true",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--endpoint-reconciler-type=none",
        "--max-requests-inflight=200",
    ]  # fmt: skip


def _controllers(place: Path, config: Path) -> list[str]:
    return [
        f"--kubeconfig={config}", f"--service-account-private-key-file={place}/accounts.key",
        "--bind-address=127.0.0.1", "--port=0", "--secure-port=0", f"--cert-dir={place}/controller-certificates",
        "--leader-elect=false", f"--controllers={CONTROLLERS}",
    ]  # fmt: skip


# --- what tests create ------------------------------------------------------------------------------------------------


def node(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


def pod(name: str, on: str = "node1", **more: Any) -> Document:
    """`more` goes into its metadata, but for `spec`, which goes there."""
    spec = {"nodeName": on, "terminationGracePeriodSeconds": 0, **more.pop("spec", {})}
    spec.setdefault("containers", [{"name": "main", "image": "registry.local/busybox:1"}])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **more}, "spec": spec}


def running(*, restarts: int = 0, ready: bool = True, **state: Any) -> Document:
    """The status of a pod with one container."""
    said = {"name": "main", "image": "registry.local/busybox:1", "imageID": "", "ready": ready}
    status = {**said, "restartCount": restarts, "state": {"running": {}}, "lastState": {}, **state}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"phase": "Running", "conditions": [condition], "containerStatuses": [status]}
