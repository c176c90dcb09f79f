"""`zombiescope mcp`: read-only tools for assistants over stdio."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zombiescope.cli.output import examples
from zombiescope.cli.recording_argument import Dirs, Node, node_of, place_of
from zombiescope.cli.serve import refuse_unreadable

EXAMPLES = examples(
    "mcp                         # what is recorded here",
    "mcp incident.zscope",
    "mcp node-a.zscope node-b.zscope",
    "mcp --fleet s3://recordings/prod",
)


def command(
    directories: Dirs = None,
    node: Node = None,
    fleet: Annotated[
        str | None,
        typer.Option(
            "--fleet",
            metavar="ROOT",
            help="Also answer about a fleet: a directory or object-store address with node=NAME directories.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve read-only tools to assistants, over the Model Context Protocol.

    An assistant starts this command and asks on its standard input: incidents, cores, stacks, events, and whether a
    claim is true. Every answer has at most 2,000 tokens. Nothing is changed and nothing is sent anywhere else.
    """
    from zombiescope.assistant.server import serve_stdio  # first: without the extra, nothing else matters
    from zombiescope.web.recordings import Place, Recordings

    chosen: list[str] | list[None] = directories or ([] if fleet is not None else [None])
    places = [(place_of(each), node_of(each, node)) for each in chosen]
    for place, name in places:
        refuse_unreadable(place, name)
    root = None
    if fleet is not None:
        from zombiescope.web.fleet import FleetRoot

        root = FleetRoot(fleet)
    recordings = Recordings([Place(Path(place), name) for place, name in places], root)
    try:
        serve_stdio(recordings)
    finally:
        recordings.close()
