"""A diagnosis as lines of styled text: one screen, read top-down, the chain as a tree.

Lines are lists of (text, style) so that this room needs no library of the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Cause, Incident, Link

Line = list[tuple[str, str]]
Clock = Callable[[int], str]

STYLES = {"critical": "bold red", "warning": "bold yellow", "info": "bold cyan"}
MANY_RULED_OUT = 8


def lines(found: Diagnosis, clock: Clock, *, wordy: bool = False) -> Iterator[Line]:
    if not found.incidents:
        yield [("nothing wrong was found in this window, on what could be seen", "bold green")]
    for incident in found.incidents:
        yield from _incident(incident, clock, wordy)
        yield []
    for text in found.not_checked:
        yield [("not checked  ", "dim"), (text, "dim")]


def _incident(incident: Incident, clock: Clock, wordy: bool) -> Iterator[Line]:
    style = STYLES[incident.severity]
    best = incident.causes[0] if incident.causes else None
    yield [(f"{incident.severity.upper()}  ", style), (best.summary if best else incident.symptoms[0].text, "bold")]
    again = f", again {len(incident.recurrences)} times since" if incident.recurrences else ""
    still = ", still going on" if incident.state == "open" else ""
    when = f"{clock(incident.from_us)} to {clock(incident.to_us)}, {incident.seconds:.1f} s{still}{again}"
    yield [(f"          {when}   {incident.id}", "dim")]
    if best is None:
        return
    yield []
    yield from _chain(best, clock)
    yield []
    yield from _fix(best)
    others = incident.causes[1:]
    if others:
        yield [("  less likely  ", "dim"), (", ".join(f"{one.pattern} {one.confidence:.2f}" for one in others), "dim")]
    yield from _ruled_out(incident, wordy)


def _chain(cause: Cause, clock: Clock) -> Iterator[Line]:
    doubt = {"kernel": "", "golden": ", known from a documented case", "literature": ", only known from literature"}
    yield [
        (f"  {cause.pattern}", "bold magenta"),
        (f"  confidence {cause.confidence:.2f}{doubt[cause.proof]}", "dim"),
    ]
    last = len(cause.chain) - 1
    width = max((len(link.step) for link in cause.chain), default=0)
    for number, link in enumerate(cause.chain):
        branch = "└─ " if number == last else "├─ "
        yield [
            (f"  {branch}", "dim"),
            (f"{link.step:<{width}}  ", "cyan"),
            (link.fact, ""),
            (_where(link, clock), "dim"),
        ]


def _where(link: Link, clock: Clock) -> str:
    parts = [part for part in (link.source, clock(link.at_us) if link.at_us else None) if part]
    return f"  [{' '.join(parts)}]" if parts else ""


def _fix(cause: Cause) -> Iterator[Line]:
    yield [("  fix  ", "bold green"), (cause.fix.summary, "")]
    for step in cause.fix.steps:
        yield [("       ", ""), (step, "green")]


def _ruled_out(incident: Incident, wordy: bool) -> Iterator[Line]:
    shown = incident.ruled_out if wordy else incident.ruled_out[:MANY_RULED_OUT]
    if not shown:
        return
    yield []
    yield [("  ruled out", "bold")]
    width = max(len(one.pattern) for one in shown)
    for one in shown:
        yield [(f"    {one.pattern:<{width}}  ", ""), (one.because, "dim")]
    if len(shown) < len(incident.ruled_out):
        yield [(f"    and {len(incident.ruled_out) - len(shown)} more; --verbose shows them", "dim")]
