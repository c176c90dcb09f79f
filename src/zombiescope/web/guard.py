"""Who may ask, checked before anything else looks at a request.

    Host     must be an address that this server listens on, with its port: a name that somebody else's DNS points here
             (DNS rebinding) is refused, and so is a request that a foreign page sends by name
    Origin   if there is one, must be this server's own; requests of another site's page are refused for all of /api
    method   GET and HEAD, and POST for assistants: nothing here changes anything
    token    for all of /api: `Authorization: Bearer`. On the loopback too, where every user of the machine may connect.
             Never a cookie: browsers send one to every port of the host, so to every user's server on it. The page
             itself may be loaded without: it is what reads the token off the part of the address behind #, which
             browsers keep to themselves

Every answer says that nothing may be loaded from or by anybody else.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from zombiescope.web.refusal import Refusal

UNREAD_BYTES, UNREAD_S = 1 << 16, 1.0
"""So much of a refused request is read, for so long."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
OPENER = ("Cross-Origin-Opener-Policy", "same-origin")
"""Not for everybody: over plain HTTP a browser obeys it on the loopback only, and complains elsewhere."""
API = "/api/"
MCP = "/mcp"
PYROSCOPE = "/querier.v1.QuerierService/"
"""Assistants and Grafana post their questions."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Access:
    """`names`: what Host may say, as (name, port). `token` None: nobody is asked."""

    port: int
    names: frozenset[tuple[str, int]]
    any_address: bool = False
    """Listening on all addresses: whoever names one of them by number was not rebound by a name."""
    token: str | None = None

    def host(self, said: str | None, usual_port: int = 80) -> bool:
        """Whether a Host header names this server."""
        if not said or len(said) > 300:
            return False
        name, port = _split(said.lower(), usual_port)
        return (name, port) in self.names or (self.any_address and port == self.port and _is_address(name))

    def origin(self, said: str | None) -> bool:
        """Whether an Origin header, if there is one, is this server's."""
        if said is None:
            return True
        try:
            parts = urlsplit(said)
        except ValueError:
            return False
        return parts.scheme in _PORTS and self.host(parts.netloc, _PORTS[parts.scheme])

    def knows(self, headers: Headers) -> bool:
        """Whether the token is with the request, where one is asked for."""
        return self.token is None or self.bears(headers)

    def bears(self, headers: Headers) -> bool:
        """Whether the token itself is with the request."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        known = (self.token or "").encode()
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), known)


def _split(said: str, usual_port: int) -> tuple[str, int]:
    """Name and port of a Host header; port -1 where it is no number."""
    name, colon, port = said.rpartition(":")
    if not colon or said.endswith("]"):
        return said, usual_port
    return name, int(port) if port.isascii() and port.isdigit() and len(port) < 6 else -1


def _trustworthy(host: str) -> bool:
    """Whether a browser calls this origin so: the loopback, or a name without a port, behind a proxy with TLS."""
    name, port = _split(host.lower(), 0)
    if name == "localhost":
        return True
    if not _is_address(name):
        return not port
    return ipaddress.ip_address(name.removeprefix("[").removesuffix("]")).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def access(address: str, port: int, names: Iterable[str] = (), token: str | None = None) -> Access:
    """For a server that listens on `address`. `names` are further ones: "NAME:PORT", or "NAME" with the server's port
    or with that of a proxy which speaks for it on a usual one."""
    own = f"[{address}]" if ":" in address else address
    known = {(name, port) for name in ("localhost", "127.0.0.1", "[::1]", own)}
    for each in names:
        name, said = _split(each.lower(), 0)
        known |= {(name, said)} if said else {(name, port), *((name, usual) for usual in _PORTS.values())}
    wildcard = address in ("0.0.0.0", "::")  # noqa: S104  compared, not bound
    return Access(port, frozenset(known), wildcard, token)


class Guard:
    """ASGI middleware: refuses before the application sees anything."""

    def __init__(self, app: ASGIApp, allowed: Access) -> None:
        self._app, self._allowed = app, allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # websockets: there are none

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if _trustworthy(Headers(scope=scope).get("host", "")):
                    headers.setdefault(*OPENER)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, with_headers)
        else:
            await _read_small_body(scope["method"], receive)
            allowed = b"POST" if _is_posted(scope["path"]) else b"GET, HEAD"
            await _send(refusal, scope["method"] == "HEAD", with_headers, allowed)

    def _refusal(self, scope: Scope) -> Refusal | None:
        headers, allowed = Headers(scope=scope), self._allowed
        method, path = scope["method"], scope["path"]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not allowed.host(hosts[0]):
            return Refusal(
                421, "this server does not go by that name", "open it by its address, or start it with --host NAME"
            )
        if not allowed.origin(headers.get("origin")):
            return Refusal(403, "another site's page may not ask this server", "open the page of this server")
        posts = _is_posted(path)
        if not path.startswith(API) and not posts:
            return None if method in ("GET", "HEAD") else _read_only(method)
        if headers.get("sec-fetch-site", "same-origin") in ("cross-site", "same-site"):
            return Refusal(403, "another site's page may not ask this server", "open the page of this server")
        if method not in ("GET", "HEAD") and not (method == "POST" and posts):
            return _read_only(method)
        return None if allowed.knows(headers) else _unknown(headers)


async def _read_small_body(method: str, receive: Receive) -> None:
    """What a refused request has sent: a connection closed with unread data is reset, and its answer with it."""
    if method in ("GET", "HEAD"):
        return
    left = UNREAD_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(UNREAD_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


def _is_posted(path: str) -> bool:
    """Whether a question to this path comes in the body of a POST."""
    return path == MCP or path.startswith(PYROSCOPE)


def _unknown(headers: Headers) -> Refusal:
    """A wrong token reads differently from a missing one, and all wrong ones read the same."""
    how = "open the address that it printed at its start, or send Authorization: Bearer TOKEN"
    if "authorization" in headers:
        what = "the token was refused: it is of another server, or of an earlier start of this one"
        return Refusal(401, what, how)
    return Refusal(401, "this server asks for a token", how)


def _read_only(method: str) -> Refusal:
    return Refusal(405, f"{method} is not answered: nothing here changes anything", "use GET")


async def _send(refusal: Refusal, head: bool, send: Send, allowed: bytes) -> None:
    body = json.dumps(refusal.document()).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        # What the request brought along is not read; the connection cannot be used for another.
        (b"connection", b"close"),
    ]
    if refusal.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.status == 405:
        headers.append((b"allow", allowed))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
