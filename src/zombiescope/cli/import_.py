"""`zombiescope import`: what others recorded becomes a recording, which every command then reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.import_run import perform, readable
from zombiescope.cli.output import Json, examples

EXAMPLES = examples(
    "import perf.data ./rec",
    "import perf-*.data dmesg.txt mpstat.json cgroups ./rec",
    "import --kallsyms kallsyms perf.data ./rec  # from elsewhere",
    "import stacks.txt.gz ./rec                  # of perf script",
    "import - ./rec < perf.txt",
)

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE... DIR",
        show_default=False,
        help="perf.data, perf script text, collapsed stacks (each also .gz or .zst; - is standard input); together "
        "with them, dmesg or journal text, mpstat -o JSON, docker events, a copy of /proc/cgroups. A folder means "
        "the files in it. DIR is the recording to write or to add to.",
    ),
]
Kallsyms = Annotated[
    Path | None,
    typer.Option("--kallsyms", metavar="FILE", help="A copy of /proc/kallsyms (as root) of the recorded machine."),
]
Symbols = Annotated[
    list[Path] | None,
    typer.Option("--symbols", metavar="DIR", help="Files by build id: a perf archive, ~/.debug. May be repeated."),
]
Inline = Annotated[bool, typer.Option("--inline", help="Show inlined functions of perf.data as frames (slower).")]
Start = Annotated[
    str | None,
    typer.Option("--start", metavar="T", help="When the first sample was taken: an ISO time or Unix seconds."),
]
Node = Annotated[
    str | None,
    typer.Option("--node", metavar="NAME", help="Name of the recorded node. Default: the name in the files."),
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="The format of the files, if it is not recognised."),
]


def command(
    files: Files,
    kallsyms: Kallsyms = None,
    symbols: Symbols = None,
    inline: Inline = False,
    start: Start = None,
    node: Node = None,
    format_: Format = None,
    json_: Json = False,
) -> None:
    """Make a recording from files of other tools.

    Several files become one recording on one time axis. Lines that cannot be read are counted and listed.
    """
    from zombiescope.imports.session import Options

    *names, directory = files
    if not names:
        raise typer.BadParameter("name the files to import, then the directory of the recording: FILE... DIR")
    options = Options(
        kallsyms=readable(kallsyms),
        symbol_dirs=_folders(symbols or ()),
        inline=inline,
        start_us=None if start is None else _start_us(start),
        node=_node_name(node),
        format=_known_format(format_),
    )
    perform(names, directory, options, as_json=json_)


# --- what was typed --------------------------------------------------------------------------------------------------


def _folders(paths: Iterable[Path]) -> tuple[Path, ...]:
    found = tuple(paths)
    for path in found:
        if not path.is_dir():
            raise Failure(f"--symbols {path} is not a directory", "unpack a perf archive first: tar xf FILE -C DIR")
    return found


def _node_name(name: str | None) -> str | None:
    if name is not None and (not name or "/" in name or name.startswith(".")):
        raise typer.BadParameter(f"--node {name!r} cannot be the name of a directory")
    return name


def _known_format(name: str | None) -> Any:
    from zombiescope.imports import inputs as formats

    if name is not None and name not in get_args(formats.FileFormat):
        raise typer.BadParameter(f"--format {name!r} is not known; it is one of {', '.join(formats.FORMATS)}")
    return name


def _start_us(text: str) -> int:
    try:
        return round(float(text) * 1e6)
    except (ValueError, OverflowError):
        pass
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6)
    except (ValueError, OverflowError, OSError) as error:
        raise typer.BadParameter(
            f"--start {text!r} is not a time; write it as 2026-04-01T12:03:22 or as Unix seconds"
        ) from error
