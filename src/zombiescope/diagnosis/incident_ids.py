"""Incidents that were seen before: the doctor names one while it begins, and whoever looks later means the same one.

An incident's id is made of where and when it began. A look that comes later, or through a window that cuts the
beginning off, may see another beginning; so what touches a known incident in time, and has the same cause by the same
hog or shares a symptom with it, keeps its id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Incident
from zombiescope.diagnosis.thresholds import SAME_INCIDENT_NEAR_S


def with_known_ids(found: Diagnosis, known: list[dict[str, Any]]) -> Diagnosis:
    """The same diagnosis, with the ids under which incidents are known already."""
    taken = {str(entry.get("id")) for entry in known} & {each.id for each in found.incidents}
    named = []
    for each in found.incidents:
        same = [entry for entry in known if each.id not in taken and entry.get("id") not in taken]
        same = [entry for entry in same if _touch(each, entry) and _alike(each, entry)]
        if same:
            best = max(same, key=lambda entry: _overlap_s(each, entry))
            each = replace(each, id=str(best["id"]))
            taken.add(each.id)
        named.append(each)
    return replace(found, incidents=tuple(named))


def _overlap_s(each: Incident, entry: dict[str, Any]) -> float:
    from_s, to_s = float(entry.get("from") or 0), float(entry.get("to") or 0)
    return min(each.to_us / 1e6, to_s) - max(each.from_us / 1e6, from_s)


def _touch(each: Incident, entry: dict[str, Any]) -> bool:
    return _overlap_s(each, entry) >= -SAME_INCIDENT_NEAR_S


def _alike(each: Incident, entry: dict[str, Any]) -> bool:
    mine = {(symptom.kind, symptom.cpu, symptom.group) for symptom in each.symptoms}
    theirs = {(one.get("kind"), one.get("cpu"), one.get("group")) for one in entry.get("symptoms") or ()}
    causes = entry.get("causes") or ()
    if not each.causes or not causes:
        return bool(mine & theirs)
    mine_first, first = each.causes[0], causes[0]
    hog = first.get("hog") or {}
    same_cause = (mine_first.pattern, mine_first.hog.comm, mine_first.hog.unit) == (
        first.get("pattern"), hog.get("comm"), hog.get("unit"),
    )  # fmt: skip
    return same_cause or bool(mine & theirs)
