"""What a person sees while a command works: one line on stderr, from the second second on, gone when there is output.

It moves, so that nobody takes a long read for a hang; where it is known how much there is to do, it is a bar. A pipe, a
journal and a terminal that cannot move its cursor get nothing. Commands do not end it: whatever prints (output.py)
calls `clear` first, and so does the end of the work.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from zombiescope.base.text import printable

AFTER_S = 1.0
_EVERY_S = 0.2
_BAR = 24
_TURNING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ERASE = "\r\x1b[K"


class _Line:
    """The line of one piece of work, drawn by a thread of its own."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.done = self.of = 0
        self._began_s = time.monotonic()
        self._over = threading.Event()
        self._drawing = threading.Lock()
        self._is_drawn = False
        self._thread = threading.Thread(target=self._draw, daemon=True)
        self._thread.start()

    def end(self) -> None:
        with self._drawing:
            if not self._over.is_set() and self._is_drawn:
                _write(_ERASE)
            self._over.set()

    def _draw(self) -> None:
        if self._over.wait(AFTER_S):
            return
        turn = 0
        while not self._over.wait(_EVERY_S):
            with self._drawing:
                if not self._over.is_set():
                    _write(_ERASE + self._shown(_TURNING[turn % len(_TURNING)]))
                    self._is_drawn = True
            turn += 1

    def _shown(self, turning: str) -> str:
        seconds = f"{time.monotonic() - self._began_s:.0f} s"
        bar = f"{_bar(self.done / self.of)} {self.done:,} of {self.of:,}  {seconds}" if self.of > 1 else seconds
        room = max(10, _width() - len(bar) - 5)
        text = printable(self.text)
        return f"{turning} {text if len(text) <= room else f'{text[: room - 1]}…'}  {bar}"


_current: _Line | None = None


@contextmanager
def shown(text: str) -> Iterator[None]:
    """While this is entered, and until something is printed. Work inside of it may have a text of its own."""
    global _current
    outer = _current
    if not _is_for_a_person():
        yield
        return
    if outer is not None:
        outer.end()
    mine = _current = _Line(text)
    try:
        yield
    finally:
        if _current is mine:
            _current = None
        mine.end()


def update(done: int, of: int, text: str | None = None) -> None:
    """How far it is."""
    if _current is not None:
        _current.done, _current.of = done, of
        _current.text = text or _current.text


def clear() -> None:
    """Somebody is about to print."""
    global _current
    if _current is not None:
        _current.end()
        _current = None


def _is_for_a_person() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def _bar(ratio: float) -> str:
    full = round(_BAR * min(max(ratio, 0.0), 1.0))
    return "━" * full + "╌" * (_BAR - full)


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _write(text: str) -> None:
    with suppress(OSError, ValueError, UnicodeError):
        sys.stderr.write(text)
        sys.stderr.flush()
