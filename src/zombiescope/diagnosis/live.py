"""The doctor: looks at the last minutes of a recording that is still being made, and keeps incidents.json.

The recorder asks for a look when something is suspicious (standby.py is the process that looks). An incident opens when
it is first seen, stays open while its symptoms reach to the end of the recording, and closes when they no longer do.
The window of an incident that is a warning or worse is frozen: retention leaves it alone.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from zombiescope.base.severity import rank
from zombiescope.base.text import printable
from zombiescope.diagnosis.closer_look import unexplained
from zombiescope.diagnosis.diagnose import Diagnosis, examine, ray_jobs_of
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.incident_ids import with_known_ids
from zombiescope.diagnosis.ray_jobs import RayJobs, Reach
from zombiescope.diagnosis.report.document import incident as to_document
from zombiescope.diagnosis.report.document import job_documents
from zombiescope.diagnosis.thresholds import LIVE_AROUND_US, LIVE_CLOSED_AFTER_US, LIVE_CUT_S, RAY_FAILS_AFTER_US
from zombiescope.store import incident_file
from zombiescope.store.freeze import freeze, list_frozen, thaw
from zombiescope.store.reader import open_recording

HISTORY_US = 180_000_000
"""Before the window: every part of a recording says again what there is, so a few minutes are enough to name most."""


class Looked(NamedTuple):
    """What is in incidents.json, and the processes of open incidents that no pattern explains."""

    known: list[dict[str, Any]]
    unexplained: list[tuple[int, int]]


def look(node_dir: Path, from_us: int) -> Looked:
    """Diagnoses from `from_us` to the end of the recording, writes incidents.json, and answers what is in it.

    First with the last minutes alone, which is cheap, and is written down at once. If that finds something new and
    serious, again with all that was recorded: who restarted in the last hour may be to blame.
    """
    with open_recording(node_dir, since_us=from_us - HISTORY_US) as recording:
        facts = Facts(recording, from_us, recording.end_us + 1)
        looked, is_new = _look(node_dir, facts)
        if is_new:
            recording.reach_back()
            looked, _ = _look(node_dir, facts.with_history())
    return looked


def _look(node_dir: Path, facts: Facts) -> tuple[Looked, bool]:
    """What is known now, and whether it is something serious that was not."""
    before, end_us = incident_file.read(node_dir), facts.end_us - 1
    found = with_known_ids(examine(facts, live=True), before)
    known = with_jobs(merged(before, found, end_us), facts)
    incident_file.write(node_dir, known, end_us)
    is_new = _tell(before, found)
    for each in found.incidents:
        if each.severity != "info":
            _keep(node_dir, each)
    return Looked(known, unexplained(found.incidents, facts.recording, facts.start_us, facts.end_us)), is_new


def merged(before: list[dict[str, Any]], found: Diagnosis, end_us: int) -> list[dict[str, Any]]:
    """What was known, replaced by what is known better; an open incident that was not seen again is over."""
    seen = {each.id: to_document(each) for each in found.incidents}
    kept = []
    for entry in before:
        now = seen.pop(str(entry.get("id")), None)
        entry = entry if now is None else _continued(entry, now)
        ended = float(entry.get("to") or 0) * 1e6 < end_us - LIVE_CLOSED_AFTER_US
        kept.append({**entry, "state": "closed"} if ended else entry)
    return sorted([*kept, *seen.values()], key=lambda entry: float(entry.get("from") or 0))


def with_jobs(known: list[dict[str, Any]], facts: Facts) -> list[dict[str, Any]]:
    """Incidents with their jobs as they are known now: a job ends after the incident that it died of is over."""
    recent_us = facts.end_us - RAY_FAILS_AFTER_US - HISTORY_US
    recent = [entry for entry in known if float(entry.get("to") or 0) * 1e6 >= recent_us]
    jobs = ray_jobs_of(facts.recording, facts.start_us, facts.end_us)
    account = jobs.account([Reach.of_document(entry) for entry in recent])
    now = {id(entry): job_documents(fates) for entry, fates in zip(recent, account, strict=True)}
    return [
        {**entry, "jobs": [*now[id(entry)], *_further_back(entry, jobs)]} if id(entry) in now else entry
        for entry in known
    ]


def _further_back(entry: dict[str, Any], jobs: RayJobs) -> list[dict[str, Any]]:
    """Jobs of an incident whose events are further back than this look reaches."""
    known = jobs.outcomes
    return [job for job in entry.get("jobs") or () if job.get("job") not in known]


def _continued(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """As it is known now. Windows are short, so of one that lasts only the last minutes may be known now: then it began
    when it did, is as bad as it ever was and as dear, and its best explanation stays."""
    if now["from"] - float(before.get("from") or 0) < LIVE_CUT_S:
        return now
    dearer = max((before, now), key=_lost)
    better = before if _confidence(before) > _confidence(now) and dearer is before else now
    worse = max((before, now), key=lambda entry: rank(str(entry.get("severity"))))
    explained: dict[str, Any] = {name: better[name] for name in ("causes", "ruled_out") if name in better}
    explained |= {"cost": dearer.get("cost")}
    symptoms = _joined(before.get("symptoms") or [], now["symptoms"])
    return {**now, **explained, "from": before["from"], "severity": worse["severity"], "symptoms": symptoms}


def _confidence(entry: dict[str, Any]) -> float:
    causes = entry.get("causes") or ()
    return float(causes[0].get("confidence") or 0) if causes else 0.0


def _lost(entry: dict[str, Any]) -> float:
    """What it cost, in seconds of GPUs; what their driver says comes seconds later than anything else."""
    return float((entry.get("cost") or {}).get("gpu_seconds_lost") or 0)


def _joined(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One that was there before goes on; one that is not there any more was there."""
    known = {_place(symptom): symptom for symptom in before}
    joined = [_longer(known.pop(_place(symptom), None), symptom) for symptom in now]
    return sorted([*known.values(), *joined], key=lambda symptom: float(symptom.get("at") or 0))


