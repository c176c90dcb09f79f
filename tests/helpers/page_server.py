"""`zombiescope serve` in a process of its own, and a client that sends what a test tells it to."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy.typing as npt

from zombiescope.documents.columns import decoded

DEADLINE_S = 60.0
SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Got:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def document(self) -> dict[str, Any]:
        body = gzip.decompress(self.body) if self.headers.get("content-encoding") == "gzip" else self.body
        found = json.loads(body)
        assert isinstance(found, dict)
        return found

    @property
    def columns(self) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
        assert self.status == 200, self.body
        return decoded(self.body)

    @property
    def error(self) -> dict[str, Any]:
        found = self.document["error"]
        assert set(found) == {"what", "fix"}
        assert "\n" not in found["what"]
        return dict(found)


class PageServer:
    def __init__(self, process: subprocess.Popen[str], url: str, said: list[str]) -> None:
        self.process, self.said = process, said
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.address, self.port = parts.hostname, parts.port
        self.token = parts.fragment.removeprefix("token=") or None
        self.anonymous = False

    def ask(self, target: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Got:
        """The request as it is written: nothing of the path is made right. It brings the token, unless `anonymous` or
        with another proof."""
        if self.token is not None and not self.anonymous and not headers.keys() & {"Authorization", "Cookie"}:
            headers = {**headers, "Authorization": f"Bearer {self.token}"}
        connection = http.client.HTTPConnection(self.address, self.port, timeout=DEADLINE_S)
        try:
            connection.putrequest(method, target, skip_host="Host" in headers, skip_accept_encoding=True)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return Got(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def api(self, name: str, **parameters: Any) -> Got:
        query = urlencode({key.rstrip("_"): value for key, value in parameters.items()}, doseq=True)
        return self.ask(f"/api/v1/{name}?{query}" if query else f"/api/v1/{name}")

    @contextmanager
    def live(self, **headers: str) -> Iterator[Iterator[tuple[str, Any]]]:
        """The events of the stream: (kind, data)."""
        connection = http.client.HTTPConnection(self.address, self.port, timeout=DEADLINE_S)
        try:
            connection.request(
                "GET",
                "/api/v1/live",
                headers={"Authorization": f"Bearer {self.token}"}
                | {key.replace("_", "-"): value for key, value in headers.items()},
            )
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            assert answer.headers["content-type"].startswith("text/event-stream")
            yield _events(answer)
        finally:
            connection.close()


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    kind = ""
    end = time.monotonic() + DEADLINE_S
    for line in answer:
        assert time.monotonic() < end, "what was waited for never came"
        text = line.decode().rstrip("\n")
        if text.startswith("event: "):
            kind = text.removeprefix("event: ")
        elif text.startswith("data: "):
            yield kind, json.loads(text.removeprefix("data: "))


@contextmanager
def page_server(*arguments: str, home: Path, listen: str = "127.0.0.1:0") -> Iterator[PageServer]:
    """Listens on a free port; ended in order."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ZOMBIESCOPE", "XDG"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "zombiescope.cli.main", "serve", *arguments, "--listen", listen],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=home,
        env=kept | {"PYTHONPATH": str(SOURCE), "HOME": str(home), "ZOMBIESCOPE_RUNTIME_DIR": str(home / "run")},
    )  # fmt: skip
    try:
        said: list[str] = []
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.rstrip())
            if line.startswith("Ctrl-C"):
                break
        url = next(line for line in said if line.startswith("http://"))
        server = PageServer(process, url, said)
        _wait(server)
        yield server
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        finally:
            process.kill()
            _, left = process.communicate()
        assert left == "", "it ends without a word"


def _wait(server: PageServer) -> None:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        try:
            server.ask("/")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not answer")
