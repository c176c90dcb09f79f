"""Single keys from a terminal, without waiting for return."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from types import TracebackType


class Keyboard:
    """The terminal gives keys as they are pressed while this is entered; it is put back as it was
    afterwards."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._fd)

    def __enter__(self) -> Keyboard:
        tty.setcbreak(self._fd)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def key(self, within_s: float) -> str | None:
        """The next key, or None when none comes in time. The end of input is "q"."""
        readable, _, _ = select.select([self._fd], [], [], within_s)
        if not readable:
            return None
        pressed = os.read(self._fd, 64)
        # An arrow or function key comes as an escape sequence; it is no key of ours, and its letters are none
        # either.
        return pressed.decode("ascii", "replace")[0] if pressed else "q"
