"""The options that choose a window of a recording, the same on every command that reads one.

How a moment T is written stands in documents/window.py. `--utc` reads and prints times in UTC instead of the node's
zone. `--at T` is the second that begins at T, or one tick where the recorder's ticks are longer than a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import tzinfo
from typing import Annotated

import typer

from zombiescope.commands.groups import OptionGroup
from zombiescope.commands.usage import wrong_usage
from zombiescope.documents import window
from zombiescope.documents.window import Span, Window, clock, zone_of

__all__ = ["Span", "Utc", "Window", "WindowOptions", "choose", "clock", "moment", "zone_of"]

_PANEL = "Window"

Last = Annotated[
    str | None,
    typer.Option(
        "--last",
        metavar="DURATION",
        help="The last 30s, 5m, 2h ... of the recording.",
        rich_help_panel=_PANEL,
    ),
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="T",
        help="From 12:03:22, an ISO time, Unix seconds, or +30s after the start.",
        rich_help_panel=_PANEL,
    ),
]
To = Annotated[str | None, typer.Option("--to", metavar="T", help="Up to T, written likewise.", rich_help_panel=_PANEL)]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="T", help="The one second (or tick, if longer) at T.", rich_help_panel=_PANEL),
]
Utc = Annotated[
    bool,
    typer.Option("--utc", help="Read and print times in UTC, not in the node's zone.", rich_help_panel=_PANEL),
]


@dataclass(frozen=True)
class WindowOptions(OptionGroup):
    """The options that choose a window, as they were typed."""

    last: Last = None
    from_: From = None
    to: To = None
    at: At = None
    utc: Utc = False

    @property
    def given(self) -> bool:
        """Whether any of them says which window."""
        return any(part is not None for part in (self.last, self.from_, self.to, self.at))

    def choose(self, span: Span) -> Window:
        """The window that they mean; all of the recording without any. Raises typer.BadParameter."""
        return choose(span, self.last, self.from_, self.to, self.at, self.utc)


def choose(
    span: Span,
    last: str | None = None,
    from_: str | None = None,
    to: str | None = None,
    at: str | None = None,
    utc: bool = False,
) -> Window:
    """The window that the options mean; all of the recording without any. Raises typer.BadParameter."""
    with wrong_usage():
        return window.choose(span, last, from_, to, at, utc)


def moment(text: str, span: Span, zone: tzinfo, option: str) -> int:
    """Unix microseconds of a moment as a person writes it. Raises typer.BadParameter."""
    with wrong_usage():
        return window.moment(text, span, zone, option)
