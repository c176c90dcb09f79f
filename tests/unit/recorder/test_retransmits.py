"""When peers are asked for, and what is told of them."""

from __future__ import annotations

import time

from zombiescope.kernel.tcp_sockets import TcpSocket
from zombiescope.recorder.retransmits import REST_S, Look, RetransmitPeers, difference
from zombiescope.store.event import Event


def look(complete: bool = True, **sockets: tuple[str, int]) -> Look:
    return {int(cookie[1:]): TcpSocket(*one) for cookie, one in sockets.items()}, complete


FIRST = look(a1=("10.0.0.7", 100), a2=("10.0.0.9", 5))
LAST = look(a1=("10.0.0.7", 1_000), a2=("10.0.0.9", 5), a3=("10.0.0.8", 40))


class Node:
    def __init__(self, *looks: Look) -> None:
        self.now_s = 0.0
        self.looks = list(looks)
        self.asked = 0
        self.events: list[Event] = []
        self.peers = RetransmitPeers(self._read, lambda: self.now_s)
        self.peers.tell = self.events.append
        self.resent = self.sent = 0

    def _read(self) -> Look:
        self.asked += 1
        if not self.looks:
            raise OSError("no sock_diag here")
        return self.looks.pop(0)

    def ticks(self, number: int, resent: int, sent: int = 10_000) -> None:
        for _ in range(number):
            self.now_s += 1
            self.resent, self.sent = self.resent + resent, self.sent + sent
            self.peers.tick(int(self.now_s * 1e6), self.resent, self.sent)
            for _ in range(500):
                if self.peers._thread is None or self.peers._answer:
                    break
                time.sleep(0.01)


def test_two_looks_make_one_event_and_then_there_is_rest() -> None:
    node = Node(FIRST, LAST, FIRST, LAST)
    node.ticks(20, 300)
    (event,) = node.events
    assert event.text == "TCP sent 940 segments again in 6 s: 900 to 10.0.0.7, 40 to 10.0.0.8"
    assert (event.fields["peer"], event.fields["peer_resent"], event.fields["complete"]) == ("10.0.0.7", 900, True)
    assert node.asked == 2
    node.ticks(int(REST_S), 300)
    assert node.asked == 4


def test_what_every_network_loses_asks_for_nothing() -> None:
    node = Node()
    node.ticks(30, 20)  # few
    node.ticks(30, 300, sent=1_000_000)  # of very many
    for _ in range(10):
        node.ticks(2, 300)  # not for long
        node.ticks(1, 0)
    assert node.asked == 0


def test_a_kernel_that_cannot_be_asked_and_counters_that_are_not_there() -> None:
    node = Node()
    node.ticks(20, 300)
    assert (node.events, node.asked) == ([], 2)
    node.peers.tick(1, None, None)


def test_a_socket_that_the_first_look_may_have_missed_is_not_counted() -> None:
    cut = look(complete=False, a1=("10.0.0.7", 100))
    event = difference(1, cut, LAST, 5.0)
    assert event is not None
    assert (event.fields["resent"], event.fields["complete"]) == (900, False)
    assert difference(1, FIRST, FIRST, 5.0) is None
