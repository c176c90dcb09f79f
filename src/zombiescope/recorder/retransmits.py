"""To whom TCP sends again: asked only while very much is sent again, and then seldom.

The kernel counts what is sent again for all peers together. Which peers they are is in its sockets, and a look at ten
thousand of them takes 75 ms: so a thread looks when many segments were sent again in three ticks in a row, once more
some seconds later, and then not for a minute. The difference is an event. docs/design/0053 says why not more often.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from zombiescope.kernel import tcp_sockets
from zombiescope.kernel.tcp_sockets import TcpSocket
from zombiescope.store.event import Event

LEAST, RATIO = 50, 0.01
"""Segments sent again in a tick, and of all that were sent."""
IN_A_ROW = 3
BETWEEN_S, REST_S = 5.0, 60.0
MOST_PEERS = 5
KIND = "tcp_retransmits"
Look = tuple[dict[int, TcpSocket], bool]


class RetransmitPeers:
    """`read` looks at the sockets. `tell` takes the event."""

    def __init__(
        self, read: Callable[[], Look] = tcp_sockets.read, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.tell: Callable[[Event], None] = lambda _: None
        self._read, self._clock = read, clock
        self._before: tuple[int, int] | None = None
        self._in_a_row = 0
        self._first: Look | None = None
        self._first_s = self._rest_s = 0.0
        self._answer: list[Look] = []
        self._thread: threading.Thread | None = None

    def tick(self, wall_us: int, resent: int | None, sent: int | None) -> None:
        """With the totals of TcpRetransSegs and TcpOutSegs."""
        self._take(wall_us)
        if resent is None or sent is None:
            return
        (resent_before, sent_before), self._before = self._before or (resent, sent), (resent, sent)
        more, of = resent - resent_before, sent - sent_before
        self._in_a_row = self._in_a_row + 1 if more >= LEAST and more >= RATIO * of else 0
        if self._thread is None and self._is_due():
            self._thread = threading.Thread(target=self._look, name="tcp", daemon=True)
            self._thread.start()

    def _is_due(self) -> bool:
        now_s = self._clock()
        if self._first is not None:
            return now_s - self._first_s >= BETWEEN_S
        return self._in_a_row >= IN_A_ROW and now_s >= self._rest_s

    def _look(self) -> None:
        try:
            self._answer.append(self._read())
        except OSError:
            self._answer.append(({}, False))

    def _take(self, wall_us: int) -> None:
        if self._thread is None or not self._answer:
            return
        self._thread, look, now_s = None, self._answer.pop(), self._clock()
        if self._first is None:
            self._first, self._first_s = look, now_s
            return
        first, self._first, self._rest_s = self._first, None, now_s + REST_S
        event = difference(wall_us, first, look, now_s - self._first_s)
        if event is not None:
            self.tell(event)


def difference(wall_us: int, first: Look, last: Look, seconds: float) -> Event | None:
    """What was sent again between two looks, by peer; None where none of the sockets seen did."""
    peers: Counter[str] = Counter()
    for cookie, one in last[0].items():
        before = first[0].get(cookie)
        # A socket that the first look may have missed has its whole life in its count.
        if before is not None or first[1]:
            peers[one.peer] += max(0, one.resent - (before.resent if before is not None else 0))
    peers = +peers
    if not peers:
        return None
    most = peers.most_common(MOST_PEERS)
    listed = ", ".join(f"{count:,} to {peer}" for peer, count in most)
    more = f" and {len(peers) - len(most)} more" if len(peers) > len(most) else ""
    text = f"TCP sent {peers.total():,} segments again in {seconds:.0f} s: {listed}{more}"
    fields = {
        "resent": peers.total(), "seconds": round(seconds, 1), "peers": len(peers), "peer": most[0][0],
        "peer_resent": most[0][1], "complete": first[1] and last[1],
    }  # fmt: skip
    return Event(wall_us, KIND, "tcp", "info", text, fields)
