"""A real Ray of two nodes on the loopback, from an environment of its own (scripts/need-ray)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[2] / ".venv-ray/bin"
START_S = 180.0
SECOND_IP = "127.0.0.2"
_MEMORY = "--object-store-memory=80000000"


@dataclass
class RayCluster:
    folder: Path
    port: int
    dashboard_port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def dashboard(self) -> str:
        return f"http://127.0.0.1:{self.dashboard_port}"

    def start(self, *options: str) -> None:
        environment = {**os.environ, "RAY_TMPDIR": str(self.folder), "RAY_USAGE_STATS_ENABLED": "0",
                       "RAY_enable_export_api_write": "1"}  # fmt: skip
        log = open(self.folder / f"start-{len(self.processes)}.log", "wb")  # noqa: SIM115  the process has it
        with log:
            self.processes.append(subprocess.Popen(
                [str(HOME / "ray"), "start", "--block", "--num-cpus=1", _MEMORY, *options],
                stdout=log, stderr=log, env=environment,
            ))  # fmt: skip

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.dashboard + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            return json.load(answer)

    def alive(self) -> int:
        with suppress(OSError, ValueError, KeyError, TypeError):
            nodes = self.ask("/api/v0/nodes")["data"]["result"]["result"]
            return sum(node["state"] == "ALIVE" for node in nodes)
        return 0

    def submit(self, name: str, script: str) -> None:
        path = self.folder / f"{name}.py"
        path.write_text(script)
        self.ask("/api/jobs/", {"entrypoint": f"{HOME}/python {path}", "submission_id": name})

    def status(self, name: str) -> str:
        return str(self.ask(f"/api/jobs/{name}")["status"])

    def raylet(self, ip: str) -> int:
        """The pid of a node's raylet."""
        return next(pid for pid, line in self._own() if "/raylet/raylet" in line and f"--node_ip_address={ip} " in line)

    def _own(self) -> Iterator[tuple[int, str]]:
        """Every process that has our folder in its command line or its environment: nobody else's has."""
        for place in Path("/proc").iterdir():
            if place.name.isdecimal():
                with suppress(OSError):
                    line = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                    if str(self.folder) in line or str(self.folder).encode() in (place / "environ").read_bytes():
                        yield int(place.name), line

    def end(self) -> None:
        for _ in range(20):
            found = [pid for pid, _ in self._own() if pid != os.getpid()]
            for pid in found:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self.processes:
                process.poll()
            if not found:
                break
            time.sleep(0.2)
        for process in self.processes:
            process.wait()


def _free_port() -> int:
    """Below the range from which Ray takes the ports of its workers."""
    for port in range(6400, 8200):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no free port")


def wait_for(what: str, is_so: Any, limit_s: float) -> float:
    """How long it took."""
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > limit_s:
            raise AssertionError(f"{what}: not within {limit_s:g} s")
        time.sleep(0.1)
    return time.monotonic() - began


@contextmanager
def running() -> Iterator[RayCluster]:
    folder = Path(tempfile.mkdtemp(prefix="zr-", dir="/tmp"))  # sockets in it have short names only
    cluster = RayCluster(folder, _free_port(), 0)
    cluster.dashboard_port = _free_port() + 1
    try:
        cluster.start("--head", f"--port={cluster.port}", f"--dashboard-port={cluster.dashboard_port}",
                      f"--temp-dir={folder}", "--node-ip-address=127.0.0.1")  # fmt: skip
        wait_for("the head", lambda: cluster.alive() == 1, START_S)
        cluster.start(f"--address=127.0.0.1:{cluster.port}", f"--node-ip-address={SECOND_IP}",
                      '--resources={"second": 1}')  # fmt: skip
        wait_for("the second node", lambda: cluster.alive() == 2, START_S)
        yield cluster
    finally:
        cluster.end()
        shutil.rmtree(folder, ignore_errors=True)
