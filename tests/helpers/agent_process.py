"""A real agent on a port of its own, and what it answers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client.openmetrics.parser import text_string_to_metric_families

DEADLINE_S = 60.0
OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as made:
        return int(made.getsockname()[1])


def until(what: str, true: Callable[[], object], limit_s: float = DEADLINE_S) -> None:
    end = time.monotonic() + limit_s
    while not true():
        assert time.monotonic() < end, f"not within {limit_s:.0f} s: {what}"
        time.sleep(0.1)


class AgentProcess:
    """Started on construction, with a configuration that `configure` writes anew."""

    def __init__(self, place: Path, **sections: dict[str, Any]) -> None:
        self.place = place
        self.config = place / "agent.yaml"
        self.log = place / "agent.log"
        self.node_dir = place / "rec" / "node=here"
        self.port = free_port()
        self.configure(**sections)
        self._environment = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(place / "run")}
        (place / "run").mkdir()
        self._notified: list[str] = []
        self._systemd = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._systemd.bind(str(place / "run/notify"))
        self._systemd.setblocking(False)
        self._environment |= {"NOTIFY_SOCKET": str(place / "run/notify"), "WATCHDOG_USEC": "3000000"}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(self.command, stderr=log, stdout=log, env=self._environment)

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-P", "-m", "zombiescope.cli.main", "agent", "--config", str(self.config)]

    def configure(self, **sections: dict[str, Any]) -> None:
        recorder = {"dir": str(self.place / "rec"), "node": "here", **sections.pop("recorder", {})}
        metrics = {"listen": f"127.0.0.1:{self.port}", **sections.pop("metrics", {})}
        # JSON is YAML.
        self.config.write_text(json.dumps({"recorder": recorder, "metrics": metrics, **sections}))

    def another(self) -> subprocess.CompletedProcess[str]:
        """A second agent on the same node."""
        return subprocess.run(self.command, env=self._environment, capture_output=True, text=True, timeout=60)

    @property
    def pid(self) -> int:
        return self._process.pid

    def children(self) -> dict[str, int]:
        """Module -> pid of what the supervisor started."""
        found = {}
        for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split():
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            found[next((word.decode() for word in words if word.startswith(b"zombiescope")), "?")] = int(pid)
        return found

    def get(self, path: str, port: int | None = None) -> tuple[int, bytes]:
        """(0, b"") while nobody answers."""
        self.notified()  # or the socket fills up
        request = urllib.request.Request(f"http://127.0.0.1:{port or self.port}{path}", headers=OPENMETRICS)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()
        except OSError:
            return 0, b""

    def metrics(self) -> dict[tuple[str, ...], float]:
        """(name, label values) -> value, read by the official parser."""
        code, body = self.get("/metrics")
        assert code == 200, body
        families = text_string_to_metric_families(body.decode())  # type: ignore[no-untyped-call]
        return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}

    def wait_ready(self) -> None:
        until(f"ready; it said: {self.said()}", lambda: self.get("/readyz")[0] == 200 or self._process.poll())
        assert self._process.poll() is None, self.said()

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def notified(self) -> list[str]:
        """What systemd would have been told, without what it is told all the time."""
        while True:
            try:
                first = self._systemd.recv(4096).decode().split("\n")[0]
            except OSError:  # nothing more, or closed
                return self._notified
            if first != "WATCHDOG=1" or first not in self._notified:
                self._notified.append(first)

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def stop(self) -> int:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(DEADLINE_S)
        self.notified()
        self._systemd.close()
        return code

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)


@contextmanager
def running_agent(place: Path, **sections: dict[str, Any]) -> Iterator[AgentProcess]:
    agent = AgentProcess(place, **sections)
    try:
        agent.wait_ready()
        yield agent
    finally:
        agent.stop()
