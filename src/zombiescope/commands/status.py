"""`zombiescope status`: is a recorder running here, and how is it doing."""

from __future__ import annotations

import time
from typing import Any

from zombiescope.commands.failure import one_line
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import human_bytes, human_count, human_s, percent
from zombiescope.commands.window import clock, zone_of

EXAMPLES = examples(
    "status",
    "status --json | jq .cost",
)

_GAPS_SHOWN = 5


def command(json_: Json = False) -> None:
    """Is a recorder running here, and how is it doing.

    Since when, where it is blind, and what it costs.
    """
    from zombiescope.documents.status import answer

    found = answer()
    if found.unread is not None:
        fix = "; run as the recorder's user" if isinstance(found.unread, PermissionError) else ""
        note(f"zombiescope: the recording cannot be read: {one_line(found.unread)}{fix}")
    if json_:
        print_document("status", found.document)
    else:
        _print(found.document)


def _print(document: dict[str, Any]) -> None:
    out = console()
    if not document["running"]:
        out.print("no recorder is running on this machine; 'zombiescope up' starts one")
        return
    zone = zone_of(document)
    ran_s = time.time() - document["since"]
    out.print(f"recording {document['node']} into {document['recording']} (pid {document['pid']})")
    out.print(f"  since    {clock(round(document['since'] * 1e6), zone)}, {human_s(ran_s)} ago")
    if document["until"] is None:
        return
    out.print(f"  on disk  {human_bytes(document['bytes'])}")
    _print_cost(document["cost"])
    for incident in document["incidents"]:
        since = clock(round(incident["from"] * 1e6), zone)
        style = "bold red" if incident["severity"] == "critical" else "yellow"
        _print_line(incident["severity"], f"since {since}: {_headline(incident)}", style)
    for gap in document["gaps"][-_GAPS_SHOWN:]:
        start, end = (clock(round(gap[side] * 1e6), zone) for side in ("from", "to"))
        _print_line("blind", f"{start} – {end}  {gap['source']}: {gap['why']}", "yellow")
    if not document["gaps"]:
        out.print("  blind    never since it started")
    for item in document["missing"]:
        _print_line("missing", f"{item['source']}: {item['why']}; {item['grant']}", "yellow")


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
