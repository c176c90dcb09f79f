"""`zombiescope diff`: what changed between two windows, or between two recordings."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli import picture
from zombiescope.cli.output import Json, console, examples, print_document, table
from zombiescope.cli.picture import Output
from zombiescope.cli.quantities import human_count, human_s, percent
from zombiescope.cli.recording_argument import Node, opened
from zombiescope.cli.window import Utc
from zombiescope.questions import sides
from zombiescope.questions.views import DiffQuestion

if TYPE_CHECKING:
    from pathlib import Path

    from zombiescope.documents.diff import Difference
    from zombiescope.query.cgroups import CgroupsView
    from zombiescope.query.comparison import Comparison, SampleShare
    from zombiescope.query.cores import CoresView
    from zombiescope.questions.window import Window
    from zombiescope.store.reader import Recording

EXAMPLES = examples(
    "diff 11:00..11:05 12:00..12:05",
    "diff good.zscope bad.zscope",
    "diff ./healthy@12:00..12:10 ./sick@12:00..12:10 -o diff.html",
    "diff 11:00..11:05 12:00..12:05 --json | jq '.functions[0]'",
)

_WORTH_SAYING_CORES = 0.01
_WORTH_SAYING_RATIO = 0.001


def command(
    question: DiffQuestion,
    before: Annotated[
        str,
        typer.Argument(metavar="A", help="The baseline: FROM..TO, a recording, or RECORDING@FROM..TO."),
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="What it is now, written the same way.")],
    recording: Annotated[
        str | None,
        typer.Option("--in", metavar="DIR", help="The recording that a bare FROM..TO is of.", show_default=False),
    ] = None,
    output: Output = None,
    utc: Utc = False,
    node: Node = None,
    json_: Json = False,
) -> None:
    """Compare two windows, or two recordings.

    Cores, units, functions and memory cgroups of A and B side by side, the largest change first.

    Windows of different length are comparable: shares of samples, busy cores, ratios of elapsed time.

    With -o it draws the differential flame graph: red grew, blue shrank; functions that vanished stay visible.
    """
    kind = picture.format_of(output) if output else None
    first, second = sides.side(before, "A"), sides.side(after, "B")
    with ExitStack() as stack:

        def chosen(side: sides.Side) -> tuple[Recording, Window]:
            place = stack.enter_context(opened(side.place or recording, node))
            return place, side.choose(place, utc)

        old, new = chosen(first), chosen(second)
        from zombiescope.documents.diff import answer

        found = answer(old, new, question)
        if output and kind:
            _draw(output, kind, found)
        if json_:
            print_document("diff", found.document())
        elif not output:
            _print(found, second.place or recording)


# --- pictures ----------------------------------------------------------------------------------------------------


def _draw(output: Path, kind: str, found: Difference) -> None:
    if kind == "html":
        from zombiescope.web import report

        window, base = found.after.window, found.reference()
        picture.write_page(output, lambda: report.of_selection(found.both(), found.title, window, {}, base=base))
        return
    from zombiescope.query import svg, terminal

    if kind == "svg":
        picture.write(output, svg.flamegraph(found.tree(), found.title))
        return
    lines = terminal.flamegraph(found.tree(), picture.TEXT_COLUMNS)
    picture.write(output, f"{picture.wrapped(found.title)}\n{terminal.plain(lines)}")


# --- text --------------------------------------------------------------------------------------------------------


def _print(difference: Difference, directory: str | None) -> None:
    out = console()
    old, new, found = difference.before, difference.after, difference.found
    top = difference.question.top
    out.print(f"A  {old.heading}  (baseline)", style="bold")
    out.print(f"B  {new.heading}", style="bold")
    if not found.samples_before and not found.samples_after:
        picture.say_empty(new.selection.filters, directory)
    else:
        out.print(f"   {found.samples_before:,} and {found.samples_after:,} samples")
        out.print()
        _print_owners(found, top)
        _print_functions(found, top)
    _print_cores(old.cores(), new.cores())
    _print_cgroups(old.cgroups(), new.cgroups())


def _print_owners(found: Comparison, top: int) -> None:
    known = all(side.cores is not None for change in found.owners for side in (change.before, change.after))
    least = _WORTH_SAYING_CORES if known else _WORTH_SAYING_RATIO
    changed = [change for change in found.owners if abs(change.delta) >= least][:top]
    if not changed:
        console().print("who ran: no significant change")
        return
    rows = table("who ran", "A", "B", "change", right=("A", "B", "change"), wraps="who ran")
    for change in changed:
        grew = change.delta > 0
        rows.add_row(
            change.name,
            _share(change.before, known),
            _share(change.after, known),
            f"{change.delta:+.2f} cores" if known else f"{change.delta * 100:+.1f} points",
            style="red" if grew else "blue",
        )
    console().print(rows)


def _share(share: SampleShare, as_cores: bool) -> str:
    return f"{share.cores:.2f}" if as_cores and share.cores is not None else percent(share.ratio, 1)


def _print_functions(found: Comparison, top: int) -> None:
    changed = [change for change in found.functions if abs(change.self_delta) >= _WORTH_SAYING_RATIO][:top]
    console().print()
    if not changed:
        console().print("functions: no significant change")
        return
    rows = table("self time in", "A", "B", "change", "", right=("A", "B", "change"), wraps="self time in")
    for change in changed:
        rows.add_row(
            change.function.name,
            percent(change.self_before, 1),
            percent(change.self_after, 1),
            f"{change.self_delta * 100:+.1f}",
            "new" if not change.total_before else "gone" if not change.total_after else "",
            style="red" if change.self_delta > 0 else "blue",
        )
    console().print(rows)


def _print_cores(old: CoresView, new: CoresView) -> None:
    out = console()
    out.print()
    if not old.cores or not new.cores:
        out.print(f"cores: not measured in {'A' if not old.cores else 'B'}")
        return
    out.print(f"all cores busy   {percent(old.aggregate.busy, 1)} -> {percent(new.aggregate.busy, 1)}")
    worst_old, worst_new = (max(view.cores, key=lambda core: core.longest_saturation_s or 0) for view in (old, new))
    out.print(
        "lost to the kernel  "
        + " -> ".join(
            f"core {worst.cpu} for {human_s(worst.longest_saturation_s)}" if worst.longest_saturation_s else "no core"
            for worst in (worst_old, worst_new)
        )
    )


def _print_cgroups(old: CgroupsView, new: CgroupsView) -> None:
    before, after = old.memory, new.memory
    if before is None and after is None:
        return
    console().print(
        "memory cgroups   "
        f"{human_count(before.total if before else None)} -> {human_count(after.total if after else None)}"
        f", dying {human_count(before.dying if before else None)} -> {human_count(after.dying if after else None)}"
    )
