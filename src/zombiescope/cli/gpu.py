"""`zombiescope gpu`: where the GPU seconds went, by job, process or GPU."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Csv, Json, command_line, console, examples, note, print_csv, print_document, table
from zombiescope.cli.quantities import duration_s, human_s, within
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.views import GpuQuestion
from zombiescope.store import gpu_rules, locate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from zombiescope.documents.gpu import GpuAccount
    from zombiescope.query.gpu_account import GpuSeconds

EXAMPLES = examples(
    "gpu --last 1h           # what the seconds of each job went to",
    "gpu --by process --at 12:03:22",
    "gpu --by gpu --last 10m --json | jq '.rows[].waited'",
)

_SHOWN = 0.005
"""Of the wall time: less is not a word in the last column."""
_MOST_IDLE = 12


def command(
    question: GpuQuestion,
    directory: Dir = None,
    node: Node = None,
    json_: Json = False,
    csv: Csv = False,
    release: Annotated[
        str | None,
        typer.Option(
            "--release",
            metavar="TIME",
            show_default=False,
            help="Let the recorder of this machine close the GPU driver for this long (at most 1h), as a reset, a new "
            "driver or a change of MIG requires.",
        ),
    ] = None,
) -> None:
    """Show where the GPU seconds went: by job, process or GPU.

    Wall time x GPUs = busy + waiting for data, a core, other ranks, storage + throttled + stopped + broken + the
    program's own time on the host + unused + unknown. What is not known is shown, and never spread over the rest.
    """
    if release is not None:
        _release(within(duration_s(release), 1, gpu_rules.MOST_S, "1s to 1h"))
        return
    with opened(directory, node) as recording:
        from zombiescope.documents.gpu import answer

        found, driver = answer(recording, question), recording.node.get("gpu_driver")
    if json_:
        print_document("gpu", found)
    elif csv:
        from zombiescope.query.gpu_account import GpuSeconds

        print_csv(GpuSeconds, found.rows)
    else:
        _print(found, driver, directory)


def _release(lasts_s: float) -> None:
    recorder = locate.running_recorder()
    if recorder is None:
        raise Failure("no recorder is running on this machine", "then nothing of ours has the driver open")
    try:
        gpu_rules.request(locate.runtime_directory(), time.time() + lasts_s)
    except OSError as error:
        raise Failure(f"the recorder does not answer: {error.strerror}", "run it as root") from error
    note(f"the recorder (pid {recorder.pid}) closes the GPU driver within two seconds, for {human_s(lasts_s)}")


def _print(found: GpuAccount, driver: str | None, directory: str | None) -> None:
    out = console()
    out.print(found.heading, style="bold")
    if not found.rows:
        look = command_line("info", directory)
        why = f"a driver ({driver}) was there; '{look}' says where it was blind" if driver else "no driver was loaded"
        note(f"zombiescope: no GPU is known in this window: {why}")
        return
    heads = {"job": "job", "process": "process", "gpu": "gpu"}
    rows = table(heads[found.by], "gpus", "wall", "busy", "busy %", "waited for",
                 right=("gpus", "wall", "busy", "busy %"), gap=2, wraps="waited for")  # fmt: skip
    for row in found.rows:
        rows.add_row(*_cells(row, found.by))
    if len(found.rows) > 1:
        rows.add_row(*_total(found.rows))
    out.print(rows)
    for one in found.idle[:_MOST_IDLE]:
        out.print(f"{found.window.clock(one.from_us)}  {one.text}", style="dim" if one.phase else None)
    if len(found.idle) > _MOST_IDLE:
        out.print(f"and {len(found.idle) - _MOST_IDLE} more; --json has them all", style="dim")


def _cells(row: GpuSeconds, by: str) -> list[str]:
    share = f"{row.busy_s / row.wall_s * 100:.0f}%" if row.wall_s else "?"
    return [_name(row, by), str(row.gpus), human_s(row.wall_s), human_s(row.busy_s), share, _lost(row)]


def _total(rows: Sequence[GpuSeconds]) -> list[str]:
    """All rows together, by cause."""
    from zombiescope.query.gpu_account import STATES, GpuSeconds, Waited

    waited = Waited(**{state: sum(getattr(row.waited, state) for row in rows) for state in STATES})
    wall_s, busy_s = sum(row.wall_s for row in rows), sum(row.busy_s for row in rows)
    whole = GpuSeconds(None, None, None, None, None, None, None, None, 0, wall_s, busy_s, waited)
    share = f"{busy_s / wall_s * 100:.0f}%" if wall_s else "?"
    return ["(all)", "", human_s(wall_s), human_s(busy_s), share, _lost(whole)]


def _name(row: GpuSeconds, by: str) -> str:
    if by == "gpu":
        return f"GPU {row.gpu}" + (f"  {row.job}" if row.job else "")
    if row.job is None:
        return f"(unused) GPU {row.gpu}"
    if by == "process":
        rank = f"rank {row.rank}, " if row.rank is not None else ""
        return f"{row.comm or '?'} ({rank}pid {row.pid}) GPU {row.gpu}"
    return row.job


def _lost(row: GpuSeconds) -> str:
    from zombiescope.query.gpu_account import STATES

    parts = {state: getattr(row.waited, state) for state in STATES}
    shown = sorted(
        ((value, state) for state, value in parts.items() if value >= _SHOWN * row.wall_s and value > 0), reverse=True
    )
    return ", ".join(f"{state} {human_s(value)}" for value, state in shown) or "-"
