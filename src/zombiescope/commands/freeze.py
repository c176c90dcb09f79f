"""`zombiescope freeze`: keep a window, whatever retention would do."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from zombiescope.commands.output import Json, console, examples, print_document
from zombiescope.commands.quantities import human_s
from zombiescope.commands.recording_argument import Dir, Node, node_dir, opened
from zombiescope.questions.window import WindowQuestion

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

    Without a window, the last ten minutes.

    Frozen windows may take a quarter of --max-bytes; beyond that the oldest of them go first.
    """
    from zombiescope.recording.freeze import freeze

    with opened(directory, node) as recording:
        window = (question if question.given else replace(question, last="10m")).choose(recording)
    with node_dir(directory, node) as path:
        frozen = freeze(path, window.start_us, window.end_us, why)
    if json_:
        document = {
            "id": frozen.id,
            "from": frozen.from_us / 1e6,
            "to": frozen.to_us / 1e6,
            "why": frozen.why,
        }
        print_document("freeze", document)
    else:
        length = human_s((frozen.to_us - frozen.from_us) / 1e6)
        console().print(f"kept: {window.heading()} ({length}) as {frozen.id}")
