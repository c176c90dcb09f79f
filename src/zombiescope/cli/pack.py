"""`zombiescope pack`: one portable file of a window."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, print_document
from zombiescope.cli.quantities import human_bytes, human_s
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.window import WindowQuestion

EXAMPLES = examples(
    "pack --from 12:00 --to 12:10 -o incident.zscope",
    "pack --last 30m -o last.zscope && scp last.zscope laptop:",
    "pack --last 30m --redact -o for-a-vendor.zscope",
    "cores incident.zscope     # every command reads it",
)


def command(
    question: WindowQuestion,
    out_path: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write, such as incident.zscope."),
    ],
    directory: Dir = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Replace names of host, containers, pods and images, paths, ids, command lines."),
    ] = False,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Copy a window into one portable file.

    Every command reads it instead of DIR. Without a window: the whole recording.
    """
    if out_path.exists() and not force:
        raise Failure(f"{out_path} exists", "choose another name, or add --force")
    with opened(directory, node) as recording:
        from zombiescope.store.pack import pack

        window = question.choose(recording)
        try:
            size = pack(recording, window.start_us, window.end_us, out_path, redact=redact)
        except ValueError as error:
            raise Failure(str(error)) from error
        except OSError as error:
            why = f"{out_path} could not be written: {error.strerror}"
            raise Failure(why, "name a file that you may write, with -o") from error
    if json_:
        times = {"from": window.start_us / 1e6, "to": window.end_us / 1e6}
        print_document("pack", {"file": str(out_path), "bytes": size, "redacted": redact, **times})
    else:
        length = human_s((window.end_us - window.start_us) / 1e6)
        console().print(f"{out_path}: {human_bytes(size)}, {window.heading()} ({length})")
