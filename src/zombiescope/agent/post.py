"""One message to a receiver that may be away: accepted, to be tried again, or refused for good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from zombiescope.base import http_client
from zombiescope.base.http_client import NoAnswerError, shown

JSON = "application/json"
MOST_ASKED_WAIT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Outcome:
    kind: Literal["accepted", "later", "refused"]
    why: str = ""
    wait_s: float | None = None
    """What the peer asked for."""


def post(url: str, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Outcome:
    try:
        answer = http_client.post(url, body, {"Content-Type": JSON, **headers}, timeout_s)
    except NoAnswerError as error:
        return Outcome("later", f"{shown(url)}: {error.why}")
    if answer.is_success:
        return Outcome("accepted")
    why = f"{shown(url)} answers {answer.code}" + (f": {answer.said}" if answer.said else "")
    if not answer.is_passing:
        return Outcome("refused", why)
    return Outcome("later", why, answer.retry_after_s(MOST_ASKED_WAIT_S))
