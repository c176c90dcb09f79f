"""Who is connected to a runtime's socket: of Docker, containerd, CRI-O and Podman, each by its own socket's name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zombiescope.node.containers.peers import SOCKETS, Peers

SERVER = """
import socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[2])
    server.listen()
    print("listens", flush=True)
    accepted, _ = server.accept()
    print("accepted", flush=True)
    accepted.recv(1)
"""
CLIENT = """
import socket, sys, time
with socket.socket(socket.AF_UNIX) as client:
    client.connect(sys.argv[1])
    sys.stdin.read()
"""
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only a server that runs as root is a runtime")


@contextmanager
def connected(comm: str, path: Path) -> Iterator[int]:
    """The pid of a client of a server with this name and socket."""
    out, to = {"stdout": subprocess.PIPE}, {"stdin": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SERVER, comm, str(path)], **out) as server:  # type: ignore[call-overload]
        try:
            assert server.stdout.readline() == b"listens\n"
            with subprocess.Popen([sys.executable, "-c", CLIENT, str(path)], **to) as client:  # type: ignore[call-overload]
                try:
                    assert server.stdout.readline() == b"accepted\n"
                    yield client.pid
                finally:
                    client.kill()
        finally:
            server.kill()


@AS_ROOT
@pytest.mark.parametrize(
    ("runtime", "comm"),
    [("docker", "dockerd"), ("containerd", "containerd"), ("crio", "crio"), ("podman", "podman")],
)
def test_the_client_of_each_runtime_is_found(tmp_path: Path, runtime: str, comm: str) -> None:
    (name,) = SOCKETS[runtime]
    with connected(comm, tmp_path / name) as client:
        found = Peers().of(runtime)
        assert found is not None
        assert client in {one.who.pid for one in found}
        others = next(other for other in SOCKETS if other != runtime)
        assert client not in {one.who.pid for one in Peers().of(others) or ()}


@AS_ROOT
def test_another_program_with_a_socket_of_that_name_has_no_clients(tmp_path: Path) -> None:
    with connected("webserver", tmp_path / "docker.sock") as client:
        assert client not in {one.who.pid for one in Peers().of("docker") or ()}
