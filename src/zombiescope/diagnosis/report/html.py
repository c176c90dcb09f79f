"""A diagnosis as one self-contained HTML file: what happened, the chain, the pictures that prove it, what is ruled out.

Nothing is loaded from anywhere and nothing is run: it is text and pictures, fit for a ticket. The flame graph of the
guilty seconds stands beside one of quiet seconds and their difference, so that a reader sees what is not always there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from html import escape
from importlib.resources import files

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import KNOWN, NOTHING_FOUND, NOTHING_SEEN, Cause, Incident, Link
from zombiescope.diagnosis.report.strip import strip
from zombiescope.profile import flame, heatmap, stacks, svg
from zombiescope.profile.selection import Filters, Selection
from zombiescope.recording.columns import Ints
from zombiescope.recording.reader import Recording

AROUND_US = 20_000_000
QUIET_US = 10_000_000
MAX_PICTURED = 5
"""Incidents with pictures; the others are told in words."""

Clock = Callable[[int], str]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


@dataclass(frozen=True, slots=True)
class Looks:
    """How times are written."""

    clock: Clock
    zone: tzinfo


def page(recording: Recording, found: Diagnosis, heading: str, looks: Looks) -> str:
    body = "".join(_body(recording, found, heading, looks))
    style = files("zombiescope.diagnosis.report").joinpath("report.css").read_text()
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f'<meta http-equiv=Content-Security-Policy content="{_POLICY}">'
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(heading)}</title><style>{style}</style>{body}</html>\n"
    )


def _body(recording: Recording, found: Diagnosis, heading: str, looks: Looks) -> Iterator[str]:
    yield f"<h1>{escape(heading)}</h1>"
    if not found.incidents:
        yield f"<h2>{NOTHING_SEEN if found.blind else NOTHING_FOUND}</h2>"
    for number, incident in enumerate(found.incidents):
        yield from _incident(recording, incident, looks, pictured=number < MAX_PICTURED)
    yield from (f"<p>{escape(text)}" for text in found.noted)
    if found.not_checked:
        yield "<h3>Not checked</h3><ul class=faint>"
        yield from (f"<li>{escape(text)}" for text in found.not_checked)
        yield "</ul>"


def _incident(recording: Recording, incident: Incident, looks: Looks, *, pictured: bool) -> Iterator[str]:
    best = incident.causes[0] if incident.causes else None
    title = best.summary if best else incident.symptoms[0].text
    again = f", again {len(incident.recurrences)} times since" if incident.recurrences else ""
    yield f"<article class={incident.severity}><span class=tag>{incident.severity}</span><h2>{escape(title)}</h2>"
    yield (
        f"<p class=faint>{looks.clock(incident.from_us)} to {looks.clock(incident.to_us)}, {incident.seconds:.1f} s"
        f"{again} &middot; incident <code>{incident.id}</code></p>"
    )
    if best:
        yield from _cause(best, looks)
    if pictured:
        yield from _pictures(recording, incident, looks)
    yield from _others(incident)
    yield "</article>"


def _cause(cause: Cause, looks: Looks) -> Iterator[str]:
    yield (
        f"<h3>How we know <span class=faint>&mdash; {escape(cause.pattern)}, confidence {cause.confidence:.2f}, "
        f"{KNOWN[cause.proof]}</span></h3><ol class=chain>"
    )
    yield from (_link(link, looks) for link in cause.chain)
    yield "</ol>"
    if cause.frames:
        yield f"<p class=faint>kernel path: <code>{escape(' > '.join(cause.frames))}</code></p>"
    told = zip(cause.fix.steps, cause.fix.commands, strict=True)
    steps = "\n".join(escape(step if is_command else f"# {step}") for step, is_command in told)
    yield f"<h3>What to do</h3><div class=fix>{escape(cause.fix.summary)}<pre>{steps}</pre></div>"


def _link(link: Link, looks: Looks) -> str:
    where = " ".join(part for part in (link.source, looks.clock(link.at_us) if link.at_us else None) if part)
    return (
        f"<li><span class=step>{escape(link.step)}</span>"
        f"<span>{escape(link.fact)} <span class=faint>{escape(where)}</span></span>"
    )


def _pictures(recording: Recording, incident: Incident, looks: Looks) -> Iterator[str]:
    around = Facts(recording, incident.from_us - AROUND_US, incident.to_us + AROUND_US)
    if around.cores is not None:
        yield "<h3>Every core, second by second</h3><figure>"
        yield strip(around.cores, incident.symptoms, looks.clock) + "</figure>"
    cpus = frozenset(symptom.cpu for symptom in incident.symptoms if symptom.cpu is not None)
    filters = Filters(cpus=cpus)
    named = "core" if len(cpus) == 1 else "cores"
    where = f", {named} {', '.join(map(str, sorted(cpus)))}" if cpus else ""
    whole = Selection(recording, around.start_us, around.end_us, filters)
    yield "<h3>Sub-second heat map</h3><figure>"
    yield svg.heatmap(heatmap.subsecond(whole), f"samples{where}", looks.zone) + "</figure>"
    yield from _flames(recording, incident, around, filters, where)


def _flames(recording: Recording, incident: Incident, around: Facts, filters: Filters, where: str) -> Iterator[str]:
    guilty = (incident.from_us, max(incident.to_us, incident.from_us + 1_000_000))
    quiet = _quiet(around, incident)
    known = stacks.load(recording, [guilty, *([quiet] if quiet else [])])
    counts = Selection(recording, *guilty, filters, known).counts()
    yield "<h3>The guilty seconds</h3><figure>" + _flame(known, counts, f"during the incident{where}") + "</figure>"
    if quiet is None:
        return
    base = Selection(recording, *quiet, filters, known).counts()
    yield "<h3>Quiet seconds</h3><figure>" + _flame(known, base, f"before it{where}") + "</figure>"
    if counts.sum() and base.sum():
        tree = flame.fold(known, counts, base)
        yield "<h3>The difference</h3><figure>" + svg.flamegraph(tree, f"red grew, blue shrank{where}") + "</figure>"


def _flame(known: stacks.Stacks, counts: Ints, heading: str) -> str:
    return svg.flamegraph(flame.fold(known, counts, below_ratio=0.002), heading)


def _quiet(around: Facts, incident: Incident) -> tuple[int, int] | None:
    """Seconds before the incident, else after it; None when the recording has neither."""
    before = (max(around.start_us, incident.from_us - QUIET_US), incident.from_us)
    after = (incident.to_us, min(around.end_us, incident.to_us + QUIET_US))
    for span in (before, after):
        if span[1] - span[0] >= 1_000_000:
            return span
    return None


def _others(incident: Incident) -> Iterator[str]:
    for cause in incident.causes[1:]:
        said = f"less likely: {cause.pattern} ({cause.confidence:.2f}): {cause.summary}"
        yield f"<p class=faint>{escape(said)}</p>"
    if incident.ruled_out:
        yield "<h3>Ruled out</h3><table>"
        yield from (
            f"<tr><td><code>{escape(one.pattern)}</code><td>{escape(one.because)}" for one in incident.ruled_out
        )
        yield "</table>"
