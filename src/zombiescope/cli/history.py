"""`zombiescope history`: thirty days in rollups, across reboots."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from zombiescope.cli.output import Json, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_count, human_s, percent
from zombiescope.cli.recording_argument import Dir, Node, opened, recorded_range
from zombiescope.questions.views import HistoryQuestion
from zombiescope.questions.window import zone_of

if TYPE_CHECKING:
    from zombiescope.query.history import Point

EXAMPLES = examples(
    "history                  # all that is kept, up to thirty days",
    "history --last 7d --step 1d",
    "history --json | jq '.points[-1]'",
)

_ROWS = 30
_BAR = 9
_WORTH_SAYING_S = 1.0


def command(question: HistoryQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """Show a month of the node, across reboots.

    Points over time: saturated cores, zombies, restarts, NIC events.

    With --at T: the minute of T.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents import history

        if json_:
            print_document("history", history.answer(recording, question))
            return
        points = history.table(recording, question, _ROWS)
        name, zone = recording.name, zone_of(recording.node, question.window.utc)
    if points:
        _print(name, points, zone)
    else:
        note(
            f"zombiescope: no minute was summed up in this window (recorded is {recorded_range()}); the first appears "
            "after a minute"
        )


def _print(name: str, points: list[Point], zone: tzinfo) -> None:
    out = console()
    out.print(name, style="bold")
    numbers = ("busy", "saturated", "longest", "cgroups", "dying", "restarts", "nic")
    rows = table("from", *numbers[:5], "", *numbers[5:], right=numbers, gap=1)
    most = max((point.dying or 0 for point in points), default=0)
    boot = points[0].boot
    for point in points:
        if point.boot != boot:
            rows.add_row("rebooted", style="bold yellow")
            boot = point.boot
        lost = point.longest_saturation_s >= _WORTH_SAYING_S
        rows.add_row(*_row(point, most, zone), style="red" if lost else None)
    out.print(rows)


def _row(point: Point, most: int, zone: tzinfo) -> list[str]:
    at = datetime.fromtimestamp(point.at_us / 1e6, zone)
    longest = "-"
    if point.longest_saturation_s:
        longest = f"{human_s(point.longest_saturation_s)} @{point.longest_cpu}"
    return [
        f"{at:%m-%d %H:%M}",
        percent(point.busy_ratio),
        human_s(point.cores_saturated_s) if point.cores_saturated_s else "-",
        longest,
        human_count(point.memory_cgroups),
        human_count(point.dying),
        "▆" * round(_BAR * (point.dying or 0) / most) if most else "",
        str(point.restarts or "-"),
        str(point.nic_events or "-"),
    ]
