"""The healthy hours as a section of docs/data/lab-runs.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

Document = dict[str, Any]

HOUR_S = 3600.0
TITLE = "## Healthy hours"
_SECTION = re.compile(rf"^{TITLE}$.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_WHAT = (
    "`lab score --healthy-hour` replays an hour of each healthy load at each width to the live diagnosis. No hour was "
    "recorded: the seconds in *recorded* are copied to all cores and repeated end to end, with clocks and counters "
    "that continue. What a node has once (a kubelet with its pods, a runtime that makes a container a second) appears "
    "once, together with training. What takes longer than the recording (a leak, a cache that fills up) is not "
    "covered, and levels jump back where a repetition ends. The live diagnosis examines the last two minutes once a "
    "minute, so a row with fewer than 59 passes is less than an hour. *Warnings* counts every warning or worse of any "
    "pass, including those taken back later; notes (`info`) are not counted."
)
HEAD = ("cores", "load", "recorded", "passes", "warnings")


def rows(results: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for one in results:
        recorded = f"{one['recorded_s']} s on {one['recorded_cores']} cores, {_turns(one)} times"
        recorded += f"; during {one['beside']}" if one.get("beside") else ""
        yield str(one["cores"]), one["scenario"], recorded, str(one["looks"]), str(len(one["alarms"]))


def _turns(one: Document) -> str:
    return f"{one['seconds'] / max(one['recorded_s'], 1):.0f}"


def section(results: Sequence[Document]) -> str:
    """In Markdown, with its heading."""
    hours = sum(one["seconds"] for one in results) / HOUR_S
    warnings = sum(len(one["alarms"]) for one in results)
    table = [f"| {' | '.join(HEAD)} |", f"|{'---|' * len(HEAD)}", *(f"| {' | '.join(row)} |" for row in rows(results))]
    recorded = {one["scenario"]: one["recorded_s"] for one in results}
    spread = f"{len(recorded)} recordings, {sum(recorded.values()):.0f} s in all, replayed in a loop"
    parts = [TITLE, _WHAT, f"**{warnings} warnings in {hours:.0f} simulated hours**: {spread}.", "\n".join(table)]
    said = [line for one in results for line in _said(one)]
    if said:
        parts += ["Warnings:", "\n".join(said)]
    return "\n\n".join(parts) + "\n"


def _said(one: Document) -> Iterator[str]:
    counts: dict[str, int] = {}
    for alarm in one["alarms"]:
        text = f"{alarm['severity']}: {alarm['summary'] or 'a warning without a cause'}".replace("|", "/")
        counts[text] = counts.get(text, 0) + 1
    for text, count in counts.items():
        yield f"- {one['scenario']} on {one['cores']} cores: {text}" + (f" ({count} times)" if count > 1 else "")


def into(page: str, results: Sequence[Document]) -> str:
    """A page of accuracy with this section in it, in place of the one that it had."""
    made = section(results)
    if _SECTION.search(page):
        return _SECTION.sub(lambda _: made + "\n", page).rstrip("\n") + "\n"
    before, title, after = page.partition("## The scenarios")
    return f"{before.rstrip()}\n\n{made}\n{title}{after}" if title else f"{page.rstrip()}\n\n{made}"
