"""Where requests become answers: the recording is chosen, the window is read off, and the document is made or was
kept."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query, Request, Response

from zombiescope.documents.columns import MEDIA_TYPE, Columns
from zombiescope.documents.window import Window
from zombiescope.recording.reader import Recording
from zombiescope.web.answers import Answer, Kept
from zombiescope.web.asked import Span
from zombiescope.web.recordings import Recordings
from zombiescope.web.served import Served

Document = dict[str, Any] | Columns
Make = Callable[[Served, Recording, Window], Document]
Rec = Annotated[str | None, Query(max_length=300, description="Which recording (see recordings). Default: the first.")]
WHOLE = Span(None, None, None, None)
LONG_US = 1800 * 1_000_000
"""The samples of more than that are not read in a moment."""


def says(twin: str, *, binary: bool = False) -> dict[str, Any]:
    """What the documentation says of an endpoint: its media type, its errors, and the command that prints the same."""
    media = MEDIA_TYPE if binary else "application/json"
    shape = {"type": "string", "format": "binary"} if binary else {"type": "object"}
    return {
        "response_class": Response,
        "responses": {
            200: {"description": f"On the command line: `zombiescope {twin}`.", "content": {media: {"schema": shape}}},
            **ERRORS,
        },
    }


_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "What is wrong with the request, and what helps.", "content": _ERROR},
    503: {"description": "Nothing is recorded yet, or it cannot be read.", "content": _ERROR},
}


class Desk:
    def __init__(self, recordings: Recordings) -> None:
        self.recordings = recordings
        self._kept = Kept()
        self._long: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def answer(
        self, request: Request, what: str, rec: str | None, span: Span, make: Make, *, samples: bool = False
    ) -> Response:
        """Made while the recording is held, for what takes a moment; `samples`: it reads all samples of the window, so
        a long one is made apart. Raises Refusal and UnclearError."""
        served = self.recordings.named(rec)
        with served.reading(span.until_us) as recording:
            window = span.window(recording)
            if not samples or window.end_us - window.start_us <= LONG_US:
                key = _key(request, served, span)
                return self._kept.get(key, lambda: Answer.of(what, make(served, recording, window))).response(request)
        return self.long_answer(request, what, rec, span, make)

    def long_answer(self, request: Request, what: str, rec: str | None, span: Span, make: Make) -> Response:
        """Made apart, one at a time: for what takes seconds, so that the other views do not wait for it."""
        served = self.recordings.named(rec)
        with served.reading(span.until_us):
            key = _key(request, served, span)

        def made() -> Answer:
            with served.apart() as recording:
                return Answer.of(what, make(served, recording, span.window(recording)))

        with self._long[served.key]:
            return self._kept.get(key, made).response(request)

    def plain(self, request: Request, what: str, document: dict[str, Any]) -> Response:
        """What is told of this machine and this moment."""
        return Answer.of(what, document).response(request)


def _key(request: Request, served: Served, span: Span) -> tuple[Any, ...]:
    """Of what an answer is true: of all time, or as long as nobody looks again."""
    since = -1 if served.settled(span.until_us) else served.generation
    return served.key, request.url.path, tuple(sorted(request.query_params.multi_items())), since
