"""One client's connection: how long it may take, and who goes when there are too many.

    head        a request's line and headers are there within HEAD_S, counted from the moment at which they were first
                awaited: a byte now and then (slowloris) buys no time
    answer      what a client does not read within WRITE_S is thrown away with its connection, so that nobody holds an
                answer, or the temporary file of an export, by not reading it
    room        MOST connections. One more, and the one that has been idle for longest goes; those that never asked for
                anything go first, and nobody who came a moment ago. So two hundred idle connections lock nobody out,
                and a browser that lost an idle one opens another without a word

The rest is uvicorn's.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0
WRITE_S = 20.0
KEEP_ALIVE_S = 30
MOST = 256
FULL = 768
"""Below what a process may have open: then whoever waits for longest goes, however short that is."""
GRACE_S = 1.0
"""In a rush connections are accepted by the hundred before the first of them is read."""


class Connection(H11Protocol):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._deadline: asyncio.TimerHandle | None = None
        self._blocked: asyncio.TimerHandle | None = None
        self._idle_since = self.loop.time()
        self._asked = False

    # --- coming and going --------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._make_room()
        super().connection_made(transport)
        _give_up_after(transport, WRITE_S)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def _make_room(self) -> None:
        too_many = len(self.connections) + 1 - MOST
        if too_many <= 0:
            return
        idle = [each for each in self.connections if isinstance(each, Connection) and each.is_idle]
        idle.sort(key=Connection._leaves_first)
        before = self.loop.time() - GRACE_S
        leaving = [each for each in idle if each._idle_since < before][:too_many]
        if not leaving and len(self.connections) >= FULL:
            leaving = idle[:1]
        for each in leaving:
            each.drop()

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _leaves_first(self) -> tuple[bool, float]:
        return self._asked, self._idle_since

    def drop(self) -> None:
        """Ends it now, with what it has not read."""
        self.connections.discard(self)
        self.transport.abort()

    # --- requests ----------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()
        # Nothing is awaited but the next request, for which there is the keep-alive time.
        if self.is_idle:
            self._stop_waiting()

    def _look(self) -> None:
        if self.is_idle:
            self._await_head()
        else:
            self._asked = True
            self._stop_waiting()

    def _await_head(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_S, self.drop)

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # --- answers -----------------------------------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._blocked is None:
            self._blocked = self.loop.call_later(WRITE_S, self.drop)

    def resume_writing(self) -> None:
        if self._blocked is not None:
            self._blocked.cancel()
            self._blocked = None
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.drop()
        else:
            super().timeout_keep_alive_handler()


def _give_up_after(transport: asyncio.Transport, limit_s: float) -> None:
    """The kernel too gives up on what is not read: a closed connection whose last bytes nobody takes is still ours."""
    with suppress(OSError, AttributeError):
        transport.get_extra_info("socket").setsockopt(
            socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(limit_s * 1000)
        )
