"""`zombiescope diagnose`: from a dead job to the culprit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands import drawing
from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import duration_s, within
from zombiescope.commands.reading import Dir, Node, opened
from zombiescope.commands.window import At, From, Last, To, Utc, Window, choose

if TYPE_CHECKING:
    from zombiescope.diagnosis.diagnose import Diagnosis
    from zombiescope.recording.reader import Recording

EXAMPLES = examples(
    "diagnose --last 10m",
    "diagnose --at 12:03:22",
    "diagnose --live 30s",
    "diagnose incident.zscope -o report.html",
    "diagnose --last 1h --json | jq '.incidents[0].causes[0].culprit'",
)

AROUND_US = 60_000_000
"""With --at: a minute before and after, since causes come before what they cause."""

FOUND = 3


def _live_s(text: str) -> float:
    return within(duration_s(text), 2, 600, "2s to 10m")


def command(
    directory: Dir = None,
    live: Annotated[
        float | None,
        typer.Option(
            "--live", parser=_live_s, metavar="DURATION", help="Record this machine for so long, then diagnose it."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write a report: FILE.html or FILE.md.", show_default=False
        ),
    ] = None,
    fail_on: Annotated[
        str, typer.Option("--fail-on", metavar="SEVERITY", help="Exit with 3 from this on: info, warning, critical.")
    ] = "warning",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Everything that was ruled out.")] = False,
    last: Last = None,
    from_: From = None,
    to: To = None,
    at: At = None,
    utc: Utc = False,
    node: Node = None,
    json_: Json = False,
) -> int:
    """What happened, who did it, how we know, what else it could have been, and what to do.

    Looks for cores that were lost, tasks that hog the kernel, starved network cards and what the kernel said, and
    explains each with the numbers that prove it.
    """
    if fail_on not in ("info", "warning", "critical"):
        raise typer.BadParameter(f"--fail-on {fail_on!r} is none of info, warning, critical")
    if output is not None and output.suffix not in (".html", ".md"):
        raise typer.BadParameter(f"--output {output}: the name must end in .html or .md")
    if live is not None and (directory or last or from_ or to or at):
        raise typer.BadParameter("--live records what it looks at; leave out DIR and the window")
    with _recorded(directory, node, live) as recording:
        from zombiescope.diagnosis.diagnose import diagnose

        window = choose(recording, last, from_, to, at, utc)
        if at is not None:
            window = Window(window.start_us - AROUND_US, window.end_us + AROUND_US, window.zone)
        if window.end_us <= recording.start_us or window.start_us > recording.end_us:
            held = choose(recording, utc=utc).heading()
            raise Failure(f"nothing was recorded in {window.heading()}", f"choose a window of {held}")
        found = diagnose(recording, window.start_us, window.end_us, live=live is not None)
        if output is not None:
            drawing.write(output, _report(output.suffix, recording, found, window))
        heading = f"{recording.name}  {window.heading()}"
    # Only now, when what --live recorded is removed: a reader that goes away (| head) ends this process at once.
    if json_:
        from zombiescope.diagnosis.report.document import document

        print_document("diagnose", document(found))
    elif output is None:
        show(found, heading, window, verbose=verbose)
    return FOUND if _found(found, fail_on) else 0


@contextmanager
def _recorded(directory: str | None, node: str | None, live_s: float | None) -> Iterator[Recording]:
    """The recording that is named, or one that is made now."""
    if live_s is None:
        with opened(directory, node) as recording:
            yield recording
        return
    from zombiescope.commands.private import private_recorder
    from zombiescope.recording.reader import open_recording

    with private_recorder("diagnose", for_s=live_s) as recorder:
        note(f"recording this machine for {live_s:g} s")
        while not recorder.ended():
            time.sleep(0.1)
        with open_recording(recorder.home) as recording:
            yield recording


def _report(kind: str, recording: Recording, found: Diagnosis, window: Window) -> str:
    heading = f"{recording.name}  {window.heading()}"
    if kind == ".html":
        from zombiescope.diagnosis.report import html

        return html.page(recording, found, heading, html.Looks(lambda at_us: window.clock(at_us, 1), window.zone))
    from zombiescope.diagnosis.report.markdown import markdown

    return markdown(found, heading, lambda at_us: window.clock(at_us, 1))


def show(found: Diagnosis, heading: str, window: Window, *, verbose: bool = False) -> None:
    """For a person."""
    from rich.text import Text

    from zombiescope.diagnosis.report.terminal import lines

    out = console()
    out.print(heading, style="bold")
    out.print()
    for line in lines(found, lambda at_us: window.clock(at_us, 1), wordy=verbose):
        head, rest = Text.assemble(*line.head), Text.assemble(*line.text)
        if line.whole:
            out.print(head + rest, soft_wrap=True)
            continue
        room = max(out.width - head.cell_len, 20)
        for number, part in enumerate(rest.wrap(out, room) if line.text else [rest]):
            part.rstrip()
            out.print(head + part if number == 0 else Text.assemble(*line.below(head.cell_len)) + part)


def _found(found: Diagnosis, fail_on: str) -> bool:
    from zombiescope.diagnosis.incident import SEVERITIES

    severities = [str(severity) for severity in SEVERITIES]
    return any(severities.index(incident.severity) >= severities.index(fail_on) for incident in found.incidents)
