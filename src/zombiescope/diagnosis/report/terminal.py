"""A diagnosis as lines of styled text, on one screen: headline, fix, cause, impact, evidence, what was ruled out, and
the next command.

A line has a head that stays, a text that may be wrapped next to it, and a tail at the right margin; pieces are (text,
style), so that this package needs no library of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from zombiescope.diagnosis import incident_plan, patterns
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
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.diagnosis.symptom import first_event, said
from zombiescope.model.plans.plan import Plan
from zombiescope.model.plans.step import Step

Piece = tuple[str, str]
Clock = Callable[[int], str]

STYLES = {"critical": "bold red", "warning": "bold yellow", "info": "bold cyan"}
MOST_RULED_OUT = 4
MOST_COMMANDS = 3
MOST_IMPACTS = 2
MOST_NEXT = 3
_INDENT = 12
"""Columns before the text of a section."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    head: tuple[Piece, ...] = ()
    text: tuple[Piece, ...] = ()
    tail: str = ""
    """Dim, at the right margin of the first line: where and when a fact was read."""
    whole: bool = False
    """A command: it is pasted in one piece, so it is never wrapped."""

    @property
    def plain(self) -> str:
        """Without style, in one line."""
        words = "".join(piece for piece, _ in (*self.head, *self.text))
        return f"{words} · {self.tail}" if self.tail else words.rstrip()


def lines(found: Diagnosis, clock: Clock, *, wordy: bool = False) -> Iterator[ReportLine]:
    if not found.incidents:
        verdict = (NOTHING_SEEN, "bold yellow") if found.blind else (NOTHING_FOUND, "bold green")
        yield ReportLine(text=(verdict,))
    for incident in found.incidents:
        yield from _incident(incident, clock, wordy)
        yield ReportLine()
    for text in found.noted:
        yield ReportLine((("note  ", "cyan"),), ((text, ""),))
    for text in found.not_checked:
        yield ReportLine((("not checked  ", "dim"),), ((text, "dim"),))
    yield from _next(found)


def _incident(incident: Incident, clock: Clock, wordy: bool) -> Iterator[ReportLine]:
    style = STYLES[incident.severity]
    best = incident.causes[0] if incident.causes else None
    head = f"{incident.severity.upper()}  "
    yield ReportLine(((head, style),), ((best.summary if best else incident.symptoms[0].text, "bold"),))
    again = f", recurred {how_often(len(incident.recurrences))}" if incident.recurrences else ""
    still = ", ongoing" if incident.state == "open" else ""
    when = f"{clock(incident.from_us)} – {clock(incident.to_us)} ({incident.seconds:.1f} s{still}{again})"
    yield ReportLine(((" " * len(head), ""),), ((f"{when} · incident {incident.id}", "dim"),))
    if best is None:
        return
    yield ReportLine()
    yield from _fix(incident_plan.plan(incident), wordy)
    yield from _cause(incident, best, wordy)
    yield from _impact(incident, best)
    yield ReportLine()
    yield from _evidence(best, clock, wordy)
    yield from _ruled_out(incident, wordy)


def _section(name: str, style: str = "bold") -> tuple[Piece, ...]:
    return ((f"  {name:<{_INDENT - 2}}", style),)


def _below() -> tuple[Piece, ...]:
    return ((" " * _INDENT, ""),)


def _fix(plan: Plan, wordy: bool) -> Iterator[ReportLine]:
    yield ReportLine(_section("Fix", "bold green"), ((plan.summary, ""),))
    if wordy:
        for step in plan.steps:
            yield _step(step)
            yield from (_detail(name, text) for name, text in _details(step))
        return
    changes = [step for step in plan.steps if step.kind == "change" and step.command is not None]
    commands = changes or [step for step in plan.steps if step.command is not None]
    shown = commands[:MOST_COMMANDS]
    if not shown:
        shown = list(plan.steps[:1])
    for step in shown:
        yield _step(step)
        yield from (_detail(name, text) for name, text in _details(step) if name == "undo")
    if rest := len(plan.steps) - len(shown):
        yield ReportLine(_below(), ((f"+ {rest} more step{'s' if rest > 1 else ''} in the plan", "dim"),))


def _step(step: Step) -> ReportLine:
    is_command = step.command is not None
    part = f"{step.part}: " if step.kind == "advice" and step.part != "look" else ""
    text = ((part, "dim"), (str(step), "green" if is_command else ""))
    return ReportLine(_below(), text if part else text[1:], whole=is_command)


def _details(step: Step) -> tuple[tuple[str, str], ...]:
    """Of a command that changes the node."""
    return step.details if step.kind == "change" else ()


def _detail(name: str, text: str) -> ReportLine:
    return ReportLine(((f"{' ' * _INDENT}  {name:<8} ", "dim"),), ((text, "dim"),))


