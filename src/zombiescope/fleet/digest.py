"""The digest of a week: a report as Markdown, to be read by people who were not there.

It says what was lost, to whom, what the sick nodes share, what began, what comes next; and how this week differs from
the one before it. Names are other people's: they are quoted, so that none of them is markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from zombiescope.base.text import printable
from zombiescope.fleet.report import CauseTotal, FleetReport

MOST_LINES = 10
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~])")


def markdown(report: FleetReport, before: FleetReport | None = None) -> str:
    """`before`: the window before this one."""
    return "\n".join(_lines(report, before)) + "\n"


def _lines(report: FleetReport, before: FleetReport | None) -> Iterator[str]:
    yield f"# Fleet digest, {day(report.start_us)} to {day(report.end_us)}"
    yield ""
    yield f"{quoted(report.headline)}."
    yield ""
    sick = f"{len(report.sick):,} sick{_against(before)}"
    yield f"- {len(report.nodes):,} nodes, {sick}, {len(report.incidents):,} incidents"
    yield f"- {lost(report)}"
    if report.blind:
        yield f"- {len(report.blind):,} nodes recorded nothing: neither sick nor healthy"
    if report.damage:
        yield f"- of {len({node for node, _, _ in report.damage}):,} nodes not everything could be read"
    yield from _causes(report, before)
    yield from _shared(report)
    yield from _began(report)
    yield from _next(report)


def _against(before: FleetReport | None) -> str:
    return "" if before is None else f" ({len(before.sick):,} in the window before)"


def lost(report: FleetReport) -> str:
    """What was lost in all, in words."""
    jobs = sum(cause.job_hours_lost for cause in report.causes)
    gpus = [cause.gpu_seconds_lost for cause in report.causes if cause.gpu_seconds_lost is not None]
    seconds = f"{sum(gpus):,.0f} GPU-seconds" if gpus else "GPU-seconds not measured"
    return f"{jobs:,.2f} job-hours and {seconds} lost"


def _causes(report: FleetReport, before: FleetReport | None) -> Iterator[str]:
    if not report.causes:
        return
    known = {(cause.pattern, cause.culprit): cause for cause in (before.causes if before else ())}
    yield from (
        "",
        "## Causes",
        "",
        "| cause | nodes | incidents | job-hours | GPU-seconds | |",
        "|---|--:|--:|--:|--:|---|",
    )
    for cause in report.causes[:MOST_LINES]:
        gpu = "?" if cause.gpu_seconds_lost is None else f"{cause.gpu_seconds_lost:,.0f}"
        trend = _trend(cause, known.get((cause.pattern, cause.culprit))) if before is not None else ""
        counts = f"{cause.nodes:,} | {cause.incidents:,} | {cause.job_hours_lost:,.2f}"
        yield f"| {quoted(cause.name)} | {counts} | {gpu} | {trend} |"


def _trend(cause: CauseTotal, before: CauseTotal | None) -> str:
    if before is None:
        return "new"
    change = cause.nodes - before.nodes
    return "as before" if not change else f"{change:+,} nodes"


def _shared(report: FleetReport) -> Iterator[str]:
    yield from ("", "## What the sick nodes share", "")
    found = report.by.found
    for group in found[:MOST_LINES]:
        rest = f"{group.rest_affected:,} of {group.rest_nodes:,} others"
        yield (
            f"- **{quoted(group.text)}**: {quoted(group.cause or 'any incident')} on {group.affected:,} of "
            f"{group.nodes:,}, and on {rest} (p {group.p_corrected:.1g} after correction)"
        )
    for share in report.units[:MOST_LINES]:
        if share.significant:
            yield (
                f"- unit {quoted(share.unit)}: on {share.sick:,} of {share.sick_nodes:,} sick nodes and "
                f"{share.healthy:,} of {share.healthy_nodes:,} healthy ones"
            )
    if not found:
        yield f"Nothing that chance would not explain ({report.by.tried:,} groups were tried)."


def _began(report: FleetReport) -> Iterator[str]:
    lines = [
        f"- {quoted(f'{each.label}={each.value}')} arrived on {each.nodes:,} nodes from {moment(each.first_us)} on: "
        f"{each.sick_after:,} were sick only after, {each.sick_before:,} only before"
        for each in report.arrivals
        if each.significant
    ]
    lines += [
        f"- from {moment(each.from_us)} on {each.nodes:,} nodes fell ill within two hours" for each in report.onsets
    ]
    if lines:
        yield from ("", "## What began", "", *lines[:MOST_LINES])


def _next(report: FleetReport) -> Iterator[str]:
    soon = [each for each in report.outlook.nodes if each.hours is not None]
    if soon:
        yield from ("", "## Who is next", "")
        for each in soon[:MOST_LINES]:
            grows = f"{each.dying:,} dying cgroups, {each.per_hour:,.0f} more an hour"
            yield f"- {quoted(each.node)}: {grows}, in {each.hours:,.0f} h"


def quoted(text: str) -> str:
    """On one line, and no markup."""
    return _MARKUP.sub(r"\\\1", printable(text))


def day(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d")


def moment(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M UTC")
