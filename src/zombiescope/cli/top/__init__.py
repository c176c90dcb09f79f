"""`zombiescope top`: the node live, core by core.

feed.py      data from a recording that grows, or that ended
screen.py    a frame as lines of text: title, average against hottest core, cores
panels.py    what stands below the cores
strips.py    cores as block characters
loop.py      new data, keys, resizes
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli.output import console, examples
from zombiescope.cli.recording_argument import Dir, Node, node_of, opened, place_of
from zombiescope.cli.window import Utc
from zombiescope.store import locate

if TYPE_CHECKING:
    from zombiescope.cli.top.feed import Feed
    from zombiescope.cli.top.screen import View

EXAMPLES = examples(
    "top               # the recorder running here, or a private one",
    "top ./rec         # another recording, or the end of it",
    "top --once        # one frame, for a script or a bug report",
)

_FIRST_TICKS_S = 10.0
_PRIVATE_KEEP_S = 900.0
_PRIVATE_LONGEST_S = 12 * 3600.0


def command(
    directory: Dir = None,
    once: Annotated[
        bool, typer.Option("--once", help="Print one frame and exit; the default if stdout is not a terminal.")
    ] = False,
    utc: Utc = False,
    node: Node = None,
) -> None:
    """Watch this node live, core by core.

    A strip per core, the average next to the hottest, zombies, the worst second so far, events.

    Keys: q quits, space pauses, s changes the order of cores, ? explains the picture.
    """
    try:
        with _feed(directory, node) as (feed, note):
            if once or not (sys.stdout.isatty() and sys.stdin.isatty()):
                _print_once(feed, note, utc)
            else:
                from zombiescope.cli.top.loop import watch

                watch(feed, lambda: _view(feed, note, utc), console())
    except KeyboardInterrupt:
        return


@contextmanager
def _feed(directory: str | None, node: str | None) -> Iterator[tuple[Feed, str | None]]:
    """The data to show, and what has to be said about where it comes from."""
    from zombiescope.cli.top.feed import LiveFeed, PastFeed

    with _place(directory) as (place, note):
        node_dir = _live_node(place, node_of(directory, node))
        if node_dir is not None:
            feed = LiveFeed(node_dir)
            try:
                yield feed, note
            finally:
                feed.close()
            return
        with opened(str(place), node) as recording:
            past = PastFeed(recording)
        yield past, note


@contextmanager
def _place(directory: str | None) -> Iterator[tuple[Path, str | None]]:
    import os

    if directory is not None or "ZOMBIESCOPE_DIR" in os.environ or locate.running_recorder() is not None:
        yield place_of(directory), None
        return
    from zombiescope.cli.private_recorder import private_recorder

    with private_recorder("top", keep_s=_PRIVATE_KEEP_S, for_s=_PRIVATE_LONGEST_S, segment_s=60.0) as recorder:
        yield recorder.home, "private: gone when top ends"


def _live_node(place: Path, node: str | None) -> Path | None:
    """The directory of the node if a recorder writes it now."""
    names = [node] if node is not None else locate.nodes_in(place)
    live = [place / f"node={name}" for name in names if locate.is_locked(place / f"node={name}") is not False]
    return live[0] if len(live) == 1 else None


def _view(feed: Feed, note: str | None, utc: bool) -> View:
    from zombiescope.cli.top.screen import View
    from zombiescope.cli.window import zone_of

    zone = zone_of(feed.node, utc)
    return View(feed.node, feed.recent, zone, feed.state(), note, feed.worst, feed.zombies, feed.ran)


def _print_once(feed: Feed, note: str | None, utc: bool) -> None:
    from zombiescope.cli.top.loop import picture

    deadline = time.monotonic() + _FIRST_TICKS_S
    feed.poll()
    while len(feed.recent.ticks) < 2 and feed.state() == "live" and time.monotonic() < deadline:
        time.sleep(0.1)
        feed.poll()
    out = console()
    out.print(picture(_view(feed, note, utc), out, out.height - 1))
