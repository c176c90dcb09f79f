"""Connections to a server's unix socket, and the processes at both ends: asked of this kernel."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope.kernel import unix_sockets
from zombiescope.kernel.unix_sockets import Holders, connections, parse, request

CLIENT = """
import socket, sys
with socket.socket(socket.AF_UNIX) as one:
    one.connect(sys.argv[1])
    print("connected", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "docker.sock"))
        one.listen()
        yield one


@pytest.fixture
def client(server: socket.socket) -> Iterator[int]:
    path = server.getsockname()
    words = [sys.executable, "-c", CLIENT, path]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert one.stdout.readline() == b"connected\n"
        accepted, _ = server.accept()
        with accepted:
            yield one.pid
        one.communicate()


def test_a_connection_is_listed_with_both_ends(server: socket.socket, client: int) -> None:
    (one,) = [each for each in connections(["docker.sock"]) if each.path == server.getsockname()]
    assert one.server_uid == os.getuid()
    held = Holders().find({one.client, one.server}, 5.0)
    assert held == {one.client: client, one.server: os.getpid()}


def test_sockets_of_other_names_and_connections_that_ended_are_not_listed(server: socket.socket, client: int) -> None:
    path = server.getsockname()
    assert [one for one in connections(["containerd.sock"]) if one.path == path] == []
    with socket.socket(socket.AF_UNIX) as another:
        another.connect(path)
        with server.accept()[0]:
            assert len([one for one in connections(["docker.sock"]) if one.path == path]) == 2
    assert len([one for one in connections(["docker.sock"]) if one.path == path]) == 1


def test_a_holder_is_remembered_and_an_inode_that_no_process_holds_is_not_searched_for_again(
    server: socket.socket, client: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = [each for each in connections(["docker.sock"]) if each.path == server.getsockname()]
    holders = Holders()
    assert holders.find({one.client, 1}, 5.0) == {one.client: client}
    monkeypatch.setattr(unix_sockets, "_sockets", lambda *_: pytest.fail("searched again"))
    assert holders.find({one.client, 1}, 5.0) == {one.client: client}


def test_a_search_without_time_looks_only_at_those_that_held_sockets_before(server: socket.socket, client: int) -> None:
    path = server.getsockname()
    holders = Holders()
    (one,) = [each for each in connections(["docker.sock"]) if each.path == path]
    assert holders.find({one.client}, 0.0) == {}
    assert holders.find({one.client}, 5.0) == {one.client: client}


def _message(attributes: bytes, kind: int = 20) -> bytes:
    body = struct.pack("=BBBxIII", 1, 1, 1, 77, 0, 0) + attributes
    return struct.pack("=IHHII", 16 + len(body), kind, 2, 1, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


NAMES = frozenset({b"docker.sock"})


def test_an_answer_that_is_cut_or_lies_about_its_lengths_is_no_connection() -> None:
    whole = _message(_attribute(0, b"/run/docker.sock\0") + _attribute(2, struct.pack("=I", 9)))
    (one,) = parse(whole, NAMES)[0]
    assert (one.path, one.server, one.client, one.server_uid) == ("/run/docker.sock", 77, 9, None)
    for cut in range(len(whole)):
        parse(whole[:cut], NAMES)
    lying = _message(struct.pack("=HH", 60_000, 0) + b"/run/docker.sock")
    assert parse(lying, NAMES)[0] == []
    abstract = _message(_attribute(0, b"\0run/docker.sock") + _attribute(2, struct.pack("=I", 9)))
    assert parse(abstract, NAMES)[0] == []


def test_a_kernel_without_unix_diag_is_an_error_with_its_reason() -> None:
    refused = struct.pack("=IHHII", 20, 2, 0, 1, 0) + struct.pack("=i", -2)
    with pytest.raises(OSError, match="No such file"):
        parse(refused, NAMES)


def test_only_established_sockets_are_asked_for() -> None:
    assert struct.unpack_from("=BBHI", request(), 16) == (socket.AF_UNIX, 0, 0, 2)
