"""`zombiescope cgroups`: how many memory cgroups are zombies, who leaks them, and what that costs."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any

from zombiescope.cli.failure import Failure
from zombiescope.cli.output import Json, console, examples, note, print_document, table
from zombiescope.cli.quantities import human_count, human_s
from zombiescope.cli.recording_argument import Dir, Node, opened
from zombiescope.questions.window import WindowQuestion, zone_of
from zombiescope.store import locate

if TYPE_CHECKING:
    from rich.text import Text

EXAMPLES = examples(
    "cgroups                   # now",
    "cgroups --to 12:03:22     # as it was at that moment",
    "cgroups --json | jq '.leaks[0]'",
)

_LEAKS_SHOWN = 15
_STYLES = {"costly": "bold red", "watch": "bold yellow", "harmless": "green"}


def command(question: WindowQuestion, directory: Dir = None, node: Node = None, json_: Json = False) -> None:
    """Count zombie memory cgroups, name who leaks them, and estimate their cost.

    A zombie (dying) cgroup was removed but is still held by a page or a dentry. Shows the state at the end of the
    window, and the growth within it.
    """
    if _look_now(directory, node):
        _now(json_, UTC if question.utc else None)
        return
    with opened(directory, node) as recording:
        from zombiescope.documents.cgroups import answer

        document = answer(recording, question)
        zone = zone_of(recording.node, question.utc)
    _show(document, zone, json_)


def _look_now(directory: str | None, node: str | None) -> bool:
    named = directory is not None or node is not None or "ZOMBIESCOPE_DIR" in os.environ
    return not named and locate.running_recorder() is None


def _now(json_: bool, zone: tzinfo | None) -> None:
    from zombiescope.documents.cgroups import of_now
    from zombiescope.kernel.live_census import live_census

    host = os.uname()
    found = live_census()
    if isinstance(found, str):
        raise Failure(f"memory cgroups cannot be counted here: {found}")
    if not found.whole:
        note("zombiescope: this counts the cgroups of this container only; run it on the host for all")
    local = zone or datetime.now().astimezone().tzinfo or UTC
    _show(of_now(host.nodename, host.release, found), local, json_)


def _show(document: dict[str, Any], zone: tzinfo, json_: bool) -> None:
    if json_:
        print_document("cgroups", document)
    else:
        _print(document, zone)


def _print(document: dict[str, Any], zone: tzinfo) -> None:
    out = console()
    at = f"  {_moment(document['at'], zone)}" if document["at"] is not None else ""
    out.print(f"{document['node']}{at}", style="bold")
    memory = document["memory"]
    if memory["total"] is not None:
        counts = f"{human_count(memory['live'])} live, {human_count(memory['dying'])} dying"
        growth = document["growth_per_hour"]
        grows = "" if growth is None else f", {growth:+,.0f} dying an hour"
        out.print(f"{human_count(memory['total'])} memory cgroups ({memory['hierarchy']}): {counts}{grows}")
    out.print(_verdict(document))
    _print_forecast(document, zone)
    _print_leaks(document)


def _moment(at: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(at, zone):%Y-%m-%d %H:%M:%S %Z}".rstrip()


def _verdict(document: dict[str, Any]) -> Text:
    from rich.text import Text

    verdict = document["verdict"]
    text = Text("" if verdict is None else f"{verdict}: ", _STYLES.get(verdict, ""))
    return Text.assemble(text, document["why"])


def _print_forecast(document: dict[str, Any], zone: tzinfo) -> None:
    out = console()
    forecast = document["forecast"]
    now_s = forecast["read_cost_now_s"]
    if now_s is not None and document["verdict"] != "costly":
        out.print(f"one read of the root's memory statistics costs about {_read_cost(now_s)} now (estimated)")
    for key, cost in (("costs_1s_at", "a second"), ("costs_5s_at", "5 s")):
        at = forecast[key]
        if at is not None and at > document["at"]:
            out.print(f"at this pace it costs {cost} on about {_moment(at, zone)} (estimated)")


def _read_cost(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 0.001 else human_s(seconds)


def _print_leaks(document: dict[str, Any]) -> None:
    out = console()
    if document["source"] == "now":
        out.print("who leaks them: only a recorder sees that; 'zombiescope up' starts one", style="dim")
        return
    leaks = [leak for leak in document["leaks"] if leak["dying"] or leak["created"]]
    if not leaks and document["memory"]["created"] is None:
        out.print("who leaks them: not recorded; only a recorder that runs on the node sees that", style="dim")
        return
    if not leaks:
        out.print("no path has left a dying cgroup since the recorder started")
        return
    rows = table(
        "dying",
        "created",
        "released",
        "path",
        "made by",
        right=("dying", "created", "released"),
        wraps=("path", "made by"),
    )
    for leak in leaks[:_LEAKS_SHOWN]:
        least = "" if leak["exact"] in (True, None) else "≥"
        counts = [human_count(leak[name]) for name in ("created", "released")]
        rows.add_row(f"{least}{human_count(leak['dying'])}", *counts, leak["path"] or "(the rest)", _creator(leak))
    out.print()
    out.print(rows)
    if len(leaks) > _LEAKS_SHOWN:
        out.print(f"and {len(leaks) - _LEAKS_SHOWN} more paths; --json has them all", style="dim")


def _creator(leak: dict[str, Any]) -> str:
    if leak.get("charged_to"):
        return f"{leak['charged_to']} (through {leak['creator']['comm']})"
    creator = leak["creator"]
    pid = f"[{creator['pid']}]" if creator["pid"] is not None else ""
    return " ".join(part for part in (f"{creator['comm'] or ''}{pid}", creator["unit"] or "") if part) or "?"
