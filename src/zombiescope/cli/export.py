"""`zombiescope export`: samples of a window in the format of another tool."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer

from zombiescope.base import safe_files
from zombiescope.cli import picture, progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, examples, note, print_document
from zombiescope.cli.quantities import human_bytes
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.query.exports.formats import BINARY, EVERY_EVENT, Format, writer
from zombiescope.questions.views import ExportQuestion

EXAMPLES = examples(
    "export --last 5m --format speedscope -o last.speedscope.json",
    "export --at 12:03:22 --format collapsed | flamegraph.pl > x.svg",
    "export --last 1h --format pprof -o cpu.pb.gz  # go tool pprof",
    "export incident.zscope --format perf-script -o incident.perf.gz",
)


def command(
    question: ExportQuestion,
    format_: Annotated[Format, typer.Option("--format", help="The format to write.", show_default=False)],
    directory: Dir = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write this file, compressed if its name ends in .gz; without it, standard output.",
            show_default=False,
        ),
    ] = None,
    bare: Annotated[bool, typer.Option("--bare", help="collapsed: frames only, not the task's name first.")] = False,
    annotate: Annotated[
        bool,
        typer.Option("--annotate", help="collapsed: mark the kernel _[k], generated code _[j], Python _[p]."),
    ] = False,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Write the samples of a window in the format of another tool.

    collapsed and pprof add samples up; all other formats keep the time of every sample.

    Importing such a file again keeps every stack and its count.
    """
    if output is None and json_:
        raise typer.BadParameter("--json describes a file; name it with -o")
    if output is None and format_ in BINARY and sys.stdout.isatty():
        raise Failure(f"{format_} is binary and would garble the terminal", "name a file with -o, or use a pipe")
    with opened(directory, node) as recording:
        from zombiescope.documents.export import answer
        from zombiescope.query.exports.samples import ExportSamples

        found = answer(recording, replace(question, every_event=format_ in EVERY_EVENT))
        samples = ExportSamples(found.selection)
        write = writer(format_, found.title, bare=bare, annotate=annotate, by=question.by)
        if output is None:
            progress.clear()
            write(samples, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        else:
            with _aside(output, compressed=output.suffix == ".gz" and format_ is not Format.PPROF) as file:
                write(samples, file)
    if not samples.count:
        picture.say_empty(found.filters, directory)
    if output is not None:
        size = output.stat().st_size
        if json_:
            facts = {"file": str(output), "format": str(format_), "samples": samples.count, "bytes": size}
            times = {"from": found.window.start_us / 1e6, "to": found.window.end_us / 1e6}
            print_document("export", {"node": samples.name, **times, **facts})
        else:
            note(f"{output}: {samples.count:,} samples, {human_bytes(size)}")


@contextmanager
def _aside(output: Path, *, compressed: bool) -> Iterator[BinaryIO]:
    """The file whole or not at all: it has its name when everything is in it."""
    try:
        with safe_files.output(output) as file:
            if compressed:
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    yield cast("BinaryIO", packed)
            else:
                yield file
    except OSError as error:
        raise Failure(f"{output} could not be written: {error.strerror}") from error