def _cause(incident: Incident, best: Cause, wordy: bool) -> Iterator[ReportLine]:
    if best.pattern == FALLBACK:
        looked = any(link.step == "closer look" for link in best.chain)
        how = " · no known pattern matches" + (
            f"; looked at closer, confidence {best.confidence:.2f}" if looked else ""
        )
    else:
        how = f" · confidence {best.confidence:.2f} · {_known(best)}"
    yield ReportLine(_section("Cause"), ((best.pattern, "bold magenta"), (how, "dim")))
    for other in incident.causes[1:]:
        if wordy:
            line = f"less likely: {other.pattern}, confidence {other.confidence:.2f}: {other.summary}"
            yield ReportLine(_below(), ((line, "dim"),))


def _known(cause: Cause) -> str:
    seen = next((one.seen_on for one in patterns.every() if one.id == cause.pattern), ())
    kernels = ", ".join(dict.fromkeys(kernel.split()[0] for kernel in seen))
    return f"reproduced on Linux {kernels}" if cause.proof == "kernel" and kernels else KNOWN[cause.proof]


def _impact(incident: Incident, best: Cause) -> Iterator[ReportLine]:
    """Who was hurt: jobs, then what the kernel and others reported, each thing once."""
    found = [f"{fate}: {names}" for fate, names in job_lines(incident.jobs)]
    hurt = [one for one in incident.symptoms if one.subject is not None or one.detector.role == "victim"]
    reported = {best.summary, best.because}
    for thing in dict.fromkeys(one.thing for one in hurt):
        of_it = [one for one in hurt if one.thing == thing]
        text = said(first_event(of_it) or of_it[0])
        if text not in reported and len(found) < MOST_IMPACTS:
            reported.add(text)
            found.append(text)
    for number, text in enumerate(found):
        yield ReportLine(_section("Impact") if number == 0 else _below(), ((text, ""),))


def _evidence(cause: Cause, clock: Clock, wordy: bool) -> Iterator[ReportLine]:
    shown = list(cause.chain) if wordy else _folded(cause)
    if not shown:
        return
    yield ReportLine(text=(("  Evidence", "bold"),))
    width = max(len(link.step) for link in shown)
    for link in shown:
        fact = link.fact if wordy or not link.path else " > ".join(link.path[-2:])
        means = f": {link.means}" if fact != link.fact and link.means else ""
        yield ReportLine(((f"    {link.step:<{width}}  ", "cyan"),), ((fact + means, ""),), _where(link, clock))
    if folded := len(cause.chain) - len(shown):
        yield ReportLine(text=((f"    + {folded} more: --verbose", "dim"),))


def _folded(cause: Cause) -> list[Link]:
    """One symptom from each table, the heaviest; no culprit that the headline names."""
    chain = cause.chain
    shown: list[Link] = []
    tables: set[str | None] = set()
    has_measured = any(link.step == "symptom" and link.source != "events" for link in chain)
    for link in chain:
        if link.step == "symptom":
            if link.source in tables or (link.source == "events" and has_measured):
                continue
            tables.add(link.source)
        if link.step == "culprit" and shown and (link.fact in shown[-1].fact or link.fact in cause.summary):
            continue
        if link.step == "hog" and any(one.step == "symptom" and one.source == link.source for one in shown):
            continue
        shown.append(link)
    return shown


def _where(link: Link, clock: Clock) -> str:
    at = clock(link.at_us).partition(".")[0] if link.at_us else None
    return " ".join(part for part in (link.source, at) if part)


def _ruled_out(incident: Incident, wordy: bool) -> Iterator[ReportLine]:
    shown = incident.ruled_out if wordy else incident.ruled_out[:MOST_RULED_OUT]
    if not shown:
        return
    yield ReportLine()
    yield ReportLine(text=(("  Ruled out", "bold"),))
    width = max(len(one.pattern) for one in shown)
    for one in shown:
        yield ReportLine(((f"    {one.pattern:<{width}}  ", ""),), ((one.because, "dim"),))
    if rest := len(incident.ruled_out) - len(shown):
        yield ReportLine(text=((f"    + {rest} more: --verbose", "dim"),))


def _next(found: Diagnosis) -> Iterator[ReportLine]:
    """The last lines, because those are what a terminal shows."""
    commands = [incident_plan.fix_command(incident_plan.plan(one)) for one in found.incidents if one.causes]
    known = [command for command in commands if command is not None][:MOST_NEXT]
    if known and (found.noted or found.not_checked):
        yield ReportLine()
    for number, command in enumerate(known):
        why = "   # the whole plan; changes nothing without --apply" if number == 0 else ""
        yield ReportLine((("Next: " if number == 0 else "      ", "bold"),), ((command + why, "green"),), whole=True)
