"""Clients that are slow, idle or many: they wait for themselves, and nobody waits for them."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.helpers.page_server import PageServer

from zombiescope.web import connection
from zombiescope.web.connection import Connection

DEADLINE_S = 30.0
LARGE = b"x" * 65536
ASK = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Small:
    """An application of two answers: a short one, and one that never ends; it counts those that are on their way."""

    def __init__(self) -> None:
        self.sending = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = [(b"content-length", b"2")] if scope["path"] == "/" else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["path"] == "/":
            await send({"type": "http.response.body", "body": b"ok"})
            return
        self.sending += 1
        left = asyncio.ensure_future(_until_left(receive))
        try:
            while not left.done():
                await send({"type": "http.response.body", "body": LARGE, "more_body": True})
                await asyncio.sleep(0)
        finally:
            self.sending -= 1
            left.cancel()


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class Running:
    def __init__(self, port: int, app: Small) -> None:
        self.port, self.app = port, app

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S)

    def answers(self) -> bool:
        with self.connect() as client:
            return asks(client)


@contextmanager
def running() -> Iterator[Running]:
    app = Small()
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    settings = uvicorn.Config(
        app, http=Connection, ws="none", lifespan="off", log_level="critical", loop="asyncio", timeout_keep_alive=30,
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    server = uvicorn.Server(settings)
    thread = threading.Thread(target=lambda: server.run(sockets=[listening]), daemon=True)
    thread.start()
    try:
        yield Running(listening.getsockname()[1], app)
    finally:
        server.should_exit = True
        thread.join(DEADLINE_S)
        listening.close()
        assert not thread.is_alive()


def asks(client: socket.socket) -> bool:
    """Whether it is answered."""
    client.sendall(ASK)
    got = b""
    while not got.endswith(b"ok") and (piece := client.recv(4096)):
        got += piece
    return got.startswith(b"HTTP/1.1 200") and got.endswith(b"ok")


def is_ended(client: socket.socket) -> bool:
    """Whether the server has ended it; waits for that."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        return True
    return True


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end, "what was waited for never came"
        time.sleep(0.02)


@pytest.mark.parametrize("drip", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\n"], ids=["silent", "dripping"])
def test_a_head_that_does_not_come_ends_the_connection(monkeypatch: pytest.MonkeyPatch, drip: bytes) -> None:
    """Slowloris: a header now and then, and never the empty line."""
    monkeypatch.setattr(connection, "HEAD_S", 0.5)
    with running() as server, server.connect() as client:
        client.sendall(drip)
        begun = time.monotonic()
        client.settimeout(0.05)
        while time.monotonic() < begun + DEADLINE_S:
            try:
                if not client.recv(1):
                    break
            except TimeoutError:
                if drip:
                    try:
                        client.sendall(b"X-More: 1\r\n")  # buys no time
                    except ConnectionError:
                        break
            except ConnectionError:
                break
        else:
            pytest.fail("it is still there")


def test_a_second_request_must_come_as_fast_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """One byte after an answer ends the keep-alive time; it must not stop every clock."""
    monkeypatch.setattr(connection, "HEAD_S", 0.5)
    with running() as server, server.connect() as client:
        assert asks(client)
        client.sendall(b"G")
        assert is_ended(client)


def test_a_connection_between_two_requests_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.3)
    with running() as server, server.connect() as client:
        for _ in range(2):
            assert asks(client)
            time.sleep(0.6)


def test_whoever_does_not_read_an_answer_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_S", 0.5)
    with running() as server, server.connect() as client:
        client.sendall(ASK.replace(b" / ", b" /endless "))
        wait_for(lambda: server.app.sending == 1)
        # nothing is read, and the answer is over all the same
        wait_for(lambda: server.app.sending == 0)


def test_whoever_reads_slowly_but_does_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WRITE_S", 2.0)
    with running() as server, server.connect() as client:
        client.sendall(ASK.replace(b" / ", b" /endless "))
        read, begun = 0, time.monotonic()
        while time.monotonic() < begun + 5:
            read += len(client.recv(1 << 20))
            time.sleep(0.05)
        assert server.app.sending == 1


@pytest.mark.parametrize(("full", "grace_s"), [(768, 0.0), (40, 60.0)], ids=["rested", "full"])
def test_idle_connections_make_room(monkeypatch: pytest.MonkeyPatch, full: int, grace_s: float) -> None:
    monkeypatch.setattr(connection, "MOST", 20)
    monkeypatch.setattr(connection, "FULL", full)
    monkeypatch.setattr(connection, "GRACE_S", grace_s)
    with running() as server, ExitStack() as stack:
        # GIVEN one client between two requests, and a crowd that never asks for anything
        kept = stack.enter_context(server.connect())
        assert asks(kept)
        crowd = [stack.enter_context(server.connect()) for _ in range(60)]
        # WHEN another one asks, THEN it is answered, and so is the first
        assert server.answers()
        assert asks(kept)
        # AND the oldest of the crowd is gone
        assert is_ended(crowd[0])


def test_whoever_came_a_moment_ago_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST", 5)
    monkeypatch.setattr(connection, "GRACE_S", 60.0)
    with running() as server, ExitStack() as stack:
        honest = stack.enter_context(server.connect())
        for _ in range(50):
            stack.enter_context(server.connect())
        assert asks(honest)


def test_two_hundred_idle_connections_lock_nobody_out(server: PageServer) -> None:
    with ExitStack() as stack:
        for _ in range(400):
            stack.enter_context(socket.create_connection((server.address, server.port), timeout=DEADLINE_S))
        assert server.api("info").status == 200
        assert server.ask("/").status == 200
