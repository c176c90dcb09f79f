"""A small HTTP/1.1 server for pages that are short: one request a connection, GET and HEAD, nothing else.

    head     a request's line and headers are there within HEAD_S, however they trickle in, and within MOST_HEAD bytes
    answer   whoever does not read it within WRITE_S is let go
    room     MOST connections; one more, and the one that has waited for longest without having asked is let go, or else
             the one that has not read its answer for longest
    who      with a token: who bears it (Authorization: Bearer); all others learn yes or no of PROBES. Without: on the
             loopback only clients that call us by an address or a name of ours, so that no page of another site reads
             it by a name that its DNS points here; elsewhere everybody, without reasons, which has to be configured. A
             browser's page of another site never

The answers are made in the server's own thread and must not wait for anything.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from socket import socket

import h11

HEAD_S, WRITE_S = 10.0, 20.0
MOST = 64
MOST_HEAD = 16 * 1024
BACKLOG = 64
STOP_LOOK_S = 1.0
PROBES = ("/healthz", "/readyz")
"""A kubelet has no token; without one they answer yes or no."""


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    headers: dict[str, str]
    """The last of each name, in lower case."""
    tells_why: bool = True
    """Whether reasons may be in the answer: they name units, files and peers."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """`token` None: nobody is asked for one. `names`: what Host may say where there is none; empty: anything.
    `is_open`: reached from other machines and pods without a token."""

    token: str | None = None
    names: frozenset[str] = frozenset()
    is_open: bool = False

    def refusal(self, request: Request) -> Answer | None:
        headers = request.headers
        if "origin" in headers or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return _text(403, "another site's page may not ask this server")
        if self.token is None:
            known = not self.names or self._is_ours(headers.get("host", ""))
            return None if known else _text(421, "this server does not go by that name; see metrics.names")
        if self.bears(request) or request.path in PROBES:
            return None
        return Answer(401, b"this server asks for a token: Authorization: Bearer TOKEN\n",
                      headers=(("www-authenticate", "Bearer"),))  # fmt: skip

    def bears(self, request: Request) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        known = (self.token or "").encode()
        return scheme.lower() == "bearer" and bool(known) and hmac.compare_digest(given.strip().encode(), known)

    def tells_why(self, request: Request) -> bool:
        """To who bears the token; where none is configured, to users of this machine."""
        return self.bears(request) if self.token is not None else not self.is_open

    def _is_ours(self, host: str) -> bool:
        name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
        name = name.lower()
        return name in self.names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _text(status: int, text: str) -> Answer:
    return Answer(status, f"{text}\n".encode())


@dataclass(slots=True)
class Door:
    """`answer` makes the page of a request."""

    answer: Callable[[Request], Answer]
    access: Access
    head_s: float = HEAD_S
    write_s: float = WRITE_S
    most: int = MOST
    _waiting: dict[asyncio.StreamWriter, None] = field(default_factory=dict)
    _reading: dict[asyncio.StreamWriter, None] = field(default_factory=dict)
    """Those that are given their answer."""
    refused: int = 0
    """Connections that were let go because there were too many, or took too long."""

    async def serve(self, made: socket, stopped: Callable[[], bool]) -> None:
        """Until `stopped`. Takes the socket."""
        server = await asyncio.start_server(self._connection, sock=made, limit=MOST_HEAD, backlog=BACKLOG)
        async with server:
            while not stopped():
                await asyncio.sleep(STOP_LOOK_S)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._make_room()
        self._waiting[writer] = None
        try:
            await self._one_request(reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            self.refused += 1
            writer.transport.abort()
        finally:
            self._waiting.pop(writer, None)
            self._reading.pop(writer, None)
            with suppress(OSError):
                writer.close()

    @property
    def held(self) -> int:
        """Connections."""
        return len(self._waiting) + len(self._reading)

    def _make_room(self) -> None:
        if self.held >= self.most:
            line = self._waiting or self._reading
            oldest = next(iter(line))
            del line[oldest]
            oldest.transport.abort()
            self.refused += 1

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=MOST_HEAD)
        try:
            async with asyncio.timeout(self.head_s):
                event = await self._head(connection, reader)
        except h11.RemoteProtocolError as error:
            self._is_answered(writer)
            await self._send(writer, connection, _text(error.error_status_hint, "not a request that is answered here"))
            return
        self._is_answered(writer)
        if event is not None:
            head_only = event.method == b"HEAD"
            await self._send(writer, connection, self._page(event), head_only=head_only)

    def _is_answered(self, writer: asyncio.StreamWriter) -> None:
        if writer in self._waiting:  # else it was let go meanwhile
            del self._waiting[writer]
            self._reading[writer] = None

    async def _head(self, connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            connection.receive_data(await reader.read(4096))

    def _page(self, event: h11.Request) -> Answer:
        if event.method not in (b"GET", b"HEAD"):
            return Answer(405, b"nothing here changes anything; use GET\n", headers=(("allow", "GET, HEAD"),))
        hosts = [value for name, value in event.headers if name == b"host"]
        headers = {name.decode("ascii"): value.decode("latin-1") for name, value in event.headers}
        request = Request(event.target.decode("latin-1").partition("?")[0], headers)
        if len(hosts) > 1:
            return _text(400, "more than one Host")
        refusal = self.access.refusal(request)
        return self.answer(replace(request, tells_why=self.access.tells_why(request))) if refusal is None else refusal

    async def _send(
        self, writer: asyncio.StreamWriter, connection: h11.Connection, answer: Answer, *, head_only: bool = False
    ) -> None:
        headers = [
            ("content-type", answer.content_type),
            ("content-length", str(len(answer.body))),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("connection", "close"),
            *answer.headers,
        ]
        parts = [connection.send(h11.Response(status_code=answer.status, headers=headers))]
        if not head_only:
            parts.append(connection.send(h11.Data(data=answer.body)))
        async with asyncio.timeout(self.write_s):
            writer.write(b"".join(part for part in parts if part))
            await writer.drain()
            writer.close()
            await writer.wait_closed()
