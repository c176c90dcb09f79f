"""How much work is done at once: what would wait in a line that is too long is refused at once.

Requests are answered by some forty threads. Without a bound, questions that take seconds would hold all of them, and
the page itself would wait behind them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from zombiescope.web.refusal import Refusal


class Turnstile:
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
