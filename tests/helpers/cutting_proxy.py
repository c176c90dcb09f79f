"""A proxy between a client and a server that cuts, swallows or answers in the server's place.

It passes bytes on and understands nothing of them, so TLS goes through it; to answer in the server's place it has to
be the server, with a certificate of its own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class CuttingProxy:
    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.2)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"https://127.0.0.1:{self.port}"
        self.accepted = 0
        self.refusing = False
        """New connections are closed at once."""
        self.silent = False
        """Nothing passes any more, and nobody is told."""
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._over = False
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    def cut(self) -> None:
        """Every connection that there is, in the middle of whatever it carries."""
        for pair in self._pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()

    def _accept(self) -> None:
        while not self._over:
            try:
                client, _ = self._listener.accept()
            except (TimeoutError, OSError):
                continue
            self.accepted += 1
            if self.refusing:
                client.close()
                continue
            try:
                server = socket.create_connection(self._target, 5)
            except OSError:
                client.close()
                continue
            self._pairs.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if not self.silent:
                    sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.close()

    def close(self) -> None:
        self._over = True
        self.cut()
        self._thread.join(5)
        self._listener.close()


@contextmanager
def cutting_proxy(port: int) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(port)
    try:
        yield proxy
    finally:
        proxy.close()
