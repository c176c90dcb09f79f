"""`zombiescope diagnose`: from a dead job to the culprit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli import picture, progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, command_line, console, examples, note, print_document
from zombiescope.cli.quantities import duration_s, within
from zombiescope.cli.recording_argument import Dirs, Node, node_of, opened, place_of
from zombiescope.cli.severity import FOUND, FailOnRequest
from zombiescope.cli.typed import as_typed
from zombiescope.questions.views import DiagnoseQuestion
from zombiescope.questions.window import WindowQuestion
from zombiescope.store import locate

if TYPE_CHECKING:
    from zombiescope.documents.incidents import DiagnosisAnswer
    from zombiescope.store.reader import Recording

EXAMPLES = examples(
    "diagnose --last 10m",
    "diagnose --at 12:03:22",
    "diagnose --live 30s",
    "diagnose --incident 457ef009e0",
    "diagnose --ray-job 02000000 --last 6h",
    "diagnose --job slurm/4711.0   # which rank was late, and why",
    "diagnose node-a.zscope node-b.zscope",
    "diagnose incident.zscope -o report.html",
    "diagnose --last 1h --json | jq '.incidents[0].causes[0].culprit'",
)


def _live_s(text: str) -> float:
    return within(duration_s(text), 2, 600, "2s to 10m")


def command(
    question: DiagnoseQuestion,
    directories: Dirs = None,
    live: Annotated[
        float | None,
        typer.Option(
            "--live", parser=_live_s, metavar="DURATION", help="Record this machine for this long, then diagnose it."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write a report: FILE.html or FILE.md.", show_default=False
        ),
    ] = None,
    fail_on: FailOnRequest = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show the whole plan, all evidence, and everything that was ruled out."),
    ] = False,
    for_llm: Annotated[
        bool,
        typer.Option(
            "--for-llm",
            help="Print a JSON document of at most 2,000 tokens for an assistant: facts with ids and times, what was "
            "ruled out, what was not measured, and what to ask next.",
        ),
    ] = False,
    node: Node = None,
    json_: Json = False,
) -> int:
    """Explain what happened, who caused it and how to fix it, with evidence.

    Detects starved cores, tasks that keep the kernel busy, starved network cards and kernel messages, and names the
    cause, the process and the culprit. Each fact has its number, time and source; causes that were ruled out are
    listed.

    --at T examines one minute on each side of T.
    """
    _check(question, output, alone=live is None or not (directories or question.window.given))
    places = [(None, node)] if live is not None else _places(directories or [None], node)
    if output is not None and len(places) > 1:
        raise typer.BadParameter(f"--output: a report is of one node, and here are {len(places)}; choose with --node")
    found: list[DiagnosisAnswer] = []
    for place, name in places:
        with _recorded(place, name, live) as recording:
            from zombiescope.documents.incidents import answer, together

            _require_recorded(recording, question)
            with progress.shown("looking for what went wrong"):
                one = answer(recording, question, live=live is not None, progress=_looked_at)
            if one is not None:
                found.append(one)
                if output is not None:
                    _write(output, recording, one)
    if question.incident is not None and not found:
        raise Failure(
            f"no incident, or more than one, has an id that starts with {question.incident}",
            f"'{command_line('diagnose', places[0][0])}' lists them",
        )
    if question.subject is not None and not found:
        where = "the recording" if len(places) == 1 else f"any of the {len(places)} recordings"
        raise Failure(
            f"nothing in {where} knows the {' '.join(question.subject)}",
            f"'{command_line('events', places[0][0])}' lists what is known; without it, name the time: --from and --to",
        )
    # Only now, when what --live recorded is removed: a reader that goes away (| head) ends this process at once.
    if json_:
        print_document("diagnose", together(found))
    elif for_llm:
        from zombiescope.assistant.answers import digest
        from zombiescope.assistant.fact import written

        typer.echo(written(digest(together(found)).document()))
    elif output is None:
        for one in found:
            show(one, verbose=verbose)
    return FOUND if fail_on is not None and any(one.at_least(fail_on) for one in found) else 0


def _check(question: DiagnoseQuestion, output: Path | None, *, alone: bool) -> None:
    if output is not None and output.suffix not in (".html", ".md"):
        raise typer.BadParameter(f"--output {output}: the name must end in .html or .md")
    if not alone:
        raise typer.BadParameter("--live records what it looks at; leave out DIR and the window")
    named = (question.ray_job, question.pod, question.job, question.slurm_job, question.incident)
    if sum(1 for one in named if one) > 1:
        raise typer.BadParameter("--job, --slurm-job, --ray-job, --pod and --incident: give one of them")


def _require_recorded(recording: Recording, question: DiagnoseQuestion) -> None:
    """Raises Failure where nothing of the window was recorded."""
    from zombiescope.documents.incidents import window_of

    window = window_of(recording, question)
    if window.end_us <= recording.start_us or window.start_us > recording.end_us:
        held = WindowQuestion(utc=question.window.utc).choose(recording).heading()
        raise Failure(f"nothing was recorded in {window.heading()}", f"choose a window of {held}")


def _places(directories: Sequence[str | None], node: str | None) -> list[tuple[str | None, str | None]]:
    """Every recording that is meant: of a directory with several nodes, all of them."""
    found: list[tuple[str | None, str | None]] = []
    for directory in directories:
        name = node_of(directory, node)
        place = place_of(directory)
        names = locate.nodes_in(place) if name is None and place.is_dir() else []
        found += [(str(place), each) for each in names] if len(names) > 1 else [(directory, name)]
    return found


@contextmanager
def _recorded(directory: str | None, node: str | None, live_s: float | None) -> Iterator[Recording]:
    """The recording that is named, or one that is made now."""
    if live_s is None:
        with opened(directory, node) as recording:
            yield recording
        return
    from zombiescope.cli.private_recorder import private_recorder
    from zombiescope.store.reader import open_recording

    with private_recorder("diagnose", for_s=live_s) as recorder:
        note(f"recording this machine for {live_s:g} s")
        begun_s = time.monotonic()
        with progress.shown("recording this machine"):
            while not recorder.ended():
                progress.update(min(round(time.monotonic() - begun_s), round(live_s)), round(live_s))
                time.sleep(0.1)
        with open_recording(recorder.home, temporary=True) as recording:
            yield recording


def _looked_at(done: int, of: int) -> None:
    progress.update(done, of, "looking at suspicious moments" if of > 1 else None)


def _write(output: Path, recording: Recording, one: DiagnosisAnswer) -> None:
    found, window, heading = one.found, one.window, one.heading
    if output.suffix == ".html":
        from zombiescope.web import report

        picture.write_page(output, lambda: report.of_diagnosis(recording, found, heading, window))
        return
    from zombiescope.diagnosis.report.markdown import markdown

    picture.write(output, markdown(found, heading, lambda at_us: window.clock(at_us, 1)))


def show(answer: DiagnosisAnswer, *, verbose: bool = False) -> None:
    """For a person."""
    from rich.text import Text

    from zombiescope.cli.terminal import one_line
    from zombiescope.diagnosis.report.terminal import lines

    out = console()
    out.print(answer.heading, style="bold")
    if answer.job is not None:
        out.print(one_line(Text(f"{answer.job.text}.")), soft_wrap=True)
    out.print()
    for line in lines(answer.found, lambda at_us: answer.window.clock(at_us, 1), wordy=verbose):
        pieces = [(as_typed(text), style) for text, style in line.text] if line.whole else line.text
        head, rest = (one_line(Text.assemble(*part)) for part in (line.head, pieces))
        if line.whole:
            out.print(head + rest, soft_wrap=True)
            continue
        margin = max(out.width, 2 * head.cell_len)
        tail = Text(line.tail, style="dim")
        room = max(margin - head.cell_len - (tail.cell_len + 2 if line.tail else 0), 20)
        for number, part in enumerate(rest.wrap(out, room) if line.text else [rest]):
            part.rstrip()
            if number == 0 and line.tail:
                part.pad_right(room + 2 - part.cell_len)
                part += tail
            out.print(head + part if number == 0 else Text(" " * head.cell_len) + part)
