"""A diagnosis as Markdown, for a ticket.

What somebody else chose (names of units, containers, functions) stands in most of its sentences. Everything that
Markdown or HTML would take for more than text is escaped, so that a name is no link, no image, no element and no cell
of a table: `_words` for sentences, `_code` for commands and paths.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from zombiescope.base.text import printable
from zombiescope.diagnosis import incident_plan
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import (
    KNOWN,
    NOTHING_FOUND,
    NOTHING_SEEN,
    Cause,
    Incident,
    how_often,
    job_lines,
)
from zombiescope.model.plans.step import Step

Clock = Callable[[int], str]
_COMMANDS = ("undo", "verify")
_SPECIAL = re.compile(r"[\\`\[\]<>|]|:(?=//)|@(?=\w)|(?<=www)\.")


def markdown(found: Diagnosis, heading: str, clock: Clock) -> str:
    return "\n".join(_lines(found, heading, clock)) + "\n"


def _lines(found: Diagnosis, heading: str, clock: Clock) -> Iterator[str]:
    yield f"# {_words(heading)}"
    yield ""
    if not found.incidents:
        yield NOTHING_SEEN if found.blind else NOTHING_FOUND
        yield ""
    for incident in found.incidents:
        yield from _incident(incident, clock)
    yield from (f"{_words(line)}\n" for line in found.noted)
    if found.not_checked:
        yield "## Not checked"
        yield ""
        yield from (f"- {_words(text)}" for text in found.not_checked)


def _incident(incident: Incident, clock: Clock) -> Iterator[str]:
    yield f"## {incident.severity}: {_words(_title(incident))}"
    yield ""
    times = f"{clock(incident.from_us)} to {clock(incident.to_us)} ({incident.seconds:.1f} s)"
    again = f", recurred {how_often(len(incident.recurrences))}" if incident.recurrences else ""
    yield f"{times}, incident {_code(incident.id)}{again}"
    yield ""
    for said, names in job_lines(incident.jobs):
        yield f"{said}: {_words(names)}"
        yield ""
    for number, cause in enumerate(incident.causes):
        yield from _cause(incident, cause, clock, first=number == 0)
    if incident.ruled_out:
        yield "Ruled out:"
        yield ""
        yield from (f"- {one.pattern}: {_words(one.because)}" for one in incident.ruled_out)
        yield ""


def _title(incident: Incident) -> str:
    return incident.causes[0].summary if incident.causes else incident.symptoms[0].text


def _cause(incident: Incident, cause: Cause, clock: Clock, *, first: bool) -> Iterator[str]:
    known = f", {KNOWN[cause.proof]}"
    if not first:
        yield f"Also possible: **{cause.pattern}** (confidence {cause.confidence:.2f}{known}): {_words(cause.summary)}"
        yield ""
        return
    yield f"**{cause.pattern}**, confidence {cause.confidence:.2f}{known}"
    yield ""
    yield "| step | what | value | read from | at |"
    yield "|---|---|---|---|---|"
    for link in cause.chain:
        value = "" if link.value is None else f"{link.value} {link.value_unit or ''}".strip()
        at = "" if link.at_us is None else clock(link.at_us)
        cells = (link.step, link.fact, value, link.source or "", at)
        yield f"| {' | '.join(map(_words, cells))} |"
    yield ""
    if cause.frames:
        yield f"Kernel path: {_code(' > '.join(cause.frames))}"
        yield ""
    plan = incident_plan.plan(incident)
    yield f"Fix: {_words(plan.summary)}"
    yield ""
    for step in plan.steps:
        yield from _step(step)
    yield ""
    if (line := incident_plan.fix_command(plan)) is not None:
        yield f"{_code(line)} shows this plan on the node; `--apply` does it, `--undo` takes it back."
        yield ""


def _step(step: Step) -> Iterator[str]:
    part = f"{step.part}: " if step.part != "look" else ""
    yield f"1. {part}{_code(str(step)) if step.command is not None else _words(step.does)}"
    for name, text in step.details:
        yield f"    - {name}: {_code(text) if name in _COMMANDS and step.kind == 'change' else _words(text)}"


def _code(text: str) -> str:
    """Between as many backticks as no run in the text has: a command may hold some."""
    text = printable(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence} {text} {fence}" if len(fence) > 1 else f"`{text}`"


def _words(text: str) -> str:
    """On one line; an address is text too, and nothing to click on."""
    return _SPECIAL.sub(r"\\\g<0>", printable(" ".join(text.split("\n"))))
