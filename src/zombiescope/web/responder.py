"""Where requests become responses: the recording is chosen, and the document is made or taken from the cache."""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Query, Request, Response

from zombiescope.documents.columns import MEDIA_TYPE
from zombiescope.questions.window import WHOLE, WindowQuestion
from zombiescope.store.reader import Recording
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.recordings import Recordings
from zombiescope.web.refusal import Refusal
from zombiescope.web.response_cache import Representation, ResponseCache

Make = Callable[[HeldRecording, Recording], Any]
"""Columns, an answer, or JSON."""
Rec = Annotated[str | None, Query(max_length=300, description="Which recording (see recordings). Default: the first.")]
LONG_US = 1800 * 1_000_000
"""The samples of more than that are not read in a moment."""
QUICK, QUICK_WAITING = 16, 8
"""Answers that take a moment: of forty threads some are left for the page itself."""
LONG, LONG_WAITING = 2, 6
"""Answers that take seconds: each reads a recording of its own."""


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
    "4XX": {"description": "What is wrong with the request, and how to fix it.", "content": _ERROR},
    410: {"description": "The recording was deleted or moved since it was served.", "content": _ERROR},
    503: {"description": "Nothing is recorded yet, or it cannot be read.", "content": _ERROR},
}


class Responder:
    def __init__(self, recordings: Recordings) -> None:
        self.recordings = recordings
        self._cache = ResponseCache()
        self._long: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._quick_turns = ConcurrencyLimit(QUICK, QUICK_WAITING)
        self._long_turns = ConcurrencyLimit(LONG, LONG_WAITING)

    @contextmanager
    def apart(self, rec: str | None) -> Iterator[Recording]:
        """A recording opened once more, for work that takes seconds and is not kept. Raises Refusal."""
        with self._long_turns.turn(), self.recordings.named(rec).apart() as recording:
            yield recording

    @contextmanager
    def working(self) -> Iterator[None]:
        """A turn for work that takes seconds. Raises Refusal."""
        with self._long_turns.turn():
            yield

    def answer(
        self,
        request: Request,
        what: str,
        rec: str | None,
        make: Make,
        window: WindowQuestion = WHOLE,
        *,
        samples: bool = False,
    ) -> Response:
        """Made while the recording is held, for what takes a moment; `samples`: it reads all samples of the window, so
        a long one is made apart. Raises Refusal and QuestionError."""
        held = self.recordings.named(rec)
        with self._quick_turns.turn(), held.reading(window.fixed_end_us) as recording:
            chosen = window.choose(recording)
            if not samples or chosen.end_us - chosen.start_us <= LONG_US:
                key = _key(request, held, window)
                made = self._cache.get(key, lambda: Representation.of(what, make(held, recording)))
                return made.response(request)
        return self.long_answer(request, what, rec, make, window)

    def long_answer(
        self, request: Request, what: str, rec: str | None, make: Make, window: WindowQuestion = WHOLE
    ) -> Response:
        """Made apart, one at a time: for what takes seconds, so that the other views do not wait for it."""
        held = self.recordings.named(rec)
        with self._quick_turns.turn(), held.reading(window.fixed_end_us):
            key = _key(request, held, window)
        known = self._cache.known(key)
        if known is not None:
            return known.response(request)

        def made() -> Representation:
            with held.apart() as recording:
                return Representation.of(what, make(held, recording))

        with self._long_turns.turn(), self._long[held.key]:
            return self._cache.get(key, made).response(request)

    def plain(self, request: Request, what: str, document: Any) -> Response:
        """What is true of this machine and this moment."""
        return Representation.of(what, document).response(request)


def _key(request: Request, held: HeldRecording, window: WindowQuestion) -> tuple[Any, ...]:
    """Of what an answer is true: of all time, or as long as nobody looks again.

    What was asked goes into it as a digest, and only by names that the endpoint knows: a client that makes up
    parameters neither fills the cache with its texts nor has the same answer made again for each of them.
    """
    since = -1 if held.settled(window.fixed_end_us) else held.generation
    known = _parameters(request)
    asked = sorted(pair for pair in request.query_params.multi_items() if pair[0] in known)
    path = request.scope.get("path", "")
    digest = hashlib.blake2b(repr((path, asked)).encode("utf-8", "surrogatepass"), digest_size=20).digest()
    return held.key, digest, since


def _parameters(request: Request) -> frozenset[str]:
    """The names of the query parameters that the endpoint of a request declares."""
    route = request.scope["route"]
    found: frozenset[str] | None = getattr(route, "declared_names", None)
    if found is None:
        found = route.declared_names = frozenset(_names(route.dependant))
    return found


def _names(dependant: Any) -> Iterator[str]:
    yield from (field.alias for field in dependant.query_params)
    for each in dependant.dependencies:
        yield from _names(each)


# --- concurrency limit ------------------------------------------------------------------------------------------------
# How much work is done at once: what would wait in a line that is too long is refused at once.
#
# Requests are answered by some forty threads. Without a bound, questions that take seconds would hold all of them, and
# the page itself would wait behind them.


class ConcurrencyLimit:
    """Lets `working` in at a time and `waiting` more stand in line."""

    def __init__(self, working: int, waiting: int) -> None:
        self._places = threading.BoundedSemaphore(working + waiting)
        self._work = threading.BoundedSemaphore(working)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises Refusal when the line is full."""
        if not self._places.acquire(blocking=False):
            raise Refusal(503, "too many requests at once", "ask again in a moment")
        try:
            with self._work:
                yield
        finally:
            self._places.release()
