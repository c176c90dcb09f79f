"""A diagnosis as Markdown, for a ticket."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import KNOWN, NOTHING_FOUND, NOTHING_SEEN, Cause, FixStep, Incident, how_often

Clock = Callable[[int], str]


def markdown(found: Diagnosis, heading: str, clock: Clock) -> str:
    return "\n".join(_lines(found, heading, clock)) + "\n"


def _lines(found: Diagnosis, heading: str, clock: Clock) -> Iterator[str]:
    yield f"# {heading}"
    yield ""
    if not found.incidents:
        yield NOTHING_SEEN if found.blind else NOTHING_FOUND
        yield ""
    for incident in found.incidents:
        yield from _incident(incident, clock)
    yield from (f"{line}\n" for line in found.noted)
    if found.not_checked:
        yield "## Not checked"
        yield ""
        yield from (f"- {text}" for text in found.not_checked)


def _incident(incident: Incident, clock: Clock) -> Iterator[str]:
    yield f"## {incident.severity}: {_title(incident)}"
    yield ""
    times = f"{clock(incident.from_us)} to {clock(incident.to_us)} ({incident.seconds:.1f} s), incident `{incident.id}`"
    again = f", recurred {how_often(len(incident.recurrences))}" if incident.recurrences else ""
    yield f"{times}{again}"
    yield ""
    for number, cause in enumerate(incident.causes):
        yield from _cause(cause, clock, first=number == 0)
    if incident.ruled_out:
        yield "Ruled out:"
        yield ""
        yield from (f"- {one.pattern}: {one.because}" for one in incident.ruled_out)
        yield ""


def _title(incident: Incident) -> str:
    return incident.causes[0].summary if incident.causes else incident.symptoms[0].text


def _cause(cause: Cause, clock: Clock, *, first: bool) -> Iterator[str]:
    known = f", {KNOWN[cause.proof]}"
    if not first:
        yield f"Also possible: **{cause.pattern}** (confidence {cause.confidence:.2f}{known}): {cause.summary}"
        yield ""
        return
    yield f"**{cause.pattern}**, confidence {cause.confidence:.2f}{known}"
    yield ""
    yield "| step | what | value | read from | at |"
    yield "|---|---|---|---|---|"
    for link in cause.chain:
        value = "" if link.value is None else f"{link.value} {link.value_unit or ''}".strip()
        at = "" if link.at_us is None else clock(link.at_us)
        yield f"| {link.step} | {_cell(link.fact)} | {value} | {link.source or ''} | {at} |"
    yield ""
    if cause.frames:
        yield f"Kernel path: `{' > '.join(cause.frames)}`"
        yield ""
    yield f"Fix: {cause.fix.summary}"
    yield ""
    if cause.fix.steps:
        for step in cause.fix.steps:
            yield from _step(step)
        yield ""


def _step(step: FixStep) -> Iterator[str]:
    yield f"1. {_code(str(step))}" if step.kind == "command" else f"1. {_cell(step.text)}"
    for name, text in step.details:
        yield f"    - {name}: {_cell(text) if name == 'touches' else _code(text)}"


def _code(text: str) -> str:
    """Between as many backticks as no run in the text has: a command may hold some."""
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
