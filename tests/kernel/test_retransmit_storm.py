"""A real storm of retransmits: a network namespace of the test's own, a firewall rule in it that drops one segment in
ten, and a transfer to it that lasts for a bounded time. The recorder, in the sender's namespace, names the peer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.query.events import events
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]

PEER = "10.77.9.2"
TRANSFER_S = 25
DEADLINE_S = 40.0
DROPS = """
table ip t {
  chain c {
    type filter hook input priority 0; policy accept;
    tcp dport 7777 numgen random mod 10 == 0 drop
  }
}
"""
TAKES = """
import selectors, socket, time
end = time.monotonic() + float(__import__("sys").argv[1])
chosen, server = selectors.DefaultSelector(), socket.create_server(("", 7777))
chosen.register(server, selectors.EVENT_READ)
print("ready", flush=True)
while time.monotonic() < end:
    for key, _ in chosen.select(0.2):
        if key.fileobj is server:
            chosen.register(server.accept()[0], selectors.EVENT_READ)
        elif not key.fileobj.recv(1 << 16):
            chosen.unregister(key.fileobj)
"""
SENDS = """
import socket, sys, threading, time
end = time.monotonic() + float(sys.argv[2])
def send():
    with socket.create_connection((sys.argv[1], 7777), timeout=5) as peer:
        while time.monotonic() < end:
            peer.sendall(bytes(1 << 14))
            time.sleep(0.001)
for _ in range(4):
    threading.Thread(target=send, daemon=True).start()
time.sleep(max(0, end - time.monotonic()))
"""


class Told(NamedTuple):
    event: Event
    symptoms: list[str]


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def within(space: str, *words: str) -> list[str]:
    """Only the network is another's: /sys and its cgroups stay as they are."""
    return ["nsenter", f"--net=/run/netns/{space}", *words]


@pytest.fixture
def far() -> Iterator[str]:
    """A namespace with one end of a pair of cards; the other end is here: a recorder watches its node's network."""
    Needs().root()
    for name, package in (("ip", "iproute2"), ("nft", "nftables"), ("nsenter", "util-linux")):
        Needs().binary(name, package)
    far, near_card = f"zs-far-{os.getpid()}", f"zsn{os.getpid()}"
    try:
        ip("netns", "add", far)
        ip("-n", far, "link", "set", "lo", "up")
        ip("link", "add", near_card, "type", "veth", "peer", "name", "v1", "netns", far)
        ip("addr", "add", "10.77.9.1/24", "dev", near_card)
        ip("link", "set", near_card, "up")
        ip("-n", far, "addr", "add", f"{PEER}/24", "dev", "v1")
        ip("-n", far, "link", "set", "v1", "up")
        subprocess.run(within(far, "nft", "-f", "-"), input=DROPS, text=True, check=True, timeout=30)
        yield far
    finally:
        subprocess.run(["ip", "link", "del", near_card], capture_output=True, timeout=30)
        subprocess.run(["ip", "netns", "del", far], capture_output=True, timeout=30)


@pytest.fixture
def told(tmp_path: Path, far: str) -> Told:
    python = [sys.executable, "-c"]
    takes = subprocess.Popen(
        within(far, *python, TAKES, str(TRANSFER_S + 20)), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    started = [takes]
    try:
        assert takes.stdout is not None
        assert takes.stdout.readline() == "ready\n"
        with recording(tmp_path / "rec") as recorder:
            sends = [*python, SENDS, PEER, str(TRANSFER_S)]
            started.append(subprocess.Popen(sends, text=True, start_new_session=True))
            found = _event(tmp_path / "rec")
            recorder.wait_for_frames(2)
            recorder.stop()
    finally:
        for process in started:
            process.kill()
            process.communicate(timeout=30)
    with open_recording(tmp_path / "rec") as kept:
        whole = diagnose(kept, kept.start_us, kept.end_us)
    return Told(found, [one.text for incident in whole.incidents for one in incident.symptoms])


def _event(directory: Path) -> Event:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        with open_recording(directory) as kept:
            found = [one for one in events(kept) if one.kind == "tcp_retransmits"]
        if found:
            return found[0]
        time.sleep(1)
    raise AssertionError("no event tells of the peer")


def test_the_peer_to_whom_everything_is_sent_again_is_named(told: Told) -> None:
    assert told.event.fields["peer"] == PEER
    assert told.event.fields["peers"] == 1
    assert told.event.fields["complete"] is True
    assert told.event.fields["resent"] >= 50
    assert any(PEER in text for text in told.symptoms), told.symptoms
