"""`zombiescope diagnose`: from a dead job to the culprit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.commands import drawing
from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import duration_s, within
from zombiescope.commands.reading import Dirs, Node, node_of, opened, place_of
from zombiescope.commands.window import Window, WindowOptions
from zombiescope.recording import locate

if TYPE_CHECKING:
    from zombiescope.diagnosis.diagnose import Diagnosis
    from zombiescope.diagnosis.workload import WorkloadKind
    from zombiescope.recording.reader import Recording

EXAMPLES = examples(
    "diagnose --last 10m",
    "diagnose --at 12:03:22",
    "diagnose --live 30s",
    "diagnose --ray-job 02000000 --last 6h",
    "diagnose node-a.zscope node-b.zscope",
    "diagnose incident.zscope -o report.html",
    "diagnose --last 1h --json | jq '.incidents[0].causes[0].culprit'",
)

AROUND_US = 60_000_000
"""With --at: a minute before and after, since causes come before what they cause."""

FOUND = 3


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found in one recording; the recording is closed again."""

    found: Diagnosis
    window: Window
    heading: str


def _live_s(text: str) -> float:
    return within(duration_s(text), 2, 600, "2s to 10m")


def command(
    span: WindowOptions,
    directories: Dirs = None,
    live: Annotated[
        float | None,
        typer.Option(
            "--live", parser=_live_s, metavar="DURATION", help="Record this machine for so long, then diagnose it."
        ),
    ] = None,
    ray_job: Annotated[
        str | None,
        typer.Option("--ray-job", metavar="ID", help="What happened to this Ray job: its time and its cores."),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option("--pod", metavar="NAME", help="What happened to this pod (its name or uid): its time and cores."),
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
    node: Node = None,
    json_: Json = False,
) -> int:
    """What happened, who did it, how we know, what else it could have been, and what to do.

    Looks for cores that were lost, tasks that hog the kernel, starved network cards and what the kernel said, and
    explains each with the numbers that prove it.
    """
    _check(fail_on, output, alone=live is None or not (directories or span.given), both=bool(ray_job and pod))
    subject: tuple[WorkloadKind, str] | None = ("Ray job", ray_job) if ray_job else ("pod", pod) if pod else None
    places = [(None, node)] if live is not None else _places(directories or [None], node)
    if output is not None and len(places) > 1:
        raise typer.BadParameter(f"--output: a report is of one node, and here are {len(places)}; choose with --node")
    looked: list[_Looked] = []
    for place, name in places:
        with _recorded(place, name, live) as recording:
            window = _window(span, recording)
            one = _look(recording, window, subject, live=live is not None)
            if one is not None:
                looked.append(one)
                if output is not None:
                    _write(output, recording, one)
    if subject is not None and not looked:
        where = "the recording" if len(places) == 1 else f"any of the {len(places)} recordings"
        raise Failure(
            f"nothing in {where} knows the {subject[0]} {subject[1]}",
            "'zombiescope events' lists what is known; without it, name the time: --from and --to",
        )
    # Only now, when what --live recorded is removed: a reader that goes away (| head) ends this process at once.
    if json_:
        from zombiescope.diagnosis.report.document import together

        print_document("diagnose", together([one.found for one in looked]))
    elif output is None:
        for one in looked:
            show(one.found, one.heading, one.window, verbose=verbose)
    return FOUND if any(_found(one.found, fail_on) for one in looked) else 0


def _check(fail_on: str, output: Path | None, *, alone: bool, both: bool) -> None:
    if fail_on not in ("info", "warning", "critical"):
        raise typer.BadParameter(f"--fail-on {fail_on!r} is none of info, warning, critical")
    if output is not None and output.suffix not in (".html", ".md"):
        raise typer.BadParameter(f"--output {output}: the name must end in .html or .md")
    if not alone:
        raise typer.BadParameter("--live records what it looks at; leave out DIR and the window")
    if both:
        raise typer.BadParameter("--ray-job and --pod: leave out one")


def _window(span: WindowOptions, recording: Recording) -> Window:
    """The window that is meant. Raises Failure where nothing of it was recorded."""
    window = span.choose(recording)
    if span.at is not None:
        window = Window(window.start_us - AROUND_US, window.end_us + AROUND_US, window.zone)
    if window.end_us <= recording.start_us or window.start_us > recording.end_us:
        held = WindowOptions(utc=span.utc).choose(recording).heading()
        raise Failure(f"nothing was recorded in {window.heading()}", f"choose a window of {held}")
    return window


def _places(directories: Sequence[str | None], node: str | None) -> list[tuple[str | None, str | None]]:
    """Every recording that is meant: of a directory with several nodes, all of them."""
    found: list[tuple[str | None, str | None]] = []
    for directory in directories:
        name = node_of(directory, node)
        place = place_of(directory)
        names = locate.nodes_in(place) if name is None and place.is_dir() else []
        found += [(str(place), each) for each in names] if len(names) > 1 else [(directory, name)]
    return found


def _look(
    recording: Recording, window: Window, subject: tuple[WorkloadKind, str] | None, *, live: bool
) -> _Looked | None:
    """None: this recording knows nothing of the job or pod that was asked for."""
    from zombiescope.diagnosis import workload as workloads
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.diagnosis.incident_ids import with_known_ids
    from zombiescope.views.incidents import incidents

    about = None
    if subject is not None:
        about = workloads.find(recording, *subject, window.start_us, window.end_us)
        if about is None:
            return None
        # Causes come before what they cause, and what is told of the end is told after it.
        start, end = max(window.start_us, about.from_us - AROUND_US), min(window.end_us, about.to_us + AROUND_US)
        window = Window(start, end, window.zone)
    found = with_known_ids(diagnose(recording, window.start_us, window.end_us, live=live), incidents(recording))
    heading = f"{recording.name}  {window.heading()}"
    if subject is not None and about is not None:
        found = replace(found, incidents=workloads.only(found, about))
        heading += f"  {subject[0]} {subject[1]}: {about.tasks} tasks on {len(about.cpus)} cores, {about.events} events"
    return _Looked(found, window, heading)


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


def _write(output: Path, recording: Recording, looked: _Looked) -> None:
    found, window, heading = looked.found, looked.window, looked.heading
    if output.suffix == ".html":
        from zombiescope.web import report

        drawing.write_page(output, lambda: report.of_diagnosis(recording, found, heading, window))
        return
    from zombiescope.diagnosis.report.markdown import markdown

    drawing.write(output, markdown(found, heading, lambda at_us: window.clock(at_us, 1)))


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
    from zombiescope._severity import SEVERITIES

    severities = [str(severity) for severity in SEVERITIES]
    return any(severities.index(incident.severity) >= severities.index(fail_on) for incident in found.incidents)
