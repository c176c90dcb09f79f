"""`zombiescope up`: the one command to start with: the recorder in the foreground, and a doctor beside it."""

from __future__ import annotations

from typing import Annotated

import typer

from zombiescope.commands import record
from zombiescope.commands.failure import Failure
from zombiescope.commands.output import examples, note
from zombiescope.commands.quantities import human_bytes, human_s
from zombiescope.recording import locate

EXAMPLES = examples(
    "up                # then, in another terminal: zombiescope top",
    "up /data/flight   # into a directory of your choice",
)


def command(
    directory: record.Dir = None,
    open_: Annotated[  # noqa: ARG001  scripts written today must run when there is a page
        bool, typer.Option("--open", help="Accepted, and without effect until there is a web page to open.")
    ] = False,
) -> None:
    """Record this node, diagnose it meanwhile, and say how to look at it.

    When a core is lost, a task hogs the kernel or the kernel complains, that is diagnosed within seconds and told here.

    It keeps the last twelve hours, at most 2 GB. Ctrl-C stops it.
    """
    if recorder := locate.running_recorder():
        raise Failure(
            f"a recorder (pid {recorder.pid}) already records this node into {recorder.recording}",
            "watch it with 'zombiescope top', or stop it first",
        )
    config = record.configuration(dir=record.writable_dir(directory), diagnose=True)
    note(f"The last {human_s(config['keep_s'])} are kept, at most {human_bytes(config['max_bytes'])}.")
    note("In another terminal: 'zombiescope top' shows it live, 'zombiescope cores --last 5m' the past.")
    note("Ctrl-C stops it.")
    record.become_recorder(config)
