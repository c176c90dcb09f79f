"""A real S3 protocol on the loopback (moto's server), and a way to it that breaks connections off."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

BUCKET = "incidents"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_EC2_METADATA_DISABLED": "true"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running() -> Iterator[int]:
    """The port of a server with one empty bucket."""
    port = _free_port()
    arguments = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        make_bucket(port)
        yield port
    finally:
        process.kill()
        process.wait()


def make_bucket(port: int) -> None:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
    for _ in range(600):
        with suppress(OSError), urllib.request.urlopen(asked, timeout=5):
            return
        time.sleep(0.1)
    raise AssertionError("moto does not answer")


def address(port: int, prefix: str = "nodes") -> str:
    return f"s3://{BUCKET}/{prefix}?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"


@dataclass
class BreakingWay:
    """Hands bytes on between whoever connects and `port`; some connections end after some bytes."""

    port: int
    chance: float
    seed: int = 7
    broken: int = 0
    own_port: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    @contextmanager
    def running(self) -> Iterator[BreakingWay]:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.own_port = server.getsockname()[1]
            threading.Thread(target=self._accept, args=(server,), daemon=True).start()
            yield self

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = server.accept()
                limit = self._random.randrange(6000) if self._random.random() < self.chance else None
                threading.Thread(target=self._serve, args=(client, limit), daemon=True).start()

    def _serve(self, client: socket.socket, limit: int | None) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self.port)) as server:
            back = threading.Thread(target=_copy, args=(server, client, None), daemon=True)
            back.start()
            if _copy(client, server, limit):
                self.broken += 1
            back.join(5)


def _copy(source: socket.socket, sink: socket.socket, limit: int | None) -> bool:
    """Whether it broke off."""
    done = 0
    with suppress(OSError):
        while data := source.recv(2048):
            done += len(data)
            if limit is not None and done > limit:
                for each in (source, sink):
                    each.shutdown(socket.SHUT_RDWR)
                return True
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
    return False
