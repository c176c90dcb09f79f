"""How far a long piece of work has got, told to whoever supervises it.

Reading a table, judging a pattern, writing a file are steps. A supervisor that hears of no step for seconds knows that
the work hangs, long before a limit of CPU time ends it. Nobody listens unless `tell` was called; a step costs a call
then, and a write at most twice a second otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable

EVERY_S = 0.5

_listener: Callable[[str], None] | None = None
_next_s = 0.0


def tell(listener: Callable[[str], None] | None) -> None:
    """From here on every step is told to that one, though not more often than EVERY_S."""
    global _listener, _next_s
    _listener, _next_s = listener, 0.0


def step(what: str) -> None:
    """The work got on; `what` comes next."""
    global _next_s
    if _listener is None:
        return
    now_s = time.monotonic()
    if now_s >= _next_s:
        _next_s = now_s + EVERY_S
        _listener(what)
