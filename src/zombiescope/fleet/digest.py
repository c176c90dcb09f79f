"""The digest of a week: a report as Markdown, to be read by people who were not there.

It says what was lost, to whom, what the sick nodes share, what began, what comes next; and how this week differs from
the one before it. Names are other people's: they are quoted, so that none of them is markup.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from zombiescope.base.text import printable
from zombiescope.fleet.numbers import duration
from zombiescope.fleet.reading.identity import MOST_LABELS
from zombiescope.fleet.report import CauseTotal, FleetReport, sentence

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
    for remark in remarks(report):
        yield f"- {quoted(remark)}"
    yield from _causes(report, before)
    yield from _shared(report)
    yield from _began(report)
    yield from _next(report)


def remarks(report: FleetReport) -> Iterator[str]:
    """What a reader has to know of the nodes that are in no figure, and of what could not be read."""
    if report.not_judged:
        whys = Counter(_shape(node.not_judged or "") for node in report.not_judged)
        why, count = whys.most_common(1)[0]
        first = next(node for node in report.not_judged if _shape(node.not_judged or "") == why)
        yield (
            f"{len(report.not_judged):,} nodes were not judged, and are neither sick nor healthy: on {count:,} "
            f"{first.not_judged} ({first.node}); fleet report --diagnose judges them from their recordings"
        )
    if report.blind:
        first = report.blind[0]
        yield (
            f"{len(report.blind):,} nodes recorded nothing in this window, and are neither sick nor healthy; of "
            f"{first.node}, {report.why_blind(first)}"
        )
    if report.copies:
        copy, of = min(report.copies.items())
        yield f"{len(report.copies):,} nodes are copies of another node's recording, and not counted: {copy} is {of}"
    ahead = [(each.ahead_s, name) for name, each in report.newest.items() if each.ahead_s is not None]
    ahead += [(node.ahead_s, node.node) for node in report.nodes if node.ahead_s is not None]
    if ahead:
        worst_s, worst = max(ahead)
        count = len({name for _, name in ahead})
        yield f"the clocks of {count:,} nodes are ahead of the store's, that of {worst} by {duration(worst_s)}"
    changed = sum(node.labels_changed for node in report.nodes)
    if changed:
        yield f"the labels of {changed:,} nodes changed; a sick node counts with those that it fell ill with"
    if report.damage:
        node, day, what = report.damage[0]
        where = f"{node} {day}".strip()
        yield f"{len(report.damage):,} node-days could not be read whole, first {where}: {what}"
    cut = [node for node in report.nodes if node.labels_left_out]
    if cut:
        most = max(cut, key=lambda node: node.labels_left_out)
        yield (
            f"{len(cut):,} nodes have more than {MOST_LABELS} labels; well-known ones were kept first, and "
            f"{most.labels_left_out:,} of {most.node} were left out"
        )
    if report.by.left_out:
        yield f"{report.by.left_out:,} values of labels were too many to compare; choose labels with --by"
    if report.inventory is not None:
        said = report.inventory.document(report.nodes)
        yield (
            f"{said['matched']:,} of {len(report.nodes):,} nodes have labels in {said['source']}"
            + (f"; {len(said['unknown']):,} nodes of it are not in the fleet" if said["unknown"] else "")
        )


def _shape(why: str) -> str:
    """A reason without its numbers, so that like reasons are counted together."""
    return re.sub(r"\d+", "*", why.partition(":")[0])


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
        yield f"- **{quoted(group.text)}**: {quoted(sentence(group))} (p {group.p_corrected:.1g} after correction)"
    for group in report.by.groups:
        if group.because is not None:
            yield f"- {quoted(group.text)} {'is spared' if group.spared else 'is sick'} because {quoted(group.because)}"
    for group in report.by.course:
        if group.significant and group.explained_by is None:
            yield f"- mechanism: {quoted(sentence(group))} (p {group.p_corrected:.1g} after correction)"
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
