"""One HTTP peer: posts a body, tries again where that may help, and says in one line what went wrong.

Tried again, at most TRIES times: a peer that cannot be reached or breaks off, 429, 502, 503 and 504; Retry-After is
kept up to MAX_WAIT_S. Anything else is an answer and not a fault of the way. A redirect is not followed: a POST would
become a GET without a body.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from email.message import Message
from http.client import HTTPException
from typing import NamedTuple
from urllib import error, request
from urllib.parse import urlsplit

from zombiescope.base.errors import UserError

TRIES = 3
MAX_WAIT_S = 30.0
ANSWER_BYTES = 1 << 20
SAID_CHARACTERS = 200
_PASSING = frozenset({429, 502, 503, 504})
_SECRET = frozenset({"authorization", "cookie", "x-api-key", "proxy-authorization"})
"""Headers that prove who sends."""
_FIXES = {
    401: "give --token-file or --header Authorization=...",
    403: "give --token-file or --header Authorization=...",
    404: "is this the right address, and does the peer accept profiles?",
    413: "push less at once with a smaller --every",
}


class PushError(UserError):
    """The peer did not accept it."""


class Response(NamedTuple):
    headers: Message
    body: bytes


class _NoRedirect(request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Nothing: the answer that redirects is the last one."""


class Peer:
    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        timeout_s: float,
        wait: Callable[[float], None] = time.sleep,
        *,
        plain: bool = False,
    ) -> None:
        """Raises PushError when the URL is none, or when a token would go over the network as it is and not `plain`."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise PushError(f"{url} is not an address", "write http://host:port or https://host")
        if parts.scheme == "http" and not plain and _SECRET.intersection(map(str.lower, headers)):
            _refuse_plain(parts.hostname, url)
        self.url = url.rstrip("/")
        self._place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._wait = wait
        self._opener = request.build_opener(_NoRedirect)

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Raises PushError."""
        asked = request.Request(url, body, {**headers, **self._headers}, method="POST")  # noqa: S310  checked above
        for tried in range(1, TRIES + 1):
            last = tried == TRIES
            try:
                with self._opener.open(asked, timeout=self._timeout_s) as answer:
                    return Response(answer.headers, answer.read(ANSWER_BYTES))
            except error.HTTPError as refused:
                with refused:
                    said = _said(refused)
                if refused.code not in _PASSING or last:
                    what = f"{self._place} answers {refused.code} {refused.reason}{said}"
                    raise PushError(what, _fix(refused)) from None
                self._wait(_asked_wait_s(refused.headers, tried))
            except (OSError, HTTPException) as broken:
                if last or _is_certain(broken):
                    raise _unreachable(self._place, broken, self._timeout_s) from None
                self._wait(_backoff_s(tried))
        raise AssertionError("the last try answers or raises")


def _refuse_plain(host: str, url: str) -> None:
    """A token over plain HTTP is read by whoever is on the way."""
    try:
        is_here = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = False
    if not is_here:
        raise PushError(
            f"{url} is plain HTTP: anyone on the network path could read the token",
            "write https://, or give --plain-http if that network is yours alone",
        )


def _said(refused: error.HTTPError) -> str:
    """What the body of an answer says, on one line."""
    try:
        body = refused.read(ANSWER_BYTES).decode("utf-8", "replace")
        # What a stranger sends goes to a terminal: nothing in it may be a command for that.
        text = " ".join("".join(each if each.isprintable() else " " for each in body).split())
    except (OSError, HTTPException):
        text = ""
    if len(text) > SAID_CHARACTERS:
        text = f"{text[:SAID_CHARACTERS]}..."
    return f": {text}" if text else ""


def _fix(refused: error.HTTPError) -> str | None:
    if 300 <= refused.code < 400:
        return f"it redirects to {refused.headers.get('Location')}: push there"
    return _FIXES.get(refused.code)


def _asked_wait_s(headers: Message, tried: int) -> float:
    asked = headers.get("Retry-After") or ""
    return min(float(asked), MAX_WAIT_S) if asked.isdecimal() else _backoff_s(tried)


def _backoff_s(tried: int) -> float:
    return float(2 ** (tried - 1))


def _is_certain(broken: BaseException) -> bool:
    """Trying again does not help: a name that does not exist, a certificate that is not trusted."""
    reason = broken.reason if isinstance(broken, error.URLError) else broken
    return isinstance(reason, ssl.SSLError) or (
        isinstance(reason, socket.gaierror) and reason.errno != socket.EAI_AGAIN
    )


def _unreachable(place: str, broken: BaseException, timeout_s: float) -> PushError:
    reason = broken.reason if isinstance(broken, error.URLError) else broken
    if isinstance(reason, TimeoutError):
        return PushError(
            f"{place} did not answer within {timeout_s:g} s", "check that it is alive, or give a longer --timeout"
        )
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return PushError(f"{place} cannot be reached: {text}", "is it running, and is this the right address?")
