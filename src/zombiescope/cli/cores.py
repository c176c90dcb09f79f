"""`zombiescope cores`: mpstat -P ALL of any past window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.cli.output import Json, command_line, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_s, percent
from zombiescope.cli.recording_argument import Dir, Node, opened, recorded_range
from zombiescope.questions.views import CoresQuestion

if TYPE_CHECKING:
    from zombiescope.documents.cores import CoresAnswer
    from zombiescope.query.cores import CoresView, Modes

EXAMPLES = examples(
    "cores --last 5m",
    "cores --at 12:03:22        # that one second",
    "cores --hottest 8 --from 12:00 --to 12:10",
    "cores --gpu --last 5m      # the GPUs, and who is on them",
    "cores incident.zscope --json | jq '.cores[39]'",
)

_MODES = ("user", "nice", "system", "irq", "softirq", "steal", "iowait", "idle")
_HEADS = ("user", "nice", "sys", "irq", "soft", "steal", "iowait", "idle")
_WORTH_SAYING_S = 1.0


def command(question: CoresQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """mpstat -P ALL of any past window.

    How each core spent its time, and how long the kernel held it without a break.

    Ratios are of elapsed time. A core is saturated while system, irq and softirq fill 95% of each tick.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.cores import answer

        found = answer(recording, question)
        if json_:
            print_document("cores", found.document())
        elif found.gpus is not None:
            from zombiescope.cli.gpus import print_gpus

            print_gpus(found, directory)
        else:
            _print(found, directory)


def _print(found: CoresAnswer, directory: str | None) -> None:
    out = console()
    window, view = found.window, found.view
    out.print(f"{found.recording.name}  {window.heading()}", style="bold")
    if not view.cores:
        look = command_line("info", directory)
        note(f"zombiescope: no tick ends in this window; recorded is {recorded_range()}; '{look}' shows what there is")
        return
    rows = table("core", *_HEADS, "saturated", "busiest", right=("core", *_HEADS, "saturated"), gap=1)
    rows.add_row("all", *_ratios(view.aggregate), "", "")
    for core in found.shown:
        lost = core.longest_saturation_s or 0
        busiest = core.busiest
        peak = "" if busiest is None else f"{busiest.busy * 100:3.0f}% {window.clock(busiest.at_us)}"
        held = human_s(core.longest_saturation_s) if core.longest_saturation_s != 0 else "-"
        style = "bold red" if lost >= _WORTH_SAYING_S else None
        rows.add_row(str(core.cpu), *_ratios(core.modes), held, peak, style=style)
    out.print(rows)
    _print_what_the_mean_hides(view)


def _ratios(modes: Modes) -> list[str]:
    ratios = (getattr(modes, mode) for mode in _MODES)
    return ["?" if ratio is None else f"{ratio * 100:.1f}" for ratio in ratios]


def _print_what_the_mean_hides(view: CoresView) -> None:
    worst = max(view.cores, key=lambda core: core.longest_saturation_s or 0)
    if (worst.longest_saturation_s or 0) < _WORTH_SAYING_S:
        return
    held = human_s(worst.longest_saturation_s)
    console().print()
    console().print(
        f"core {worst.cpu} was lost to the kernel for {held} while the mean of all cores "
        f"was {percent(view.aggregate.busy)}",
        style="bold red",
    )
