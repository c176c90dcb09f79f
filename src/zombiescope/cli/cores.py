"""`zombiescope cores`: mpstat -P ALL of any past window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zombiescope.cli.output import (
    AnswerTable,
    Csv,
    Json,
    cells,
    command_line,
    console,
    examples,
    note,
    print_csv,
    print_document,
)
from zombiescope.cli.quantities import human_s, percent
from zombiescope.cli.recording_argument import Dir, Node, opened, recorded_range
from zombiescope.model.modes import ModesBusy
from zombiescope.questions.views import CoresQuestion

if TYPE_CHECKING:
    from zombiescope.documents.cores import Cores
    from zombiescope.query.cores import Core

EXAMPLES = examples(
    "cores --last 5m",
    "cores --at 12:03:22        # that one second",
    "cores --hottest 8 --from 12:00 --to 12:10",
    "cores --gpu --last 5m      # the GPUs, and who is on them",
    "cores incident.zscope --json | jq '.cores[39]'",
)

_WORTH_SAYING_S = 1.0


def command(
    question: CoresQuestion, directory: Dir = None, node: Node = None, json_: Json = False, csv: Csv = False
) -> None:
    """Show what each core did in any past window: mpstat -P ALL for the past.

    Also shows how long the kernel held a core without a break.

    Ratios are of elapsed time. A core is saturated while system, irq and softirq fill 95% of each tick.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.cores import answer

        found, driver = answer(recording, question), recording.node.get("gpu_driver")
    if json_:
        print_document("cores", found)
    elif csv:
        _print_csv(found)
    elif found.gpus is not None:
        from zombiescope.cli.gpus import print_gpus

        print_gpus(found, driver, directory)
    else:
        _print(found, directory)


def _print_csv(found: Cores) -> None:
    from zombiescope.query.cores import Core
    from zombiescope.query.gpus import Gpu

    print_csv(Core, found.cores) if found.gpus is None else print_csv(Gpu, found.gpus)


def _print(found: Cores, directory: str | None) -> None:
    from zombiescope.query.cores import Core as Row

    out = console()
    out.print(found.heading, style="bold")
    if not found.cores:
        look = command_line("info", directory)
        note(f"zombiescope: no tick ends in this window; recorded is {recorded_range()}; '{look}' shows what there is")
        return

    def busiest(core: Core) -> str:
        peak = core.busiest
        return "" if peak is None else f"{peak.busy * 100:3.0f}% {found.window.clock(peak.at_us)}"

    rows = AnswerTable(Row, gap=1, busiest=busiest)
    rows.table.add_row("all", *cells(ModesBusy, found.aggregate), "", "")
    for core in found.cores:
        rows.add(core, "bold red" if (core.longest_saturation_s or 0) >= _WORTH_SAYING_S else None)
    out.print(rows.table)
    _print_saturation_warning(found)


def _print_saturation_warning(found: Cores) -> None:
    """What the mean over all cores hides."""
    worst = max(found.cores, key=lambda core: core.longest_saturation_s or 0)
    if (worst.longest_saturation_s or 0) < _WORTH_SAYING_S:
        return
    held = human_s(worst.longest_saturation_s)
    console().print()
    console().print(
        f"core {worst.cpu} was lost to the kernel for {held} while the mean of all cores "
        f"was {percent(found.aggregate.busy)}",
        style="bold red",
    )
