"""One HTTP peer: posts a body, tries again where that may help, and says in one line what went wrong.

Tried again, at most TRIES times: a peer that cannot be reached or breaks off, and answers that may be others later
(http_client); Retry-After is kept up to MAX_WAIT_S.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from zombiescope.base import http_client
from zombiescope.base.errors import UserError
from zombiescope.base.http_client import Answer, NoAnswerError, shown

TRIES = 3
MAX_WAIT_S = 30.0
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
        self._headers = dict(headers)
        self._timeout_s = timeout_s
        self._wait = wait

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Raises PushError."""
        for tried in range(1, TRIES + 1):
            last = tried == TRIES
            try:
                answer = http_client.post(url, body, {**headers, **self._headers}, self._timeout_s)
            except NoAnswerError as error:
                if last or error.is_lasting:
                    raise self._unreachable(error) from None
                self._wait(_backoff_s(tried))
                continue
            if answer.is_success:
                return answer
            if last or not answer.is_passing:
                said = f": {answer.said}" if answer.said else ""
                raise PushError(f"{shown(self.url)} answers {answer.code} {answer.reason}{said}", _fix(answer))
            self._wait(answer.retry_after_s(MAX_WAIT_S) or _backoff_s(tried))
        raise AssertionError("the last try answers or raises")

    def _unreachable(self, error: NoAnswerError) -> PushError:
        if error.is_late:
            what = f"{shown(self.url)} did not answer within {self._timeout_s:g} s"
            return PushError(what, "check that it is alive, or give a longer --timeout")
        return PushError(
            f"{shown(self.url)} cannot be reached: {error.why}", "is it running, and is this the right address?"
        )


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


def _fix(answer: Answer) -> str | None:
    if 300 <= answer.code < 400:
        return f"it redirects to {answer.headers.get('Location')}: push there"
    return _FIXES.get(answer.code)


def _backoff_s(tried: int) -> float:
    return float(2 ** (tried - 1))
