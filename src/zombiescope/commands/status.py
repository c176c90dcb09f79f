"""`zombiescope status`: which recorders run here, and how they are doing."""

from __future__ import annotations

import shlex
import time
from datetime import tzinfo
from typing import Annotated, Any

import typer

from zombiescope._text import printable
from zombiescope.commands.failure import one_line
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import human_bytes, human_count, human_s, percent
from zombiescope.commands.recording_argument import place_of
from zombiescope.commands.typed import as_typed
from zombiescope.commands.window import clock, zone_of
from zombiescope.kernel.cpu import format_list

EXAMPLES = examples(
    "status",
    "status /data/flight",
    "status --json | jq .cost",
)

Dir = Annotated[
    str | None,
    typer.Argument(metavar="DIR", show_default=False, help="What one recorder writes. Default: all that run here."),
]

_GAPS_SHOWN = 5
_OVER_SHOWN = 5


def command(directory: Dir = None, json_: Json = False) -> None:
    """Is a recorder running here, and how is it doing.

    Since when, where it is blind, and what it costs. With DIR: of the recorder that writes into it.
    """
    from zombiescope.documents.status import answer

    found = answer(None if directory is None else place_of(directory))
    for place, error in found.unread:
        fix = "; run as the recorder's user" if isinstance(error, PermissionError) else ""
        note(f"zombiescope: {place} cannot be read: {one_line(error)}{fix}")
    if json_:
        print_document("status", found.document)
        return
    if not found.document["running"]:
        console().print(as_typed(_nobody(directory)))
    for number, recorder in enumerate(found.document["recorders"]):
        if number:
            console().print()
        _print(recorder)


def _nobody(directory: str | None) -> str:
    if directory is None:
        return "no recorder is running on this machine; 'zombiescope up' starts one"
    asked = shlex.join(["zombiescope", "info", printable(directory)])
    return f"no recorder writes into {printable(directory)} now; '{asked}' says what it holds"


def _print(document: dict[str, Any]) -> None:
    out = console()
    zone = zone_of(document)
    ran_s = time.time() - document["since"]
    out.print(f"recording {document['node']} into {document['recording']} (pid {document['pid']})")
    out.print(f"  since    {clock(round(document['since'] * 1e6), zone)}, {human_s(ran_s)} ago")
    if document["until"] is None:
        return
    out.print(f"  on disk  {human_bytes(document['bytes'])}")
    _print_cost(document["cost"])
    _print_incidents(document["incidents"], zone)
    for gap in document["gaps"][-_GAPS_SHOWN:]:
        start, end = (clock(round(gap[side] * 1e6), zone) for side in ("from", "to"))
        _print_line("blind", f"{start} – {end}  {gap['source']}: {gap['why']}", "yellow")
    if not document["gaps"]:
        out.print("  blind    never since it started")
    if document["left_out"]:
        out.print(f"  left out stacks of cores {format_list(document['left_out'])}, as asked for")
    for item in document["missing"]:
        _print_line("missing", f"{item['source']}: {item['why']}; {item['grant']}", "yellow")


def _print_incidents(incidents: list[dict[str, Any]], zone: tzinfo) -> None:
    """All that go on, and the last of those that are over."""
    over = [incident for incident in incidents if incident["state"] != "open"]
    for incident in [*(one for one in incidents if one["state"] == "open"), *over[:_OVER_SHOWN]]:
        start, end = (clock(round(incident[side] * 1e6), zone) for side in ("from", "to"))
        is_open, is_critical = incident["state"] == "open", incident["severity"] == "critical"
        when = f"since {start}" if is_open else f"{start} – {end}, over"
        style = "bold red" if is_open and is_critical else "yellow" if is_open else "dim"
        _print_line(incident["severity"], f"{when}: {_headline(incident)}", style)
    if len(over) > _OVER_SHOWN:
        _print_line("", f"and {len(over) - _OVER_SHOWN} more that are over: status --json", "dim")


def _headline(incident: dict[str, Any]) -> str:
    """As `diagnose` heads it."""
    said = [cause.get("summary") for cause in incident.get("causes") or ()]
    said += [symptom.get("text") for symptom in incident.get("symptoms") or ()]
    return next((str(text) for text in said if text), "not explained")


def _print_line(label: str, text: str, style: str) -> None:
    """Wrapped beside its label, not below it."""
    from rich.text import Text

    from zombiescope.commands.terminal import one_line

    out = console()
    for number, part in enumerate(one_line(text).wrap(out, max(20, out.width - 11))):
        part.rstrip()
        out.print(Text(f"  {label if number == 0 else '':<9}") + part, style=style)


def _print_cost(cost: dict[str, Any] | None) -> None:
    out = console()
    if cost is None:
        out.print("  cost     not known yet")
        return
    hourly = human_bytes(cost["bytes_per_hour"])
    lost = f", {human_count(cost['lost'])} records lost" if cost["lost"] else ""
    shown = f"{percent(cost['cpu_ratio'], 1)} of a core, {human_bytes(cost['rss_bytes'])}, {hourly} an hour"
    out.print(f"  cost     {shown}{lost}")
