"""Messages of sock_diag, as the kernel writes them and as nobody should; and the real ones of this machine."""

from __future__ import annotations

import socket
import struct

import pytest

from zombiescope.kernel import tcp_sockets
from zombiescope.kernel.tcp_sockets import TcpSocket


def message(cookie: int, peer: bytes, resent: int, family: int = socket.AF_INET) -> bytes:
    about = struct.pack("=BBBBHH16s16sIQ20x", family, 1, 0, 0, 1, 2, bytes(16), peer.ljust(16, b"\0"), 0, cookie)
    info = bytes(100) + struct.pack("=I", resent) + bytes(60)
    attributes = struct.pack("=HH", 5, 9) + b"\0" * 4 + struct.pack("=HH", 4 + len(info), 2) + info
    body = about + attributes
    return struct.pack("=IHHII", 16 + len(body), 20, 2, 1, 0) + body


DONE = struct.pack("=IHHII", 20, 3, 2, 1, 0) + bytes(4)


def test_peers_and_what_was_sent_to_them_again() -> None:
    mapped = bytes(10) + b"\xff\xff" + bytes([10, 0, 0, 8])
    six = socket.inet_pton(socket.AF_INET6, "2001:db8::1")
    data = message(1, bytes([10, 0, 0, 7]), 9) + message(2, mapped, 3, socket.AF_INET6)
    found, ended = tcp_sockets.parse(data + message(3, six, 0, socket.AF_INET6))
    assert found == {1: TcpSocket("10.0.0.7", 9), 2: TcpSocket("10.0.0.8", 3), 3: TcpSocket("2001:db8::1", 0)}
    assert not ended
    assert tcp_sockets.parse(data + DONE)[1]


@pytest.mark.parametrize("end", range(0, 260, 7))
def test_what_is_cut_off_or_lies_about_its_length_is_passed_over(end: int) -> None:
    whole = message(1, bytes([10, 0, 0, 7]), 9)
    tcp_sockets.parse(whole[:end])
    for length in (0, 1, 15, 16, 17, 0xFFFFFFFF):
        tcp_sockets.parse(struct.pack("=I", length) + whole[4:])


def test_a_connection_of_this_machine_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        found, _ = tcp_sockets.read()
    assert "127.0.0.1" in {one.peer for one in found.values()}


def test_more_sockets_than_are_read_are_not_all() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        assert tcp_sockets.read(most=0)[1] is False
