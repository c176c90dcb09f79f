"""Faults at every width: the table of docs/data/lab-runs.md, and the faults that were named wrongly, by name."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

Document = dict[str, Any]

TITLE = "## At every width"
_SECTION = re.compile(rf"^{TITLE}$.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_WHAT = (
    "Each recorded fault is spliced onto some cores of a wide node whose other cores carry repeated copies of a "
    "healthy recording (`lab widen`), and diagnosed there. A splice cannot show what loads do to each other: a task "
    "waits for a lock only if it waited when it was recorded. *Healthy alone* is the number of warnings or worse that "
    "the background raised on all cores (with what a node has once, such as a kubelet with its pods, only once). "
    "*Named after* is the median time from the onset until the live diagnosis named the right pattern and culprit, for "
    "recordings that were replayed to it (`--replay`: a pass every two seconds, without the delay of the recorder's "
    "alarm before the first pass; if a recording does not tell when the fault began, from the beginning of the "
    "incident)."
)


def score(results: Sequence[Document]) -> list[Document]:
    """One line for each width and background."""
    found = []
    for cores, background in dict.fromkeys((one["cores"], one["background"]) for one in results):
        here = [one for one in results if (one["cores"], one["background"]) == (cores, background)]
        faults = [one for one in here if one["kind"] == "fault"]
        healthy = [one for one in here if one["kind"] != "fault"]
        found.append({
            "cores": cores,
            "background": background,
            "faults": len(faults),
            "right": sum(one["pass"] for one in faults),
            "wrong": [one["scenario"] for one in faults if not one["pass"]],
            "warnings": sum(len(one["alarms"]) for one in healthy) if healthy else None,
            "onset_to_named_median_s": _median([one["onset_to_named_s"] for one in faults]),
        })  # fmt: skip
    return found


def rows(lines: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for one in lines:
        right = f"{one['right']} of {one['faults']}" if one["faults"] else "-"
        yield (
            str(one["cores"]), one["background"] or "none", right,
            "-" if one["onset_to_named_median_s"] is None else f"{one['onset_to_named_median_s']} s",
            "-" if one["warnings"] is None else str(one["warnings"]), ", ".join(one["wrong"]) or "-",
        )  # fmt: skip


def _median(seconds: Sequence[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return round(statistics.median(known), 1) if known else None


HEAD = ("cores", "background", "faults right", "named after", "healthy alone", "wrong")


def section(results: Sequence[Document]) -> str:
    """The section of the page, in Markdown."""
    table = [
        f"| {' | '.join(HEAD)} |",
        f"|{'---|' * len(HEAD)}",
        *(f"| {' | '.join(row)} |" for row in rows(score(results))),
    ]
    wrong = [_wrong(one) for one in results if not one["pass"]]
    parts = [TITLE, _WHAT, "\n".join(table)]
    if wrong:
        parts += ["Wrong answers:", "\n".join(f"- {line}" for line in wrong)]
    return "\n\n".join(parts) + "\n"


def _wrong(one: Document) -> str:
    where = f"{one['cores']} cores" + (f", {one['background']}" if one["background"] else "")
    if one["kind"] != "fault":
        alarms = [alarm["summary"] or "a warning without a cause" for alarm in one["alarms"]]
        return f"healthy alone ({where}): {'; '.join(alarms)}".replace("|", "/")
    found, expected = one["found"], one["expected"]
    said = f"{found['pattern']}, {found['culprit'] or 'no culprit'}" if found["pattern"] else "nothing"
    return f"{one['scenario']} ({where}): {said}; the truth is {expected['pattern']}, {expected['culprit']}".replace(
        "|", "/"
    )


def into(page: str, results: Sequence[Document]) -> str:
    """A page of accuracy with this section in it, in place of the one that it had."""
    made = section(results)
    if _SECTION.search(page):
        return _SECTION.sub(lambda _: made + "\n", page).rstrip("\n") + "\n"
    before, title, after = page.partition("## The scenarios")
    return f"{before.rstrip()}\n\n{made}\n{title}{after}" if title else f"{page.rstrip()}\n\n{made}"
