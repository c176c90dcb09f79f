"""`zombiescope status`: which recorders run here, and how they are doing."""

from __future__ import annotations

import shlex
import time
from datetime import tzinfo
from typing import Annotated, Any

import typer

from zombiescope.agent.condition import NAMES
from zombiescope.base.text import printable
from zombiescope.cli.failure import one_line
from zombiescope.cli.output import Json, console, examples, note, print_document
from zombiescope.cli.quantities import human_bytes, human_count, human_s, percent
from zombiescope.cli.recording_argument import place_of
from zombiescope.cli.typed import as_typed
from zombiescope.cli.window import clock, zone_of
from zombiescope.kernel.cpu import format_list
from zombiescope.store.health import RECORDER

EXAMPLES = examples(
    "status",
    "status /data/flight",
    "status --json | jq .cost",
    "status --fail      # exit code 3 if a part has failed",
    "status --condition any   # one line, exit code 0, 1 or 2",
)

Dir = Annotated[
    str | None,
    typer.Argument(metavar="DIR", show_default=False, help="What one recorder writes. Default: all that run here."),
]

_GAPS_SHOWN = 5
_OVER_SHOWN = 5
_BAD = ("failed", "hung")


def _condition(text: str) -> str:
    if text not in NAMES:
        raise typer.BadParameter(f"unknown condition {text!r}; choose {', '.join(NAMES)}")
    return text


def command(
    directory: Dir = None,
    fail: Annotated[
        bool,
        typer.Option("--fail", help="Exit with 3 if a part of a recorder has failed or hangs, or a recorder died."),
    ] = False,
    condition: Annotated[
        str | None,
        typer.Option(
            "--condition",
            metavar="NAME",
            parser=_condition,
            autocompletion=lambda: list(NAMES),
            help="Print one line of at most 80 characters and exit with 1 if an open incident means this condition "
            "(any, CoreStarvation, CgroupLeak, UnitCrashLoop, HardwareFault), 0 if none does, 2 if it is not known.",
        ),
    ] = None,
    json_: Json = False,
) -> None:
    """Show running recorders: uptime, gaps, cost, parts and open incidents.

    With DIR: the recorder that writes into it.
    """
    from zombiescope.documents import status

    found = status.answer(None if directory is None else place_of(directory))
    if condition is not None:
        from zombiescope.agent.condition import verdict

        code, line = verdict(found.document, condition)
        typer.echo(printable(line))
        raise typer.Exit(code)
    for place, error in found.unread:
        fix = "; run as the recorder's user" if isinstance(error, PermissionError) else ""
        note(f"zombiescope: {place} cannot be read: {one_line(error)}{fix}")
    if json_:
        print_document("status", found.document)
    else:
        _print_all(found.document, directory)
    if fail and not found.is_well:
        raise typer.Exit(3)


def _print_all(document: dict[str, Any], directory: str | None) -> None:
    if not document["recorders"]:
        console().print(as_typed(_nobody(directory)))
    for number, recorder in enumerate(document["recorders"]):
        if number:
            console().print()
        if recorder["died"] is None:
            _print(recorder)
        else:
            _print_dead(recorder)


def _print_dead(document: dict[str, Any]) -> None:
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(document["died"]))
    place = printable(document["recording"])
    again = shlex.join(["zombiescope", "up", place])
    text = f"the recorder of {printable(document['node'])} (pid {document['pid']}) died at {at}; it wrote into {place}"
    _print_line("died", text, "bold red")
    _print_line("", as_typed(f"'{again}' starts one again"), "bold red")


def _nobody(directory: str | None) -> str:
    if directory is None:
        return "no recorder is running on this machine; 'zombiescope up' starts one"
    asked = shlex.join(["zombiescope", "info", printable(directory)])
    return f"no recorder writes into {printable(directory)} now; '{asked}' says what it holds"


def _print(document: dict[str, Any]) -> None:
    out = console()
    zone = zone_of(document)
    ran_s = time.time() - document["since"]
    doing = "recording" if all(part["state"] == "ok" for part in _own(document)) else "not recording"
    out.print(f"{doing} {document['node']} into {document['recording']} (pid {document['pid']})")
    out.print(f"  since    {clock(round(document['since'] * 1e6), zone)}, {human_s(ran_s)} ago")
    _print_parts(document["parts"], zone)
    if document["until"] is None:
        return
    out.print(f"  on disk  {human_bytes(document['bytes'])}")
    _print_cost(document["cost"])
    _print_incidents(document["incidents"], zone)
    failing = {part["name"] for part in document["parts"] if part["state"] in _BAD}
    over = [gap for gap in document["gaps"] if gap["source"] not in failing]
    for gap in over[-_GAPS_SHOWN:]:
        start, end = (clock(round(gap[side] * 1e6), zone) for side in ("from", "to"))
        _print_line("blind", f"{start} – {end}  {gap['source']}: {gap['why']}", "yellow")
    if not document["gaps"]:
        out.print("  gaps     none")
    if document["left_out"]:
        out.print(f"  left out stacks of cores {format_list(document['left_out'])}, as asked for")
    for item in document["missing"]:
        _print_line("missing", f"{item['source']}: {item['why']}; {item['grant']}", "yellow")


def _own(document: dict[str, Any]) -> list[dict[str, Any]]:
    """What is known of the recorder's own process."""
    return [part for part in document["parts"] if part["name"] == RECORDER]


def _print_parts(parts: list[dict[str, Any]], zone: tzinfo) -> None:
    """Each that does not work, with what to do about it; how many do."""
    bad = [part for part in parts if part["state"] in _BAD]
    for part in [part for part in bad if part["name"] == RECORDER] or bad:
        since = clock(round(part["since"] * 1e6), zone)
        last = part["last_success"]
        worked = "never worked" if last is None else f"last worked {clock(round(last * 1e6), zone)}"
        fix = f"; {part['fix']}" if part["fix"] else ""
        style = "bold red" if part["name"] == RECORDER else "yellow"
        _print_line(part["state"], f"{part['name']} {part['why']} (since {since}, {worked}){fix}", style)
    well = sum(part["state"] == "ok" for part in parts)
    known = f"{well} ok" + (f", {len(bad)} not" if bad else "")
    console().print(f"  parts    {known if parts else 'not known: it tells nothing of them'}")


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

    from zombiescope.cli.terminal import one_line

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
    memory = f"{human_bytes(cost['rss_bytes'])} and {human_bytes(cost['helpers_rss_bytes'])} of helpers"
    shown = f"{percent(cost['cpu_ratio'], 1)} of a core, {memory}, {hourly} an hour"
    out.print(f"  cost     {shown}{lost}")
