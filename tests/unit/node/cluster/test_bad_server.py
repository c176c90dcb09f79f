"""A server, or a proxy in its place, that answers as none should: the watch goes on, and says it once.

A stand-in over plain HTTP; what a real API server does is in tests/cluster.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.helpers.pod_follower import Follower, following, until

from zombiescope.node.cluster import pod_watch
from zombiescope.node.cluster.pod import MAX_NAME

pytest.importorskip("lightkube")

POD = {"metadata": {"uid": "u1", "name": "p1", "namespace": "n", "resourceVersion": "7"}, "status": {}}
LIST = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": [POD]}
GONE = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too old resource version", "code": 410}

Answer = Callable[[BaseHTTPRequestHandler], None]


def document(code: int, body: object, **headers: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request.send_response(code)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(data)

    return answer


JSON = {"Content_Type": "application/json"}
GOOD_LIST = document(200, LIST, **JSON)


def lines(*several: object) -> Answer:
    """A watch that says this and ends."""
    return document(200, b"".join(json.dumps(one).encode() + b"\n" for one in several), **JSON)


def cut(request: BaseHTTPRequestHandler) -> None:
    """In the middle of an answer."""
    request.send_response(200)
    request.send_header("Content-Length", "5000")
    request.end_headers()
    request.wfile.write(b'{"kind":')


class Server:
    """Answers lists and watches with what is next in line, and with what is right when nothing is left."""

    def __init__(self) -> None:
        self.lists: list[Answer] = []
        self.watches: list[Answer] = []
        self.asked: list[str] = []
        self.over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: object) -> None:
                """Quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        is_watch = "watch=true" in request.path
        self.asked.append("watch" if is_watch else "list")
        waiting = self.watches if is_watch else self.lists
        if waiting:
            waiting.pop(0)(request)
        elif is_watch:
            request.send_response(200)
            request.end_headers()
            self.over.wait(30)
        else:
            GOOD_LIST(request)

    def close(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def config(server: Server, tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "current-context": "c",
                "clusters": [{"name": "k", "cluster": {"server": server.url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
                "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            }
        )
    )
    return path


def settled(follower: Follower, server: Server, watches: int) -> None:
    until(lambda: follower.names == {"p1"} and server.asked.count("watch") >= watches and not server.watches, 10)


BAD = {
    "500 without a type": document(500, b"oops"),
    "500 with a status": document(500, {"kind": "Status", "message": "etcd is sad", "code": 500}, **JSON),
    "500 that is no JSON": document(500, b"{{{", **JSON),
    "502 of a proxy": document(502, b"<html>", Content_Type="text/html"),
    "429": document(429, {"kind": "Status", "message": "slow down", "code": 429}, Retry_After="1", **JSON),
    "a list that is no JSON": document(200, b"\x00\xff{", **JSON),
    "a list of something else": document(200, {"kind": "PodList", "metadata": {}, "items": [{"metadata": 7}]}, **JSON),
    "nothing": document(200, b"", **JSON),
    "a cut": cut,
}


@pytest.mark.parametrize("name", BAD)
def test_a_list_that_fails_is_asked_for_again(server: Server, config: Path, name: str) -> None:
    server.lists = [BAD[name], BAD[name]]
    with following("node", config, 0.01) as follower:
        settled(follower, server, 1)
    assert len(follower.waits) == 2
    assert len(follower.lines) == 2, "once when it goes, once when it is back"
    assert all(line.isprintable() for line in follower.lines)
    if name == "429":
        assert min(follower.waits) >= 1


@pytest.mark.parametrize("name", BAD)
def test_a_watch_that_fails_is_begun_anew(server: Server, config: Path, name: str) -> None:
    server.watches = [BAD[name]]
    with following("node", config, 0.01) as follower:
        settled(follower, server, 2)
    assert follower.events == []


def test_a_version_that_the_server_forgot_is_a_new_list_and_no_outage(server: Server, config: Path) -> None:
    server.watches = [lines({"type": "ERROR", "object": GONE})]
    with following("node", config, 0.01) as follower:
        settled(follower, server, 2)
    assert server.asked[:4] == ["list", "watch", "list", "watch"]
    assert follower.lines == []


def test_a_connection_that_was_cut_without_a_word_is_made_anew(
    server: Server, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_watch, "SILENCE_S", 0.1)
    with following("node", config, 0.01) as follower:
        until(lambda: server.asked.count("list") >= 3, 10)
    assert follower.lines == []


def test_bookmarks_and_kinds_of_a_newer_server_are_nothing(server: Server, config: Path) -> None:
    other = {"type": "WHATEVER", "object": POD}
    server.watches = [lines({"type": "BOOKMARK", "object": POD}, other, {"type": "DELETED", "object": POD})]
    with following("node", config, 0.01) as follower:
        until(lambda: follower.gone == ["p1"], 10)


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_server_that_sends_us_elsewhere_is_not_followed_and_the_token_stays(
    server: Server, config: Path, code: int
) -> None:
    elsewhere = Server()
    try:
        answer = document(code, b"", Location=f"{elsewhere.url}/api/v1/pods")
        server.lists, server.watches = [answer], [answer]
        with following("node", config, 0.01) as follower:
            settled(follower, server, 2)
        assert elsewhere.asked == []
    finally:
        elsewhere.close()


HOSTILE_POD = {
    "metadata": {"uid": "u9", "name": "\x1b[31m" + "p" * 10_000, "namespace": "../../kube-system",
                 "labels": {"ray.io/cluster": "x" * 10_000}, "annotations": {"x": "y" * 200_000},
                 "ownerReferences": [{"kind": "\x1b[31m", "name": "n" * 1000, "controller": True}] * 100},
    "status": {"phase": "p" * 10_000, "reason": "r" * 10_000, "message": "\n" * 10_000, "startTime": "9" * 5000,
               "containerStatuses": [{"name": "c", "containerID": "x" * 5000, "restartCount": 2**31}] * 200},
}  # fmt: skip
"""About as large as a server takes one."""


@pytest.mark.parametrize(
    "hostile",
    [
        HOSTILE_POD,
        {"metadata": {"uid": "u9"}, "status": json.loads("[" * 500 + "]" * 500)},
    ],
    ids=["long", "deep"],
)
def test_a_pod_of_somebody_who_means_harm_costs_no_other_pod(server: Server, config: Path, hostile: object) -> None:
    server.lists = [document(200, {**LIST, "items": [hostile, POD]}, **JSON)]
    server.watches = [lines({"type": "MODIFIED", "object": hostile}, {"type": "MODIFIED", "object": POD})]
    with following("node", config, 0.01) as follower:
        until(lambda: "p1" in follower.names and server.asked.count("watch") >= 2, 10)
    assert all(len(name) <= MAX_NAME for name in follower.names)
    assert all(line.isprintable() and len(line) < 1000 for line in follower.lines)
