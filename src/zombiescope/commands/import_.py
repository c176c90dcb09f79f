"""`zombiescope import`: what others recorded becomes a recording, which every command then reads."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import human_count, human_s

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from zombiescope.importing.session import Result

EXAMPLES = examples(
    "import perf.data ./rec",
    "import perf-*.data dmesg.txt mpstat.json cgroups ./rec   # one recording",
    "import --kallsyms kallsyms perf.data ./rec   # recorded on another machine",
    "import stacks.txt.gz ./rec                   # text of perf script",
    "import - ./rec < perf.txt",
)

COMPACTED_FROM = 2_000_000
"""More samples than this are made into Parquet at once: a log is quick to write, Parquet is quick to look at."""
_SHOWN = 8

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE... DIR",
        show_default=False,
        help="perf.data, perf script text, collapsed stacks (each also .gz or .zst; - is standard input), and beside "
        "them dmesg or journal text, mpstat -o JSON, a copy of /proc/cgroups. A folder stands for the files in it. "
        "DIR is the recording to write or to add to.",
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
    str | None, typer.Option("--node", metavar="NAME", help="The node it is of. Default: the name in the files.")
]
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="What the files are, where that is not recognised."),
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
    """Make a recording of what others recorded.

    Several files become one recording on one axis of time. What cannot be read is counted and named.
    """
    from zombiescope.importing.session import NotImportedError, Options, Session

    *names, directory = files
    if not names:
        raise typer.BadParameter("name the files to import, then the directory of the recording: FILE... DIR")
    options = Options(
        kallsyms=_readable(kallsyms),
        symbol_dirs=tuple(symbols or ()),
        inline=inline,
        start_us=None if start is None else _start_us(start),
        node=_node_name(node),
        format=_known_format(format_),
    )
    with Bar() as bar:
        try:
            result = Session(_place(directory), options, bar).run(names)
        except NotImportedError as error:
            raise Failure(str(error)) from error
        compacted = result.outcome.samples > COMPACTED_FROM and _compact(result.path, bar)
    for why, count in result.outcome.skipped.most_common() if json_ else ():
        note(f"skipped: {why}" + (f" ({human_count(count)})" if count > 1 else ""))
    if json_:
        print_document("import", _document(result, directory, compacted))
    else:
        _tell(result, directory)
    if not result.outcome.samples and not any(each.rows for each in result.files):
        raise Failure("nothing was imported: no file holds a sample or an event that can be read")


# --- what was typed --------------------------------------------------------------------------------------------------


def _place(directory: str) -> Path:
    path = Path(directory)
    if "://" in directory or (path.exists() and not path.is_dir()):
        raise Failure(f"{directory} is no directory", "the last argument is the recording to write: FILE... DIR")
    return path


def _readable(path: Path | None) -> Path | None:
    if path is not None:
        path.open("rb").close()  # what is wrong with it is best said before an hour of decoding
    return path


def _node_name(name: str | None) -> str | None:
    if name is not None and (not name or "/" in name or name.startswith(".")):
        raise typer.BadParameter(f"--node {name!r} cannot be the name of a directory")
    return name


def _known_format(name: str | None) -> Any:
    from zombiescope.importing import formats

    if name is not None and name not in get_args(formats.Format):
        raise typer.BadParameter(f"--format {name!r} is not known; it is one of {', '.join(formats.FORMATS)}")
    return name


def _start_us(text: str) -> int:
    try:
        return round(float(text) * 1e6)
    except ValueError:
        pass
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6)
    except (ValueError, OverflowError, OSError) as error:
        raise typer.BadParameter(
            f"--start {text!r} is no time; write it as 2026-04-01T12:03:22 or as Unix seconds"
        ) from error


# --- while it runs ---------------------------------------------------------------------------------------------------


class Bar:
    """A bar on stderr, by bytes read, when that is a terminal; rich is loaded only then."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def begin(self, name: str, size: int | None) -> None:
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(Path(name).name, total=size)

    def advance(self, size: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, size)


def _compact(path: Path, bar: Bar) -> bool:
    bar.begin("making Parquet", None)
    from zombiescope.recording.compact import BusyError, compact

    try:
        compact(path)
    except BusyError as error:
        note(f"zombiescope: not made into Parquet: {error}")
        return False
    return True


# --- afterwards ------------------------------------------------------------------------------------------------------


def _document(result: Result, directory: str, compacted: bool) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "recording": directory,
        "node": result.node,
        "from": None if result.from_us is None else result.from_us / 1e6,
        "to": None if result.to_us is None else result.to_us / 1e6,
        "samples": outcome.samples,
        "idle_samples": outcome.idle_samples,
        "stacks": outcome.stacks,
        "events": outcome.events,
        "perf_events": dict(result.perf_events),
        "skipped": [{"why": why, "count": count} for why, count in outcome.skipped.most_common()],
        "notes": list(outcome.notes),
        "files": [
            {"file": each.file, "format": each.format, "samples": each.samples, "rows": each.rows}
            for each in result.files
        ],
        "compacted": compacted,
    }


def _tell(result: Result, directory: str) -> None:
    outcome, screen = result.outcome, console()
    what = [f"{human_count(outcome.samples)} samples"]
    what += [f"{human_count(outcome.idle_samples)} of them idle"] if outcome.idle_samples else []
    what += [f"{human_count(outcome.events)} events"] if outcome.events else []
    screen.print(f"{directory}: node {result.node}, {', '.join(what)}")
    if result.from_us is not None and result.to_us is not None:
        first, last = (datetime.fromtimestamp(at / 1e6).astimezone() for at in (result.from_us, result.to_us))
        screen.print(
            f"from {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S %Z} ({human_s((last - first).total_seconds())})"
        )
    if len(result.perf_events) > 1:
        names = ", ".join(f"{name} ({human_count(count)})" for name, count in result.perf_events.most_common(_SHOWN))
        screen.print(f"perf events: {names}; views show the first unless --event names another")
    for each in result.files if len(result.files) <= _SHOWN else ():
        held = f"{human_count(each.samples)} samples" if each.samples else f"{human_count(each.rows)} rows"
        screen.print(f"  {each.file}: {each.format}, {held}")
    if len(result.files) > _SHOWN:
        screen.print(f"  {len(result.files)} files")
    for sentence in outcome.notes:
        screen.print(sentence)
    for why, count in outcome.skipped.most_common():
        screen.print(f"skipped: {why}" + (f" ({human_count(count)})" if count > 1 else ""))
    if outcome.samples:
        screen.print(f"\nnext: zombiescope heatmap {directory}")
    elif result.files:
        screen.print(f"\nnext: zombiescope info {directory}")
