"""A diagnosis as lines of styled text: one screen, read top-down, the chain as a tree.

A line has a head that stays and a text that may be wrapped beside it; pieces are (text, style), so that this room needs
no library of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zombiescope.diagnosis import incident_plan
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import (
    KNOWN,
    NOTHING_FOUND,
    NOTHING_SEEN,
    Cause,
    Incident,
    Link,
    how_often,
    job_lines,
)
from zombiescope.model.plans.step import Step

Piece = tuple[str, str]
Clock = Callable[[int], str]

STYLES = {"critical": "bold red", "warning": "bold yellow", "info": "bold cyan"}
MANY_RULED_OUT = 8


@dataclass(frozen=True, slots=True)
class ReportLine:
    head: tuple[Piece, ...] = ()
    text: tuple[Piece, ...] = ()
    trunk: str = ""
    """What stands under the head when the text is wrapped: the trunk of the tree."""
    whole: bool = False
    """A command: whoever pastes it needs it in one piece, so it is never wrapped."""

    def below(self, width: int) -> tuple[Piece, ...]:
        return ((f"{self.trunk:<{width}}", "dim"),)


def lines(found: Diagnosis, clock: Clock, *, wordy: bool = False) -> Iterator[ReportLine]:
    if not found.incidents:
        said = (NOTHING_SEEN, "bold yellow") if found.blind else (NOTHING_FOUND, "bold green")
        yield ReportLine(text=(said,))
    for incident in found.incidents:
        yield from _incident(incident, clock, wordy)
        yield ReportLine()
    for text in found.noted:
        yield ReportLine((("worth knowing  ", "cyan"),), ((text, ""),))
    for text in found.not_checked:
        yield ReportLine((("not checked  ", "dim"),), ((text, "dim"),))


def _incident(incident: Incident, clock: Clock, wordy: bool) -> Iterator[ReportLine]:
    style = STYLES[incident.severity]
    best = incident.causes[0] if incident.causes else None
    head = f"{incident.severity.upper()}  "
    yield ReportLine(((head, style),), ((best.summary if best else incident.symptoms[0].text, "bold"),))
    again = f", recurred {how_often(len(incident.recurrences))}" if incident.recurrences else ""
    still = ", ongoing" if incident.state == "open" else ""
    when = f"{clock(incident.from_us)} to {clock(incident.to_us)}, {incident.seconds:.1f} s{still}{again}"
    yield ReportLine(((" " * len(head), ""),), ((f"{when}   {incident.id}", "dim"),))
    yield from _jobs(incident, len(head))
    if best is None:
        return
    yield ReportLine()
    yield from _chain(best, clock)
    yield ReportLine()
    yield from _fix(incident)
    others = incident.causes[1:]
    if others:
        named = ", ".join(f"{one.pattern} {one.confidence:.2f}" for one in others)
        yield ReportLine((("  less likely  ", "dim"),), ((named, "dim"),))
    yield from _ruled_out(incident, wordy)


def _jobs(incident: Incident, indent: int) -> Iterator[ReportLine]:
    """Ray jobs that were there, in one line for each fate."""
    for said, names in job_lines(incident.jobs):
        yield ReportLine(((" " * indent, ""),), ((f"{said}: ", "dim"), (names, "")))


def _chain(cause: Cause, clock: Clock) -> Iterator[ReportLine]:
    sure = f"  confidence {cause.confidence:.2f}, {KNOWN[cause.proof]}"
    yield ReportLine(text=((f"  {cause.pattern}", "bold magenta"), (sure, "dim")))
    last = len(cause.chain) - 1
    width = max((len(link.step) for link in cause.chain), default=0)
    for number, link in enumerate(cause.chain):
        head = (("  └─ " if number == last else "  ├─ ", "dim"), (f"{link.step:<{width}}  ", "cyan"))
        yield ReportLine(head, ((link.fact, ""), (_where(link, clock), "dim")), "" if number == last else "  │")


def _where(link: Link, clock: Clock) -> str:
    parts = [part for part in (link.source, clock(link.at_us) if link.at_us else None) if part]
    return f" · {' '.join(parts)}" if parts else ""


def _fix(incident: Incident) -> Iterator[ReportLine]:
    plan = incident_plan.plan(incident)
    yield ReportLine((("  fix  ", "bold green"),), ((plan.summary, ""),))
    for step in plan.steps:
        is_command = step.command is not None
        part = f"{step.part}: " if step.kind == "advice" and step.part != "look" else ""
        text = ((part, "dim"), (str(step), "green" if is_command else ""))
        yield ReportLine((("       ", ""),), text if part else text[1:], whole=is_command)
        yield from _way_back(step)
    if (line := incident_plan.fix_command(plan)) is not None:
        yield ReportLine(
            (("       ", ""),), ((f"{line}   # the same plan on the node; --apply does it", "green"),), whole=True
        )


def _way_back(step: Step) -> Iterator[ReportLine]:
    """Below a command that changes the node."""
    for name, text in step.details if step.kind == "change" else ():
        yield ReportLine(((f"         {name:<8} ", "dim"),), ((text, "dim"),))


def _ruled_out(incident: Incident, wordy: bool) -> Iterator[ReportLine]:
    shown = incident.ruled_out if wordy else incident.ruled_out[:MANY_RULED_OUT]
    if not shown:
        return
    yield ReportLine()
    yield ReportLine(text=(("  ruled out", "bold"),))
    width = max(len(one.pattern) for one in shown)
    for one in shown:
        yield ReportLine(((f"    {one.pattern:<{width}}  ", ""),), ((one.because, "dim"),))
    if len(shown) < len(incident.ruled_out):
        rest = f"    and {len(incident.ruled_out) - len(shown)} more; --verbose shows them"
        yield ReportLine(text=((rest, "dim"),))
