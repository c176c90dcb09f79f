"""`zombiescope freeze`: keep a window, whatever retention would do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, print_document
from zombiescope.cli.quantities import human_s
from zombiescope.cli.recording_argument import Dir, Node, node_dir, opened
from zombiescope.questions.window import Window, WindowQuestion, held

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

TICK_US = 2_000_000
"""What a window may be longer by than what was recorded of it, and still be all of it."""

EXAMPLES = examples(
    "freeze                   # the last ten minutes",
    'freeze --from 12:00 --to 12:10 --why "nic reset"',
    "freeze --last 30m --json",
)


def command(
    question: WindowQuestion,
    directory: Dir = None,
    why: Annotated[str, typer.Option("--why", metavar="TEXT", help="A note to keep with the window.")] = "by hand",
    node: Node = None,
    json_: Json = False,
) -> None:
    """Exempt a window from retention, now.

    Without a window: the last ten minutes.

    The answer says which part of the window was recorded.

    Frozen windows can use a quarter of --max-bytes; beyond that the oldest are deleted.
    """
    from zombiescope.store.freeze import freeze

    with opened(directory, node) as recording:
        window = (question if question.given else replace(question, last="10m")).choose(recording)
        kept = recorded_in(recording, window)
        if kept is None:
            what = f"nothing was recorded in {window.heading()}"
            raise Failure(what, f"choose a window of {held(recording, question.utc)}")
    with node_dir(directory, node) as path:
        frozen = freeze(path, window.start_us, window.end_us, why)
    if json_:
        document = {
            "id": frozen.id,
            "from": frozen.from_us / 1e6,
            "to": frozen.to_us / 1e6,
            "why": frozen.why,
            "kept_from": kept.start_us / 1e6,
            "kept_to": kept.end_us / 1e6,
        }
        print_document("freeze", document)
    else:
        asked_us, kept_us = (each.end_us - each.start_us for each in (window, kept))
        part = "" if asked_us - kept_us < TICK_US else f" of the {human_s(asked_us / 1e6)} asked for"
        console().print(f"kept: {kept.heading()} ({human_s(kept_us / 1e6)}{part}) as {frozen.id}")


def recorded_in(recording: Recording, window: Window) -> Window | None:
    """From the first to the last moment of a window at which something was recorded; None where nothing was."""
    spans = [span for part in recording.parts if part.start_us < window.end_us for span in part.spans()]
    inside = [span for span in spans if span.from_us < window.end_us and span.to_us >= window.start_us]
    if not inside:
        return None
    start_us = max(window.start_us, min(span.from_us for span in inside))
    end_us = min(window.end_us, max(span.to_us for span in inside) + 1)
    return replace(window, start_us=start_us, end_us=end_us)
