"""What a diagnosis found, as `diagnose` tells it, and what the doctor noted while a recorder ran."""

from __future__ import annotations

from typing import Any

from zombiescope.diagnosis.diagnose import Diagnosis, diagnose
from zombiescope.diagnosis.incident_ids import with_known_ids
from zombiescope.diagnosis.report.document import document
from zombiescope.documents.window import Window
from zombiescope.recording.reader import Recording
from zombiescope.views.incidents import incidents


def diagnosed(recording: Recording, window: Window, *, live: bool = False) -> Diagnosis:
    """Under the ids that the doctor gave them, where it saw them too."""
    return with_known_ids(diagnose(recording, window.start_us, window.end_us, live=live), incidents(recording))


def of_diagnosis(found: Diagnosis) -> dict[str, Any]:
    return document(found)


def noted(recording: Recording, window: Window) -> dict[str, Any]:
    """What the doctor noted in the window, the worst first; `not_checked` is for a diagnosis to say."""
    start, end = window.start_us / 1e6, window.end_us / 1e6
    known = [
        {"node": recording.name, "recurrences": [], **entry}
        for entry in incidents(recording)
        if float(entry.get("to") or 0) >= start and float(entry.get("from") or 0) < end
    ]
    ranks = {"critical": 0, "warning": 1}
    known.sort(key=lambda entry: (ranks.get(str(entry.get("severity")), 2), -float(entry.get("from") or 0)))
    return {"node": recording.name, "window": {"from": start, "to": end}, "incidents": known, "not_checked": []}
