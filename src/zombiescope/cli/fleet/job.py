"""`zombiescope fleet job`: one distributed job over all nodes, and which rank held the others up."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zombiescope.cli import progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import AnswerTable, Json, console, examples, print_document
from zombiescope.cli.recording_argument import opened
from zombiescope.questions.window import WindowQuestion

if TYPE_CHECKING:
    from zombiescope.imports.flight_recorder import Behind
    from zombiescope.query.job_report import JobReport, LateRank, NodeJob

EXAMPLES = examples(
    "fleet job ./fleet --job 4711.0                # a Slurm job and step",
    "fleet job ./fleet --job Job/train --last 10m",
    "fleet job ./fleet --job 4711.0 --dumps /tmp/nccl_trace_rank_0 --dumps dumps/",
    "fleet job s3://recordings/prod --job llama-7 --json | jq '.late'",
)
AROUND_US = 30_000_000
MOST_DIAGNOSED = 4
_RANKS = 20


def command(
    root: Annotated[
        str,
        typer.Argument(
            metavar="ROOT", help="A directory or object-store address (s3://bucket/prefix) with node=NAME directories."
        ),
    ],
    job: Annotated[
        str, typer.Option("--job", metavar="ID", help="As gpu and diagnose name it: slurm/4711.0, 4711.0, Job/train.")
    ],
    last: Annotated[
        str | None, typer.Option("--last", metavar="DURATION", help="The last 10m, 1h ... of each node.")
    ] = None,
    start: Annotated[str | None, typer.Option("--from", metavar="T", help="From T: ISO or Unix seconds.")] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="T", help="Up to T.")] = None,
    dumps: Annotated[
        list[Path] | None,
        typer.Option(
            "--dumps", metavar="PATH", help="Dumps of PyTorch's flight recorder: NAME_RANK files, or their directory."
        ),
    ] = None,
    why: Annotated[bool, typer.Option("--why/--no-why", help="Diagnose the nodes of late ranks as well.")] = True,
    json_: Json = False,
) -> None:
    """Find the rank of a job that held the others up, over all nodes.

    Ranks of all nodes are put on one axis: they leave each collective together, which also tells how far the clocks of
    the nodes are apart. The node of a late rank is then diagnosed at that time.
    """
    question = WindowQuestion(last=last, from_=start, to=end)
    behind = _behind(dumps or [])
    found = _read(root, job, question)
    from zombiescope.query.job_report import is_local, together

    if not found:
        raise Failure(f"no node under {root} knows the job {job}", "'zombiescope gpu DIR' names the jobs of a node")
    if len({one.node for one in found}) > 1 and any(is_local(one.job) for one in found):
        raise Failure(
            f"the name {found[0].job.id} means another job on each node", "name a node: diagnose DIR --node N --job ID"
        )
    made = together(found)
    causes = {number: _why(root, one) for number, one in enumerate(made.late[:MOST_DIAGNOSED])} if why else {}
    if json_:
        from zombiescope.model.answer import document

        said = document(made)
        for number, late in enumerate(said["late"]):
            late["causes"] = causes.get(number, [])
        said["flight_recorder"] = [asdict(one) for one in behind]
        print_document("fleet.job", said)
        return
    _print(made, causes)
    for one in behind:
        at = (
            "there is no dump of it"
            if one.at is None
            else f"its last is {one.at.name} {one.at.sequence}, {one.at.place}"
        )
        call = f"{one.others.name} {one.others.sequence} of group {one.others.group}"
        console().print(f"rank {one.rank} did not come to {call}, in which {one.waiting} wait: {at}", style="bold red")


def _read(root: str, job: str, question: WindowQuestion) -> list[NodeJob]:
    from zombiescope.query.job_report import of_node

    names = _nodes(root)
    found: list[NodeJob] = []
    with progress.shown("reading the nodes"):
        for done, name in enumerate(names):
            progress.update(done, len(names))
            with opened(root, name) as recording:
                window = question.choose(recording)
                found += of_node(recording, job, window.start_us, window.end_us)
    return found


def _behind(places: list[Path]) -> list[Behind]:
    """Raises NotADumpError, OSError."""
    from zombiescope.imports import flight_recorder

    found = [flight_recorder.read(path) for place in places for path in flight_recorder.files(place)]
    return list(flight_recorder.behind(found))


def _nodes(root: str) -> list[str]:
    from zombiescope.fleet import plan

    return sorted(plan.listing(root).nodes)


def _why(root: str, late: LateRank) -> list[dict[str, Any]]:
    """What our own diagnosis of that node says of that time; the late rank itself is not its own cause."""
    from zombiescope.documents.incidents import diagnosed

    with opened(root, late.node) as recording:
        whole = WindowQuestion().choose(recording)
        from dataclasses import replace

        window = replace(whole, start_us=max(whole.start_us, late.from_us - AROUND_US),
                         end_us=min(whole.end_us, late.to_us + AROUND_US))  # fmt: skip
        found = diagnosed(recording, window).found
    said = []
    for each in found.incidents:
        at_that_time = each.from_us < late.to_us and each.to_us > late.from_us
        if not each.causes or not at_that_time:
            continue
        cause = each.causes[0]
        other = cause.pattern == "late-rank" and cause.culprit is not None and cause.culprit.pid != late.pid
        if not other:
            said.append({"incident": each.id, "pattern": cause.pattern, "summary": cause.summary,
                         "confidence": cause.confidence})  # fmt: skip
    return said


def _print(made: JobReport, causes: dict[int, list[dict[str, Any]]]) -> None:
    from zombiescope.query.job_report import JobRank

    out = console()
    out.print(
        f"{made.job}  {len(made.ranks)} of {made.world_size or '?'} ranks on {len(made.nodes)} nodes", style="bold"
    )
    rows = AnswerTable(JobRank, gap=2)
    for one in made.ranks[:_RANKS]:
        rows.add(one)
    out.print(rows.table)
    for number, late in enumerate(made.late):
        held = "has been elsewhere" if late.is_stuck else "held the others up"
        where = f" in {late.place}" if late.place else ""
        out.print(
            f"rank {late.rank} on {late.node} {held} for {late.late_s:.0f} s: {late.state}{where}", style="bold red"
        )
        for cause in causes.get(number, ()):
            out.print(f"  {cause['pattern']}: {cause['summary']}")
    for wait in made.all_wait:
        missing = f"; {wait.missing} ranks are in no recording here" if wait.missing else ""
        seconds = (wait.to_us - wait.from_us) / 1e6
        out.print(f"all {wait.ranks} ranks waited for {seconds:.0f} s in {wait.place}{missing}", style="bold red")
    if not made.late and not made.all_wait:
        out.print("no rank held the others up")
    for node in made.nodes:
        if node.clock_offset_s:
            out.print(f"the clock of {node.node} is {node.clock_offset_s:+.3f} s off (by {node.by})", style="dim")
