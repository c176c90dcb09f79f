"""The door of /metrics: who may ask, how long, how many; and that what it says is what the official parser reads."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from zombiescope.agent.metrics.door import Access, Answer, Door
from zombiescope.agent.metrics.exposition import page, registry
from zombiescope.agent.tally import Family, Tally

TOKEN = "a-token-of-some-length"


@contextmanager
def opened(access: Access = Access(), **limits: float) -> Iterator[tuple[int, Door]]:  # noqa: B008  frozen
    door = Door(lambda request: Answer(200, request.path.encode()), access)
    for name, limit in limits.items():
        setattr(door, name, limit)
    made, stop = socket.create_server(("127.0.0.1", 0)), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(door.serve(made, stop.is_set)), daemon=True)
    thread.start()
    try:
        yield made.getsockname()[1], door
    finally:
        stop.set()
        thread.join(10)


def asked(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, bytes]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=named, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_it_answers_and_changes_nothing() -> None:
    with opened() as (port, _):
        assert asked(port, "/metrics?x=1") == (200, b"/metrics")
        assert asked(port, method="HEAD") == (200, b"")
        assert asked(port, method="POST")[0] == 405
        assert asked(port, Origin="http://evil.example")[0] == 403
        assert asked(port, Sec_Fetch_Site="cross-site")[0] == 403


def test_on_the_loopback_only_our_own_names_are_known() -> None:
    with opened(Access(names=frozenset({"localhost", "gpu-17"}))) as (port, _):
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", "gpu-17", f"[::1]:{port}"):
            assert asked(port, Host=host)[0] == 200, host
        assert asked(port, Host="evil.example")[0] == 421


def test_a_token_is_asked_for() -> None:
    with opened(Access(token=TOKEN)) as (port, _):
        assert asked(port)[0] == 401
        assert asked(port, Authorization="Bearer wrong")[0] == 401
        assert asked(port, Authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_probe_needs_no_token_and_learns_no_reasons() -> None:
    with opened(Access(token=TOKEN)) as (port, door):
        door.answer = lambda request: Answer(200, f"{request.tells_why}".encode())
        assert asked(port, "/readyz") == (200, b"False")
        assert asked(port, "/readyz", Authorization="Bearer wrong") == (200, b"False")
        assert asked(port, "/readyz", Authorization=f"Bearer {TOKEN}") == (200, b"True")
    for access, told in ((Access(), b"True"), (Access(is_open=True), b"False")):
        with opened(access) as (port, door):
            door.answer = lambda request: Answer(200, f"{request.tells_why}".encode())
            assert asked(port, "/readyz") == (200, told)


@pytest.mark.parametrize("head", [b"\x00\x01\x02 nonsense\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 5000])
def test_what_is_no_request_is_refused(head: bytes) -> None:
    with opened() as (port, _), socket.create_connection(("127.0.0.1", port), 10) as client:
        client.sendall(head)
        said = client.recv(200)
    assert said.startswith((b"HTTP/1.1 4", b""))
    assert b"200" not in said[:15]


def test_whoever_trickles_is_let_go() -> None:
    """A byte now and then buys no time."""
    with opened(head_s=0.5) as (port, door), socket.create_connection(("127.0.0.1", port), 10) as client:
        ended = time.monotonic() + 8
        while door.refused == 0:
            assert time.monotonic() < ended
            with suppress(OSError):
                client.sendall(b"G")
            time.sleep(0.1)


def test_idle_connections_lock_nobody_out() -> None:
    with opened(most=4) as (port, _):
        idle = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(12)]
        try:
            assert asked(port)[0] == 200
        finally:
            for one in idle:
                one.close()


def test_whoever_does_not_read_is_one_of_a_bounded_number_and_locks_nobody_out() -> None:
    """An answer that fits no socket buffer is held for as long as it may be; the oldest such makes room."""
    with opened(most=4) as (port, door):
        door.answer = lambda request: Answer(200, b"x" * (16 << 20 if request.path == "/large" else 1))
        deaf = []
        for _ in range(24):
            deaf.append(socket.create_connection(("127.0.0.1", port), 10))
            deaf[-1].sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
            time.sleep(0.02)
        try:
            assert asked(port)[0] == 200
            assert door.held <= 5
        finally:
            for one in deaf:
                one.close()


FAMILIES = (
    Family("z_seen_total", "counter", "Seen.", ("what",), 2),
    Family("z_plain_total", "counter", "Plain."),
    Family("z_now", "gauge", "Now."),
    Family("z_late_seconds", "histogram", "Late.", buckets=(0.1, 1.0)),
)


def test_the_official_parsers_read_it() -> None:
    tally = Tally(FAMILIES)
    for what in ('a"\\\n{}', "b", "c", "d"):
        tally.add("z_seen_total", 1, what)
    for late in (0.05, 0.5, 5):
        tally.observe("z_late_seconds", late)
    text, kind = page(registry(tally), "application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    found = {
        (one.name, tuple(one.labels.values())): one.value
        for family in openmetrics(text.decode())  # type: ignore[no-untyped-call]
        for one in family.samples
    }
    assert found[("z_seen_total", ("b",))] == 1
    assert found[("z_seen_total", ("other",))] == 2
    assert found[("z_plain_total", ())] == 0
    assert found[("z_late_seconds_bucket", ("1.0",))] == 2
    assert found[("z_late_seconds_count", ())] == 3
    assert not any(name == "z_now" for name, _ in found)
    text, kind = page(registry(tally), "text/plain")
    assert kind.startswith("text/plain")
    assert {family.name for family in prometheus(text.decode())} >= {"z_seen", "z_plain", "z_late_seconds"}
