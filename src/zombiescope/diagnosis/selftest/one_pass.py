"""The diagnosis pass over the built-in recording, in its fork.

Nothing is written, frozen or announced, and the recording is read in place: a read-only node without a temporary
folder can run it.
"""

from __future__ import annotations

import json
from typing import Any

from zombiescope.diagnosis import live
from zombiescope.diagnosis.diagnose import Diagnosis, examine
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident_ids import with_known_ids
from zombiescope.diagnosis.selftest import built_in
from zombiescope.store.reader import open_recording

BEFORE_US = 12_000_000
"""What is diagnosed of the recording: its end, as in a live pass. The journal of the hour before is history."""


def answer() -> dict[str, Any]:
    """What was found, or why there is nothing to compare. A crash leaves no answer."""
    try:
        built_in.check()
        return {"found": _found()}
    except built_in.DamagedError as error:
        return {"damaged": error.what}
    except MemoryError as error:
        return {"memory": str(error) or "MemoryError"}


def _found() -> dict[str, Any]:
    """By the steps of a live pass (live.look) that write nothing."""
    with open_recording(built_in.RECORDING) as recording:
        from_us = recording.end_us - BEFORE_US
    with open_recording(built_in.RECORDING, since_us=from_us - live.HISTORY_US) as recording:
        facts = Facts(recording, from_us, recording.end_us + 1)
        examine(facts, live=True)
        recording.reach_back()
        result = with_known_ids(examine(facts.with_history(), live=True), [])
        json.dumps(live.merged([], result, recording.end_us))
        return _summary(result)


def _summary(result: Diagnosis) -> dict[str, Any]:
    """In the words of expected.json."""
    summary: dict[str, Any] = {"incidents": len(result.incidents)}
    if not result.incidents:
        return summary
    worst = result.incidents[0]
    cores = [symptom.cpu for symptom in worst.symptoms if symptom.kind == "core_saturated"]
    cause = worst.causes[0] if worst.causes else None
    return summary | {
        "pattern": cause.pattern if cause else None,
        "severity": worst.severity,
        "culprit": cause.culprit.name if cause and cause.culprit else None,
        "hog": cause.hog.name if cause and cause.hog else None,
        "core": cores[0] if cores else None,
    }
