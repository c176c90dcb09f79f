"""What a diagnosis found, as `diagnose` reports it, and what the doctor noted while a recorder ran."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from zombiescope.base.severity import rank
from zombiescope.diagnosis import workload as workloads
from zombiescope.diagnosis.diagnose import Diagnosis, Progress, diagnose
from zombiescope.diagnosis.incident_ids import with_known_ids
from zombiescope.diagnosis.order import worst_first
from zombiescope.diagnosis.report.document import document
from zombiescope.diagnosis.report.document import together as documents_together
from zombiescope.query.events import events
from zombiescope.query.incidents import incidents
from zombiescope.questions.views import DiagnoseQuestion
from zombiescope.questions.window import Window
from zombiescope.store.event import Event
from zombiescope.store.gaps import Gap
from zombiescope.store.health import LIVE_DIAGNOSIS
from zombiescope.store.reader import Recording

AROUND_US = 60_000_000
"""Causes come before what they cause, and the end is reported after it."""


@dataclass(frozen=True, slots=True)
class DiagnosisAnswer:
    """Of one recording; it may be closed by now."""

    found: Diagnosis
    window: Window
    heading: str
    outage: Outage | None = None
    """When the live diagnosis failed in the window."""
    job: workloads.JobAnswer | None = None
    """What became of the Ray job that was asked for."""

    def document(self) -> dict[str, Any]:
        about = {} if self.job is None else {"ray_job": self.job.document()}
        return document(self.found) | about | _failed(self.outage)

    def at_least(self, severity: str) -> bool:
        """Whether any incident is at least this severe."""
        return any(rank(each.severity) >= rank(severity) for each in self.found.incidents)


def together(found: list[DiagnosisAnswer]) -> dict[str, Any]:
    """Of several recordings."""
    jobs = [{"node": each.found.node, **each.job.document()} for each in found if each.job is not None]
    return documents_together([each.found for each in found]) | ({"ray_job": jobs} if jobs else {})


def window_of(recording: Recording, question: DiagnoseQuestion) -> Window:
    """What is looked at: around a moment a minute more. Raises QuestionError."""
    window = question.window.choose(recording)
    if question.incident is not None and not question.window.given:
        return around_incident(recording, question.incident, window)
    if question.window.at is None:
        return window
    return Window(window.start_us - AROUND_US, window.end_us + AROUND_US, window.zone)


def around_incident(recording: Recording, name: str, whole: Window) -> Window:
    """Where the doctor noted it; else all of the recording."""
    for entry in incidents(recording):
        if str(entry.get("id")).startswith(name):
            start, end = (round(float(entry.get(key) or 0) * 1e6) for key in ("from", "to"))
            return Window(start - AROUND_US, end + AROUND_US, whole.zone)
    return whole


def _only(name: str, found: DiagnosisAnswer) -> DiagnosisAnswer | None:
    """The incident of this id; None where there is none, or the start of an id is that of several."""
    chosen = tuple(each for each in found.found.incidents if each.id.startswith(name))
    return replace(found, found=replace(found.found, incidents=chosen)) if len(chosen) == 1 else None


def answer(
    recording: Recording, question: DiagnoseQuestion, *, live: bool = False, progress: Progress | None = None
) -> DiagnosisAnswer | None:
    """None: this recording knows nothing of the job or pod that was asked for. Raises QuestionError."""
    window = window_of(recording, question)
    subject = question.subject
    if question.incident is not None:
        return _only(question.incident, diagnosed(recording, window, live=live, progress=progress))
    if subject is None:
        return diagnosed(recording, window, live=live, progress=progress)
    about = workloads.find(recording, *subject, window.start_us, window.end_us)
    if about is None:
        return None
    start, end = max(window.start_us, about.from_us - AROUND_US), min(window.end_us, about.to_us + AROUND_US)
    known = diagnosed(recording, Window(start, end, window.zone), live=live, progress=progress)
    ran = f"{about.tasks} tasks on {len(about.cpus)} cores" if about.tasks else "no task of it was recorded"
    said = f"{subject[0]} {subject[1]}: {ran}, {about.events} events"
    job = workloads.job_answer(recording, subject[1], known.found, about) if subject[0] == "Ray job" else None
    incidents = workloads.only(known.found, about)
    if job is not None:  # the incident that it died of first; those that did not touch it are in the answer
        incidents = tuple(sorted(incidents, key=lambda each: (each.id != job.of_incident, each.id in job.untouched_by)))
    found = replace(known.found, incidents=incidents)
    return replace(known, found=found, heading=f"{known.heading}  {said}", job=job)


def diagnosed(
    recording: Recording, window: Window, *, live: bool = False, progress: Progress | None = None
) -> DiagnosisAnswer:
    """Under the ids that the doctor gave them, where it saw them too."""
    found = diagnose(recording, window.start_us, window.end_us, live=live, progress=progress)
    heading = f"{recording.name}  {window.heading()}"
    known = with_known_ids(found, incidents(recording))
    failed = outage(recording, window)
    known = replace(known, not_checked=not_checked(failed, known.not_checked, window))
    return DiagnosisAnswer(known, window, heading, failed)


def _failed(found: Outage | None) -> dict[str, Any]:
    return {} if found is None else {"live_diagnosis": found.document()}


def noted(recording: Recording, window: Window) -> dict[str, Any]:
    """What the live diagnosis noted in the window, the worst first, and when it failed."""
    start, end = window.start_us / 1e6, window.end_us / 1e6
    known = [
        {"node": recording.name, "recurrences": [], **entry}
        for entry in incidents(recording)
        if float(entry.get("to") or 0) >= start and float(entry.get("from") or 0) < end
    ]
    failed = outage(recording, window)
    return {
        "node": recording.name,
        "window": {"from": start, "to": end},
        "incidents": worst_first(known),
        "not_checked": list(not_checked(failed, (), window)),
        **_failed(failed),
    }


# --- live diagnosis ---------------------------------------------------------------------------------------------------
# When the live diagnosis failed while something was recorded: silence then is no sign of health.
#
# It is read from what the recorder wrote: gaps of the source "live diagnosis", and events of the kind helper_failed.
# Recorders of older versions wrote only such events, called it the doctor, and gave the number of a signal as the
# reason.

_KIND = "helper_failed"
_OF_IT = re.compile(r"\b(live diagnosis|diagnosis pass|doctor)\b", re.IGNORECASE)
_BEFORE_WHY = re.compile(r"^[^:]*\b(?:live diagnosis|diagnosis pass|doctor)\b[^:]*: *", re.IGNORECASE)
_SIGNAL = re.compile(r"-(\d{1,2})$")


@dataclass(frozen=True, slots=True)
class Outage:
    """All failures in a window together."""

    failures: int
    from_us: int
    to_us: int
    why: str
    """Of the last one."""

    def document(self) -> dict[str, Any]:
        return {"failures": self.failures, "from": self.from_us / 1e6, "to": self.to_us / 1e6, "why": self.why}

    def line(self, window: Window) -> str:
        """As a diagnosis lists what it could not check."""
        often = "failed once" if self.failures == 1 else f"failed {self.failures} times"
        start, end = window.clock(self.from_us), window.clock(self.to_us)
        when = f"at {start}" if start == end else f"between {start} and {end}"
        return f"{LIVE_DIAGNOSIS}: {often} {when} ({self.why}); incidents may have gone unreported"


def outage(recording: Recording, window: Window) -> Outage | None:
    """None when nothing in the window says that it failed."""
    start, end = window.start_us, window.end_us
    gaps = [gap for gap in recording.gaps(start, end) if gap.source == LIVE_DIAGNOSIS]
    failed = [event for event in events(recording, start, end, kinds=[_KIND]) if _is_of_it(event)]
    if not gaps and not failed:
        return None
    begins = [*(gap.from_us for gap in gaps), *(event.at_us for event in failed)]
    ends = [*(gap.to_us for gap in gaps), *(event.at_us for event in failed)]
    return Outage(len(failed) or len(gaps), max(min(begins), start), min(max(ends), end), _why(gaps, failed))


def not_checked(found: Outage | None, lines: Iterable[str], window: Window) -> tuple[str, ...]:
    """What a diagnosis could not check, with the outage in one line instead of a line for each of its gaps."""
    if found is None:
        return tuple(lines)
    return (found.line(window), *(line for line in lines if not line.startswith(f"{LIVE_DIAGNOSIS}:")))


def _is_of_it(event: Event) -> bool:
    part = event.fields.get("part")
    return part == LIVE_DIAGNOSIS if part is not None else _OF_IT.search(event.text) is not None


def _why(gaps: list[Gap], failed: list[Event]) -> str:
    said = _BEFORE_WHY.sub("", failed[-1].text) if failed else gaps[-1].why
    number = _SIGNAL.fullmatch(said)
    with suppress(ValueError):
        return said if number is None else signal.Signals(int(number[1])).name
    return said
