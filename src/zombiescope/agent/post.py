"""One POST to somebody who may be away: accepted, to be tried again, or refused for good. Never follows a redirect, and
never names more of the address than host and port: the path of a webhook is its password."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from typing import Literal
from urllib import error, request
from urllib.parse import urlsplit

from zombiescope.base.text import printable

ANSWER_BYTES = 4096
JSON = "application/json"
SAID_CHARACTERS = 120
MOST_ASKED_WAIT_S = 3600.0
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: Literal["accepted", "later", "refused"]
    why: str = ""
    wait_s: float | None = None
    """What the peer asked for."""


class _NoRedirect(request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Nothing: a POST would become a GET without a body."""


def is_address(url: str) -> bool:
    """An http(s) address that can be asked as it stands. One with a space or a control character cannot, and the error
    of the library that says so repeats it, secret and all."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def shown(url: str) -> str:
    """What of an address may be said."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Outcome:
    asked = request.Request(url, body, {"Content-Type": JSON, **headers}, method="POST")  # noqa: S310  http or https, checked
    try:
        with request.build_opener(_NoRedirect).open(asked, timeout=timeout_s) as answer:
            answer.read(ANSWER_BYTES)
            return Outcome("accepted")
    except error.HTTPError as refusal:
        with refusal:
            return _answered(url, refusal)
    except (OSError, HTTPException, ValueError) as broken:
        return Outcome("later", f"{shown(url)}: {_reason(broken, timeout_s)}")


def _answered(url: str, refusal: error.HTTPError) -> Outcome:
    try:
        said = printable(refusal.read(ANSWER_BYTES).decode("utf-8", "replace").strip())[:SAID_CHARACTERS]
    except (OSError, HTTPException):
        said = ""
    why = f"{shown(url)} answers {refusal.code}" + (f": {said}" if said else "")
    if refusal.code not in _PASSING:
        return Outcome("refused", why)
    asked = refusal.headers.get("Retry-After") or ""
    return Outcome("later", why, min(float(asked), MOST_ASKED_WAIT_S) if asked.isdecimal() else None)


def _reason(broken: BaseException, timeout_s: float) -> str:
    reason = broken.reason if isinstance(broken, error.URLError) else broken
    if isinstance(reason, TimeoutError):
        return f"no answer within {timeout_s:g} s"
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {reason.verify_message}"
    if isinstance(reason, ValueError | InvalidURL):  # their text repeats the address
        return "the address is invalid: it contains a space or another character that addresses cannot have"
    if isinstance(reason, socket.gaierror):
        return "its name is not known"
    return printable(str(getattr(reason, "strerror", None) or reason))[:SAID_CHARACTERS]
