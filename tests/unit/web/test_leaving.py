"""Browsers that leave in the middle: a closed tab, a question that nobody waits for any more."""

from __future__ import annotations

import socket
import time

from tests.helpers.page_server import PageServer

ASKED = ("info", "recordings", "strip?columns=500", "flamegraph?nodes=100000", "heatmap")


def test_whoever_leaves_in_the_middle_does_not_end_the_server(server: PageServer) -> None:
    host = f"{server.address}:{server.port}"
    for number in range(100):
        question = f"GET /api/v1/{ASKED[number % len(ASKED)]} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        with socket.create_connection((server.address, server.port), timeout=60) as connection:
            connection.sendall(question * 3)
            time.sleep(0.005 * (number % 4))
    assert server.api("info").status == 200
    assert server.process.poll() is None
