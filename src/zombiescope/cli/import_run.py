"""What `zombiescope import` does, once its options are read. Without typer and rich, which take longer to load than a
file of a hundred megabytes takes to be read; the bar loads rich, on a terminal."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.base.text import printable
from zombiescope.cli.failure import Failure
from zombiescope.cli.typed import called

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.progress import Progress, TaskID

    from zombiescope.imports.session import ImportResult, Options

COMPACTED_FROM = 2_000_000
"""More samples than this are made into Parquet at once: a log is quick to write, Parquet is quick to look at."""
_SHOWN = 8


def perform(names: Sequence[str], directory: str, options: Options, *, as_json: bool) -> None:
    """Imports, and prints what came of it. Raises UserError and OSError."""
    from zombiescope.imports.session import Session

    with Bar() as bar:
        result = Session(_place(directory), options, bar).run(names)
        compacted = result.outcome.samples > COMPACTED_FROM and _compact(result.path, bar)
    if as_json:
        document = {"schema": "zombiescope.import/1", **_document(result, directory, compacted)}
        text = json.dumps(document, indent=2 if sys.stdout.isatty() else None, allow_nan=False)
        sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")
        sys.stderr.writelines(f"{printable(line)}\n" for line in _skipped(result))
    else:
        _report(result, directory)
    if result.from_us is None:
        raise Failure(
            "nothing was imported: no file holds a sample or an event that can be read",
            "docs/import.md lists what can be",
        )


def readable(path: Path | None) -> Path | None:
    """The path, if it can be opened. Raises OSError."""
    if path is not None:
        path.open("rb").close()  # what is wrong with it is best said before an hour of decoding
    return path


def _place(directory: str) -> Path:
    path = Path(directory)
    if "://" in directory or (path.exists() and not path.is_dir()):
        raise Failure(f"{directory} is not a directory", "the last argument is the recording to write: FILE... DIR")
    return path


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

    def expect(self, size: int | None) -> None:
        if self._bar is not None:
            self._task = self._bar.add_task("", total=size)

    def begin(self, name: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=Path(name).name)

    def advance(self, size: int) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, size)


def _compact(path: Path, bar: Bar) -> bool:
    bar.begin("making Parquet")
    from zombiescope.store.compact import BusyError, compact

    try:
        compact(path)
    except BusyError as error:
        sys.stderr.write(printable(f"zombiescope: not made into Parquet: {error}") + "\n")
        return False
    return True


# --- afterwards ------------------------------------------------------------------------------------------------------


def _document(result: ImportResult, directory: str, compacted: bool) -> dict[str, Any]:
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


def _skipped(result: ImportResult) -> list[str]:
    found = result.outcome.skipped.most_common()
    return [f"skipped: {why}" + (f" ({count:,})" if count > 1 else "") for why, count in found]


def _report(result: ImportResult, directory: str) -> None:
    outcome = result.outcome
    what = [f"{outcome.samples:,} samples"]
    what += [f"{outcome.idle_samples:,} of them idle"] if outcome.idle_samples else []
    what += [f"{outcome.events:,} events"] if outcome.events else []
    lines = [f"{directory}: node {result.node}, {', '.join(what)}"]
    if result.from_us is not None and result.to_us is not None:
        first, last = (datetime.fromtimestamp(at / 1e6).astimezone() for at in (result.from_us, result.to_us))
        length_s = (last - first).total_seconds()
        lines.append(f"from {first:%Y-%m-%d %H:%M:%S} to {last:%Y-%m-%d %H:%M:%S %Z} ({length_s:,.1f} s)")
    if len(result.perf_events) > 1:
        names = ", ".join(f"{name} ({count:,})" for name, count in result.perf_events.most_common(_SHOWN))
        lines.append(f"perf events: {names}; views show the first unless --event names another")
    if len(result.files) > _SHOWN:
        lines.append(f"  {len(result.files)} files")
    else:
        counted = (
            (each, f"{each.samples:,} samples" if each.samples else f"{each.rows:,} rows") for each in result.files
        )
        lines += [f"  {each.file}: {each.format}, {count}" for each, count in counted]
    lines += [*outcome.notes, *_skipped(result)]
    if result.from_us is not None:
        lines += ["", f"next: {called()} {'diagnose' if outcome.samples else 'info'} {shlex.quote(directory)}"]
    _print(lines)


def _print(lines: list[str]) -> None:
    import textwrap

    width = os.get_terminal_size(sys.stdout.fileno()).columns or 80 if sys.stdout.isatty() else 100_000
    for line in lines:
        sys.stdout.write("\n".join(textwrap.wrap(printable(line), width, subsequent_indent="  ")) + "\n")
