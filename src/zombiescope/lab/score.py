"""The result of all scenarios: the numbers, the table and the page docs/accuracy.md."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from zombiescope.lab.scenario import HERE, by_id

Document = dict[str, Any]
QUIET = "no warning"
"""What is to be said of a healthy load."""


def score(results: Sequence[Document]) -> Document:
    """Of the scenarios that ran."""
    ran = [one for one in results if one["skipped"] is None]
    faults = [one for one in ran if one["kind"] == "fault"]
    healthy = [one for one in ran if one["kind"] != "fault"]
    times = [one["onset_to_named_s"] for one in faults if one["onset_to_named_s"] is not None]
    return {
        "scenarios": len(faults),
        "top1": sum(one["top1"] for one in faults),
        "culprit": sum(one["culprit"] for one in faults),
        "false_alarms": sum(len(one["false_alarms"]) for one in healthy),
        "healthy_s": round(sum(one["seconds"] for one in healthy if one["kind"] == "healthy"), 1),
        "named_live": len(times),
        "onset_to_named_median_s": round(statistics.median(times), 1) if times else None,
        "skipped": len(results) - len(ran),
        "fixes": len(fixes := [one["fix"] for one in ran if one.get("fix")]),
        "fixes_verified": sum(one["verified"] is True for one in fixes),
    }


def sentence(total: Document) -> str:
    median = total["onset_to_named_median_s"]
    return (
        f"first pattern right in {total['top1']} of {total['scenarios']}, culprit named in {total['culprit']}; "
        + ("" if median is None else f"named after {median} s at the median; ")
        + f"false alarms (warnings included): {total['false_alarms']} in {total['healthy_s'] / 60:.0f} minutes of "
        "healthy load"
        + (f"; repaired by `fix` and verified: {total['fixes_verified']} of {total['fixes']}" if total["fixes"] else "")
    )


def rows(results: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for one in results:
        name = one["scenario"] if one["where"] == HERE else f"{one['scenario']} (node)"
        if one["skipped"] is not None:
            yield name, one["expected"]["pattern"] or "healthy", "-", one["skipped"], "", "not run"
        elif one["kind"] != "fault":
            yield name, QUIET, _alarms(one["false_alarms"]), "", "", "right" if one["pass"] else "wrong"
        else:
            named = one["onset_to_named_s"]
            yield (
                name, one["expected"]["pattern"], one["found"]["pattern"] or "nothing",
                one["found"]["culprit"] or "-", "-" if named is None else f"{named} s",
                "right" if one["pass"] else "wrong",
            )  # fmt: skip


def _alarms(rang: Sequence[Document]) -> str:
    counted = Counter(one["severity"] for one in rang)
    return ", ".join(f"{count} {severity}" for severity, count in sorted(counted.items())) or QUIET


def page_of(results: Sequence[Document]) -> str:
    total = score(results)
    parts = [
        "# How often the diagnosis is right",
        "Written by `zombiescope lab score --page docs/accuracy.md`: each fault really happens on the machine, a "
        "recorder sees it, and what the diagnosis says is compared with what is known to be true. "
        f"Linux {platform.release()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')}.",
        f"**{sentence(total)[0].upper()}{sentence(total)[1:]}.**",
        _table(("scenario", "truth", "found first", "culprit reported", "named after", ""), rows(results)),
        "*Named after* is the time from the moment the fault began until the live doctor had written the right "
        "pattern and the right culprit. *Culprit reported* is the name, unit and cgroup that the diagnosis blamed.",
        "## The scenarios",
        _table(("scenario", "what is done", "who is to blame", "kernel frames seen"), _scenarios(results)),
    ]
    if total["fixes"]:
        head = ("scenario", "steps that were applied", "memory cgroups", "verdict", "what was seen afterwards")
        parts += ["## Repaired by its own plan", _table(head, _repairs(results))]
    places = {one["where"]: None for one in results if one["where"] != HERE}
    elsewhere = [f"Rows with *(node)* ran in {place}, a whole machine with systemd." for place in places]
    return "\n\n".join([*parts[:4], *elsewhere, *parts[4:]]) + "\n"


def _repairs(results: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for one in results:
        if (fix := one.get("fix")) is not None:
            name = one["scenario"] if one["where"] == HERE else f"{one['scenario']} (node)"
            done = [step["id"].partition(":")[0] for step in fix["steps"] if step["state"] == "applied"]
            counts = f"{fix['cgroups_before_fix']:,} -> {fix['cgroups_after_fix']:,}"
            yield name, ", ".join(done) or "-", counts, fix["verdict"], "; ".join(fix["checks"])


def _scenarios(results: Sequence[Document]) -> Iterator[tuple[str, ...]]:
    for name in {one["scenario"]: None for one in results}:
        scenario = by_id(name)
        yield scenario.id, scenario.does, " ".join(scenario.truth.blames) or "nobody", scenario.frames or "-"


def _table(head: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> str:
    made = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*made, *(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)])