def _place(symptom: dict[str, Any]) -> tuple[object, ...]:
    return symptom.get("kind"), symptom.get("cpu"), symptom.get("group")


def _longer(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    if before is None or float(before.get("at") or 0) >= now["at"]:
        return now
    return {**now, "at": before["at"], "seconds": round(now["to"] - float(before["at"]), 3)}


def _tell(before: list[dict[str, Any]], found: Diagnosis) -> bool:
    """One line for each incident that is new, or was none to speak of until now: in the terminal of `up`, or in the
    journal of a unit. Answers whether there was any."""
    anything = False
    typed = os.environ.get("ZOMBIESCOPE_CALLED") or "zombiescope"  # as whoever started the recorder types it
    told = {str(entry.get("id")): rank(str(entry.get("severity"))) for entry in before}
    for each in found.incidents:
        if rank(each.severity) > told.get(each.id, 0):
            at = time.strftime("%H:%M:%S", time.localtime(each.from_us // 1_000_000))
            what = each.causes[0].summary if each.causes else each.symptoms[0].text
            said = f"{at} {each.severity}: {what} (incident {each.id}; {typed} diagnose --at {at})"
            print(printable(said), file=sys.stderr, flush=True)  # noqa: T201
            anything = True
    return anything


def _keep(node_dir: Path, each: Incident) -> None:
    """Freezes its window, as it is known now, in place of how it was known before."""
    mine = f"incident {each.id}"
    why = mine + (f" {each.causes[0].pattern}" if each.causes else "")
    with suppress(OSError, ValueError):
        before = [frozen for frozen in list_frozen(node_dir) if frozen.why.startswith(mine)]
        from_us = min([each.from_us - LIVE_AROUND_US, *(frozen.from_us for frozen in before)])
        kept = freeze(node_dir, from_us, each.to_us + LIVE_AROUND_US, why)
        thaw(node_dir, (frozen.id for frozen in before if frozen.id != kept.id))
