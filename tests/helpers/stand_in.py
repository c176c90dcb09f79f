"""A stand-in for Pyroscope, Parca and collectors: an HTTP server that keeps what it is sent and answers as told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class StandIn:
    """Answers every request with the next of `answers`, and with the last one again after that."""

    url: str = ""
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=lambda: [(200, {}, b"")])
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def running() -> Iterator[StandIn]:
    stand_in = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = stand_in.answers[min(len(stand_in.asked), len(stand_in.answers) - 1)]
            stand_in.asked.append(Asked(self.path, {key.lower(): value for key, value in self.headers.items()}, body))
            self.send_response(answer[0])
            for key, value in answer[1].items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(answer[2])))
            self.end_headers()
            self.wfile.write(answer[2])

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stand_in.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield stand_in
        server.shutdown()
