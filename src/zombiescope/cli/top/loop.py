"""The live loop of `top`: new data, keys and a changed window size each make a new frame."""

from __future__ import annotations

import os
import select
import sys
import termios
import tty
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from zombiescope.cli.top.feed import Feed
from zombiescope.cli.top.screen import View, compose

if TYPE_CHECKING:
    from rich.console import Console


_WAIT_S = 0.25
_NEXT_ORDER = {None: True, True: False, False: None}


@dataclass(slots=True)
class _Choices:
    """What the person at the keyboard wants to see."""

    paused: bool = False
    by_heat: bool | None = None
    help: bool = False

    def press(self, key: str) -> None:
        if key == " ":
            self.paused = not self.paused
        elif key == "s":
            self.by_heat = _NEXT_ORDER[self.by_heat]
        elif key in "?h":
            self.help = not self.help


def picture(view: View, console: Console, lines: int | None = None) -> Text:
    """One frame that fits the console."""
    width, height = console.size
    text = Text("\n", no_wrap=True, overflow="crop").join(compose(view, width, lines or height))
    text.no_wrap, text.overflow = True, "crop"
    return text


def watch(feed: Feed, view: Callable[[], View], console: Console) -> None:
    """Show the feed until `q` or Ctrl-C."""
    choices = _Choices()
    shown = console.size
    with Keyboard() as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
        fresh = True
        while True:
            if not choices.paused:
                fresh |= feed.poll()
            if fresh or console.size != shown:
                shown = console.size
                live.update(picture(_as_chosen(view(), choices), console), refresh=True)
            key = keyboard.key(_WAIT_S)
            if key in ("q", "Q"):
                return
            fresh = key is not None
            if key is not None:
                choices.press(key)


def _as_chosen(view: View, choices: _Choices) -> View:
    state = "paused" if choices.paused else view.state
    return replace(view, by_heat=choices.by_heat, help=choices.help, state=state)


# --- keyboard ---------------------------------------------------------------------------------------------------------
# Single keys from a terminal, without waiting for return.


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
