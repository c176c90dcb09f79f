"""`zombiescope status`: is a recorder running here, and how is it doing."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from zombiescope.commands.failure import Failure
from zombiescope.commands.output import Json, console, examples, note, print_document
from zombiescope.commands.quantities import human_bytes, human_count, human_s, percent
from zombiescope.commands.reading import opened
from zombiescope.commands.window import clock, zone_of
from zombiescope.recording import incidents, locate

if TYPE_CHECKING:
    from zombiescope.recording.reader import Recording

EXAMPLES = examples(
    "status",
    "status --json | jq .cost",
)

_COST_SPAN_US = 600 * 1_000_000
_GAPS_SHOWN = 5


def command(json_: Json = False) -> None:
    """Is a recorder running here, and how is it doing.

    Since when, where it is blind, and what it costs.
    """
    recorder = locate.running_recorder()
    document = _not_running() if recorder is None else _running(recorder)
    if json_:
        print_document("status", document)
    else:
        _print(document)


def _not_running() -> dict[str, Any]:
    absent = ("pid", "recording", "node", "timezone", "since", "until", "cost", "bytes")
    return {"running": False, **dict.fromkeys(absent), "gaps": [], "missing": [], "incidents": []}


def _running(recorder: locate.RunningRecorder) -> dict[str, Any]:
    known = {
        "running": True,
        "pid": recorder.pid,
        "recording": str(recorder.recording),
        "node": recorder.node,
        "since": recorder.started_us / 1e6,
    }
    try:
        with opened(str(recorder.recording), recorder.node) as recording:
            return _not_running() | known | _measured(recorder, recording)
    except Failure as error:
        note(f"zombiescope: only that much is known: {error}")
        return _not_running() | known


def _measured(recorder: locate.RunningRecorder, recording: Recording) -> dict[str, Any]:
    from zombiescope.recording.cost import recorder_cost

    end_us = recording.end_us
    cost = recorder_cost(recording, max(end_us - _COST_SPAN_US, recorder.started_us), end_us + 1)
    gaps = recording.gaps(recorder.started_us)
    return {
        "timezone": recording.node.get("timezone"),
        "until": end_us / 1e6 if end_us else None,
        "bytes": recording.size_bytes,
        "cost": None if cost is None else asdict(cost),
        "gaps": [
            {"from": gap.from_us / 1e6, "to": gap.to_us / 1e6, "source": gap.source, "why": gap.why} for gap in gaps
        ],
        "missing": recording.node.get("missing") or [],
        "incidents": incidents.open_ones(recorder.recording / recording.prefix),
    }


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
        causes = incident.get("causes") or [{"summary": "not explained"}]
        since = clock(round(incident["from"] * 1e6), zone)
        style = "bold red" if incident["severity"] == "critical" else "yellow"
        _print_line(incident["severity"], f"since {since}: {causes[0]['summary']}", style)
    for gap in document["gaps"][-_GAPS_SHOWN:]:
        start, end = (clock(round(gap[side] * 1e6), zone) for side in ("from", "to"))
        _print_line("blind", f"{start} – {end}  {gap['source']}: {gap['why']}", "yellow")
    if not document["gaps"]:
        out.print("  blind    never since it started")
    for item in document["missing"]:
        _print_line("missing", f"{item['source']}: {item['why']}; {item['grant']}", "yellow")


def _print_line(label: str, text: str, style: str) -> None:
    """Wrapped beside its label, not below it."""
    from rich.text import Text

    out = console()
    for number, part in enumerate(Text(text).wrap(out, max(20, out.width - 11))):
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
