"""`zombiescope history`: thirty days in rollups, across reboots."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Annotated

import typer

from zombiescope._time import MINUTE_US
from zombiescope.commands.output import Json, console, examples, note, print_document, table
from zombiescope.commands.quantities import duration_s, human_count, human_s, percent, within
from zombiescope.commands.reading import Dir, Node, opened
from zombiescope.commands.window import WindowOptions, moment, zone_of

if TYPE_CHECKING:
    from zombiescope.recording.reader import Recording
    from zombiescope.views.history import Point

EXAMPLES = examples(
    "history                  # all that is kept, up to thirty days",
    "history --last 7d --step 1d",
    "history --json | jq '.points[-1]'",
)

_STEPS_US = tuple(minutes * MINUTE_US for minutes in (1, 5, 15, 60, 180, 360, 720, 1440))
_ROWS = 30
_BAR = 9
_WORTH_SAYING_S = 1.0


def _step_s(text: str) -> float:
    return within(duration_s(text), 60, 30 * 86400, "1m to 30d")


def command(
    span: WindowOptions,
    directory: Dir = None,
    step_s: Annotated[
        float | None,
        typer.Option("--step", parser=_step_s, metavar="DURATION", help="Time of one point. Default: as fits."),
    ] = None,
    node: Node = None,
    json_: Json = False,
) -> None:
    """A month of the node, across reboots.

    Points over time: saturated cores, zombies, restarts, NIC events.

    With --at T: the minute of T.
    """
    with opened(directory, node) as recording:
        from zombiescope.documents.history import document
        from zombiescope.views.history import history

        zone = zone_of(recording.node, span.utc)
        start_us, end_us = _limits(recording, span)
        step_us = round(step_s * 1e6) if step_s else None
        if step_us is None and not json_:
            minutes = history(recording, start_us, end_us, _STEPS_US[-1])
            step_us = _step_for(minutes)
        points = history(recording, start_us, end_us, step_us)
        if json_:
            print_document("history", document(recording.name, points))
        elif points:
            _print(recording.name, points, zone)
        else:
            note("zombiescope: no minute was summed up in this window; the first appears after a minute")


def _limits(recording: Recording, span: WindowOptions) -> tuple[int | None, int | None]:
    """The window; rollups reach further back than the recording, so no option means no limit."""
    if span.at is not None and not (span.last or span.from_ or span.to):
        minute = moment(span.at, recording, zone_of(recording.node, span.utc), "--at") // MINUTE_US * MINUTE_US
        return minute, minute + MINUTE_US
    if not span.given:
        return None, None
    window = span.choose(recording)
    return (window.start_us if span.last or span.from_ else None), window.end_us


def _step_for(days: list[Point]) -> int:
    """The shortest step that keeps the table on a screen."""
    span_us = days[-1].at_us - days[0].at_us + _STEPS_US[-1] if days else 0
    recorded_us = sum(point.recorded_s for point in days) * 1_000_000
    span_us = min(span_us, max(recorded_us, MINUTE_US)) if len(days) == 1 else span_us
    return next((step for step in _STEPS_US if span_us <= _ROWS * step), _STEPS_US[-1])


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
