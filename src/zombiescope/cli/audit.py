"""`zombiescope audit`: traps of a node, or of an image that nobody booted."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.base.text import printable
from zombiescope.cli import progress
from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, note, print_document, print_object
from zombiescope.cli.severity import FOUND, FailOn
from zombiescope.questions.views import AuditQuestion

if TYPE_CHECKING:
    from rich.console import Console

    from zombiescope.audit.baseline import BaselineDiff
    from zombiescope.audit.finding import Audit, Finding
    from zombiescope.documents.audit import AuditAnswer

EXAMPLES = examples(
    "audit                      # this node",
    "audit --root /mnt/image    # an image",
    "audit --root /mnt/image --write-allow accepted.txt",
    "audit --root /mnt/image --allow accepted.txt --sarif audit.sarif",
    "audit --at-least critical --json | jq -r '.findings[].unit'",
)

_STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
_WIDTH_MAX = 110
_LABEL = 10
_MISSING_SHOWN = 8


def command(
    question: AuditQuestion,
    write_allow: Annotated[
        Path | None, typer.Option("--write-allow", metavar="FILE", help="Write what is found as a file for --allow.")
    ] = None,
    catalogue: Annotated[
        list[Path] | None,
        typer.Option("--catalogue", metavar="FILE", help="Agents or kernels of your own (TOML); may be repeated."),
    ] = None,
    fail_on: FailOn = "warning",
    sarif: Annotated[
        Path | None, typer.Option("--sarif", metavar="FILE", help="Write SARIF 2.1.0 as well; - is standard output.")
    ] = None,
    json_: Json = False,
) -> int:
    """Find misconfigurations on this node, or in an unbooted image, before they cause an incident.

    Units that restart without end, agents of another platform, timers that churn cgroups, costly kernels.

    On a node, audit queries the running systemd. An image is only read; nothing in it is executed.
    """
    if sarif == Path("-") and json_:
        raise typer.BadParameter("--json and --sarif - both want standard output; name a file for SARIF")
    found = _answer(question, catalogue or [])
    if write_allow is not None:
        _write_allow(write_allow, found.audit)
    if sarif is not None:
        _write_sarif(sarif, found.audit, found.review)
    if json_:
        print_document("audit", found.document())
    elif sarif != Path("-"):
        _print(found)
    for line in found.review.stale:
        note(f"zombiescope: {question.allow}, line {line.line}: {line.id} is no longer found; the line can go")
    return FOUND if found.at_least(fail_on) else 0


def _answer(question: AuditQuestion, catalogue: list[Path]) -> AuditAnswer:
    from zombiescope.documents.audit import answer

    root = question.root
    try:
        with progress.shown(f"examining {root}"):
            return answer(question, catalogue)
    except NotADirectoryError:
        raise Failure(f"{root} is not a directory", "unpack or mount the image and name the directory") from None
    except FileNotFoundError as error:
        if Path(error.filename or "") != root:
            raise
        raise Failure(f"{root} does not exist", "unpack or mount the image and name the directory") from None


def _write_allow(path: Path, audit: Audit) -> None:
    from zombiescope.audit import baseline
    from zombiescope.cli.picture import write

    if path.exists():
        raise Failure(f"{path} exists already", "its reasons would be lost; name another file")
    write(path, baseline.write(audit.findings))


def _write_sarif(path: Path, audit: Audit, review: BaselineDiff) -> None:
    import json
    from importlib.metadata import version

    from zombiescope.audit import sarif
    from zombiescope.cli.picture import write

    made = sarif.document(audit, version("zombiescope"), review.new, review.allowed)
    if path == Path("-"):
        print_object(made, indent=2)
    else:
        write(path, json.dumps(made, indent=2) + "\n")


def _print(found: AuditAnswer) -> None:
    out = console()
    audit, review, shown = found.audit, found.review, found.shown
    width = min(out.width, _WIDTH_MAX)
    for finding in shown:
        _print_finding(out, finding, width)
    _print_summary(out, audit, review, len(review.new) - len(shown))
    _print_missing(out, audit, width)


def _print_finding(out: Console, finding: Finding, width: int) -> None:
    from rich.text import Text

    head = Text(f"{finding.severity:<{_LABEL}}", _STYLES[finding.severity])
    head.append(printable(finding.unit or finding.id), "bold").append(
        f"  {finding.rule}" if finding.unit else "", "dim"
    )
    out.print(head)
    _print_block(out, "why", printable(finding.why), width)
    for number, item in enumerate(finding.evidence):
        place = item.file if item.line is None else f"{item.file}:{item.line}"
        text = f"{place}  {item.text}" if item.text else place
        _print_block(out, "seen" if number == 0 else "", printable(text), width, style="dim")
    for number, line in enumerate(finding.fix):
        out.print(f"  {'fix' if number == 0 else '':<{_LABEL - 2}}{printable(line)}", style="green", soft_wrap=True)
    out.print()


def _print_block(out: Console, label: str, text: str, width: int, style: str = "") -> None:
    lines = wrap(text, max(30, width - _LABEL), break_long_words=False, break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        out.print(f"  {label if number == 0 else '':<{_LABEL - 2}}{line}", style=style, soft_wrap=True)


def _print_summary(out: Console, audit: Audit, review: BaselineDiff, left_out: int) -> None:
    counts = Counter(finding.severity for finding in review.new)
    words = {"critical": ("critical", "critical"), "warning": ("warning", "warnings"), "info": ("note", "notes")}
    said = ", ".join(f"{counts[name]} {forms[counts[name] > 1]}" for name, forms in words.items() if counts[name])
    extra = [f"{len(review.allowed)} accepted"] if review.allowed else []
    extra += [f"{left_out} lower-severity findings hidden"] if left_out else []
    tail = f" ({', '.join(extra)})" if extra else ""
    looked = f"{audit.units:,} unit files, {audit.enabled:,} services start by themselves"
    what = "this node" if audit.root == "/" else audit.root
    asked = "; includes the running systemd" if audit.live else ""
    out.print(f"{said or 'nothing found'}{tail}", style="bold")
    platform = f", a {audit.platform} node" if audit.platform else ""
    out.print(f"{what}{platform}: {looked}{asked}", soft_wrap=True)


def _print_missing(out: Console, audit: Audit, width: int) -> None:
    for item in audit.missing[:_MISSING_SHOWN]:
        _print_block(out, "unknown", printable(f"{item.source}: {item.why}"), width, style="yellow")
    if len(audit.missing) > _MISSING_SHOWN:
        out.print(
            f"  {'':<{_LABEL - 2}}and {len(audit.missing) - _MISSING_SHOWN} more; --json lists them", style="yellow"
        )
