"""The live loop of `top`: new data, keys and a changed window size each make a new frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.live import Live
from rich.text import Text

from zombiescope.cli.top.feed import Feed
from zombiescope.cli.top.keyboard import Keyboard
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
