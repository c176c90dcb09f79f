"""Ray's dashboard over HTTP: jobs, nodes, and why the tasks of a job were lost.

    GET /api/jobs/                       the Jobs API, stable since Ray 2.0
    GET /api/v0/nodes?detail=1           the State API: ALIVE or DEAD, with a message
    GET /api/v0/tasks?detail=1&...       error types of a failed job, and on which nodes its tasks ran

The State API lets few requests in at a time, and one head answers all: whoever asks, asks seldom (watch.py). Redirects
are not followed, answers are bounded in size and time, and a head that is away is an error of ours that says so.

The token goes where the configuration says, and nowhere else: an address that a process of the node names is anybody's.
"""

from __future__ import annotations

import time
from http.client import HTTPException
from typing import Any
from urllib import error, request
from urllib.parse import urlencode, urlsplit

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError

ANSWER_BYTES = 16 << 20
ANSWER_S = 30.0
"""For all of an answer, however it trickles in."""
MOST_TASKS = 200
_PIECE_BYTES = 1 << 16


class DashboardError(UserError):
    """It did not answer as a dashboard does."""


class _NoRedirect(request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Nothing: we ask whom we were told to ask."""


class Dashboard:
    def __init__(self, url: str, token: str | None = None, timeout_s: float = 5.0) -> None:
        """Raises DashboardError when the address is none."""
        if not _is_address(url):
            raise DashboardError(f"{url} is not the address of a dashboard", "write http://head:8265")
        self.url = url.rstrip("/")
        self._headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._timeout_s = timeout_s
        # A dashboard is reached directly: a proxy of the machine's is for the internet.
        self._opener = request.build_opener(_NoRedirect, request.ProxyHandler({}))

    def jobs(self) -> list[dict[str, Any]]:
        """Raises DashboardError."""
        return _dicts(self._get("/api/jobs/"))

    def nodes(self) -> list[dict[str, Any]]:
        return self._listed("nodes", {"detail": 1, "limit": 10_000})

    def tasks(self, job: str, *, failed: bool) -> list[dict[str, Any]]:
        """Of one job; `failed`: those that failed."""
        keys, values = ["job_id"], [job]
        if failed:
            keys, values = ["job_id", "state"], [job, "FAILED"]
        asked = [("detail", 1), ("limit", MOST_TASKS)]
        asked += [("filter_keys", key) for key in keys]  # type: ignore[misc] # urlencode takes both
        asked += [("filter_predicates", "=") for _ in keys]  # type: ignore[misc]
        asked += [("filter_values", value) for value in values]  # type: ignore[misc]
        return self._listed("tasks", asked)

    def _listed(self, what: str, asked: Any) -> list[dict[str, Any]]:
        answer: Any = self._get(f"/api/v0/{what}?{urlencode(asked)}")
        try:
            return _dicts(answer["data"]["result"]["result"])
        except (KeyError, TypeError):
            raise DashboardError(f"{self.url} does not list {what}", "is it Ray's dashboard, 2.3 or later?") from None

    def _get(self, path: str) -> Any:
        asked = request.Request(self.url + path, headers=self._headers)  # noqa: S310  checked above
        try:
            with self._opener.open(asked, timeout=self._timeout_s) as answer:
                data = _body(answer)
            return _json.loads(data)
        except error.HTTPError as refused:
            with refused:
                raise DashboardError(f"{self.url} answers {refused.code} {refused.reason}") from None
        except (OSError, HTTPException) as broken:
            why = getattr(broken, "reason", None) or broken
            text = getattr(why, "strerror", None) or str(why) or type(why).__name__
            raise DashboardError(f"{self.url} cannot be reached: {text}", "is the head alive?") from None
        except ValueError:
            raise DashboardError(f"{self.url} does not answer with JSON", "is it Ray's dashboard?") from None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _body(answer: Any) -> bytes:
    """Raises TimeoutError, OSError."""
    until_s, pieces, size = time.monotonic() + ANSWER_S, [], 0
    while piece := answer.read1(_PIECE_BYTES):
        pieces.append(piece)
        size += len(piece)
        if size > ANSWER_BYTES:
            raise OSError(f"its answer is larger than {ANSWER_BYTES >> 20} MB")
        if time.monotonic() > until_s:
            raise TimeoutError(f"its answer takes longer than {ANSWER_S:g} s")
    return b"".join(pieces)


def is_plain(url: str) -> bool:
    """Whether whoever is on the way reads what is sent there."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def _dicts(found: object) -> list[dict[str, Any]]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
