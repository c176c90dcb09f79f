"""The round of all stressors: asked for, run, counted, printed, published."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import typer

from zombiescope.cli import picture
from zombiescope.cli.failure import Failure
from zombiescope.cli.lab import hold_out as runs
from zombiescope.cli.lab.scenarios import end_in_order, named
from zombiescope.cli.output import console, note, print_document, table
from zombiescope.lab import hold_out

MISSED = 3
_SECONDS_EACH = 22


def perform(
    only: str | None,
    resume: Path | None,
    beside: str | None,
    minutes: float | None,
    output: Path | None,
    page: Path | None,
    yes: bool,
    as_document: bool,
) -> int:
    """Exits 3 where the goal was missed."""
    if beside is not None and named(beside).kind != "healthy":
        raise typer.BadParameter(f"--background {beside}: not a healthy load; see 'zombiescope lab list'")
    names = runs.chosen(only)
    columns = [None] if beside is None else [None, beside]  # on the machine as it is, and beside the load
    if minutes != 0:
        left = [name for one in columns for name in names if resume is None or not runs.is_kept(resume, name, one)]
        _ask(left, yes)
    end_in_order()
    with ExitStack() as stack:
        directory = resume or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zombiescope-lab-")))
        most_s = None if minutes is None else minutes * 60
        rows = [row for one in columns for row in runs.rows(directory, names, one, _progress, most_s)]
    total = hold_out.counts(rows)
    document: dict[str, Any] = {"hold_out": rows, "score": total, **total}
    if output is not None:
        picture.write(output, _one_line_each(rows, total))
    if page is not None:
        picture.write(page, hold_out.page_of(rows))
    if as_document:
        print_document("lab", document)
    else:
        _show(rows, total)
    return 0 if hold_out.meets_the_goal(total) else MISSED


def _one_line_each(rows: list[dict[str, Any]], total: dict[str, Any]) -> str:
    """The document with a line for each stressor, so that two rounds can be compared."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{"score": {json.dumps(total)},\n"hold_out": [\n{lines}\n]}}\n'


def _ask(left: list[str], yes: bool) -> None:
    """Says what will happen to this machine; goes on only with a yes."""
    if not left:
        return
    if os.geteuid() != 0:
        raise Failure("the cages of --hold-out need root", "sudo zombiescope lab score --hold-out")
    note(
        f"runs {len(left)} stressors of stress-ng one after the other, each in a cage of at most 2 GB and 1,024 "
        f"processes for 2 s, and for 10 s more if it is busy in the kernel: {len(left) * _SECONDS_EACH // 60 + 1} "
        "minutes at most"
    )
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failure("this asks for confirmation, and there is no terminal to ask on", "add --yes")
    typer.confirm("Continue?", abort=True, err=True)


def _progress(name: str) -> None:
    if sys.stderr.isatty():
        note(name)


def _show(rows: list[dict[str, Any]], total: dict[str, Any]) -> None:
    made = table("stressor", "kernel", "reported", "process", "call", "pattern", wraps="pattern")
    for row in rows:
        if row["held"]:
            yes = {True: "yes", False: "no"}
            shown = (yes[row["reported"]], yes[row["process"]], yes[row["path"]])
            made.add_row(row["stressor"], f"{row['system_cores']:.2f}", *shown, row["pattern"] or "-")
    out = console()
    out.print(made)
    out.print(hold_out.sentence(total), style="bold")
