"""A peer that does not answer: what is sent to it again is counted under its address. A listener whose queue is full
drops whoever comes next, on every kernel and without any right."""

from __future__ import annotations

import socket
import time

import pytest

from zombiescope.kernel import tcp_sockets

pytestmark = pytest.mark.kernel
PEER = "127.0.0.77"


def test_segments_to_a_peer_that_does_not_answer() -> None:
    callers = [socket.socket() for _ in range(8)]
    resent: dict[str, int] = {}
    with socket.socket() as server:
        server.bind((PEER, 0))
        server.listen(0)
        for caller in callers:
            caller.setblocking(False)
            caller.connect_ex(server.getsockname())
        for _ in range(200):
            found, complete = tcp_sockets.read()
            assert complete
            resent = {one.peer: max(one.resent, resent.get(one.peer, 0)) for one in found.values()}
            if resent.get(PEER):
                break
            time.sleep(0.1)
        for caller in callers:
            caller.close()
    assert resent[PEER] >= 1
