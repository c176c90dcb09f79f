"""One POST to a peer that may be away: any answer, or why there is none. Never follows a redirect: a POST would become
a GET without a body. Errors name host and port of the address only: the path of a webhook is its password."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from email.message import Message
from http.client import HTTPException, InvalidURL
from typing import NamedTuple
from urllib import error, request
from urllib.parse import urlsplit

from zombiescope.base.text import printable

ANSWER_BYTES = 1 << 20
SAID_CHARACTERS = 200


class Answer(NamedTuple):
    """Of any status."""

    code: int
    reason: str
    headers: Message
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.code < 300

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later."""
        return self.code in (408, 425, 429, 500, 502, 503, 504)

    @property
    def said(self) -> str:
        """What its body says, on one line. It may go to a terminal: nothing in it is a command for that."""
        text = self.body.decode("utf-8", "replace")
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        return text if len(text) <= SAID_CHARACTERS else f"{text[:SAID_CHARACTERS]}..."

    def retry_after_s(self, most_s: float) -> float | None:
        asked = self.headers.get("Retry-After") or ""
        return min(float(asked), most_s) if asked.isdecimal() else None


class NoAnswerError(Exception):
    """`is_lasting`: trying again does not help, as with a name that does not exist. `is_late`: no answer in time."""

    def __init__(self, why: str, *, is_lasting: bool = False, is_late: bool = False) -> None:
        super().__init__(why)
        self.why, self.is_lasting, self.is_late = why, is_lasting, is_late


class _NoRedirect(request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Nothing: the answer that redirects is the last one."""


_OPENER = request.build_opener(_NoRedirect)


def is_address(url: str) -> bool:
    """An http(s) address that can be requested as it is. One with a space or a control character cannot, and the error
    of the library that says so repeats it, secret and all."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def shown(url: str) -> str:
    """What of an address may be printed."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """Raises NoAnswerError."""
    asked = request.Request(url, body, dict(headers), method="POST")  # noqa: S310  http or https, checked by the caller
    try:
        with _OPENER.open(asked, timeout=timeout_s) as answer:
            return Answer(answer.status, answer.reason, answer.headers, answer.read(ANSWER_BYTES))
    except error.HTTPError as refusal:
        with refusal:
            return Answer(refusal.code, refusal.reason, refusal.headers, _body(refusal))
    except (OSError, HTTPException, ValueError) as broken:
        raise _no_answer(broken, timeout_s) from None


def _body(refusal: error.HTTPError) -> bytes:
    try:
        return refusal.read(ANSWER_BYTES)
    except (OSError, HTTPException):
        return b""


def _no_answer(broken: BaseException, timeout_s: float) -> NoAnswerError:
    reason = broken.reason if isinstance(broken, error.URLError) else broken
    if isinstance(reason, TimeoutError):
        return NoAnswerError(f"no answer within {timeout_s:g} s", is_late=True)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return NoAnswerError(f"its certificate is not trusted: {reason.verify_message}", is_lasting=True)
    if isinstance(reason, ssl.SSLError):
        return NoAnswerError(printable(str(reason))[:SAID_CHARACTERS], is_lasting=True)
    if isinstance(reason, (ValueError, InvalidURL)):  # their text repeats the address
        return NoAnswerError("the address contains a space or another character that addresses cannot have")
    if isinstance(reason, socket.gaierror):
        lasting = reason.errno != socket.EAI_AGAIN
        return NoAnswerError("its name is not known", is_lasting=lasting)
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return NoAnswerError(printable(str(text))[:SAID_CHARACTERS])
