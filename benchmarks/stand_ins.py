"""Whom an agent speaks to, in a process of its own: an API server with a hundred pods, and a store of profiles.

    python -m benchmarks.stand_ins PODS NODE     prints its port

A stand-in: it lists the pods, holds the watch open, and says yes to whatever is posted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

WATCH_S = 240.0


def _pod(number: int, node: str) -> dict[str, Any]:
    name, owner = f"web-7c9d8f6b5d-{number:05x}", {"kind": "ReplicaSet", "name": "web-7c9d8f6b5d", "controller": True}
    uid = f"{number:08x}-0000-4000-8000-000000000000"
    labels = {"app": "web", "pod-template-hash": "7c9d8f6b5d"}
    status = {"name": "main", "image": "registry.local/web:1", "containerID": f"containerd://{number:064x}",
              "restartCount": 0, "ready": True, "imageID": "", "state": {"running": {}}}  # fmt: skip
    return {
        "metadata": {"uid": uid, "name": name, "namespace": "default", "resourceVersion": "7", "labels": labels,
                     "ownerReferences": [{**owner, "apiVersion": "apps/v1", "uid": "o"}]},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "registry.local/web:1"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    pods: bytes = b""
    over = threading.Event()

    def do_GET(self) -> None:
        if "watch=true" in self.path:
            self.send_response(200)
            self.end_headers()
            self.over.wait(WATCH_S)
            return
        self._answer(self.pods)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._answer(b"{}")

    def do_PATCH(self) -> None:
        self.do_POST()

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def stand_ins(pods: int, node: str, kubeconfig: Path) -> Iterator[str]:
    """Its address; `kubeconfig` is written for it."""
    command = [sys.executable, "-m", "benchmarks.stand_ins", str(pods), node]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
        }  # fmt: skip
        kubeconfig.write_text(json.dumps(config))
        yield url
    finally:
        process.kill()
        process.wait()


def main(pods: int, node: str) -> None:
    items = [_pod(number, node) for number in range(pods)]
    listed = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": items}
    _Handler.pods = json.dumps(listed).encode()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    print(server.server_address[1], flush=True)  # the protocol with `stand_ins`
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
