"""Whether what has no place belongs to another symptom: only to what can have caused it, and in its time.

Nearness in time alone joins everything with everything on a busy node: a deprecated file with a storm of forks, a lost
GPU with whoever happened to run. So each symptom says what it is about, and this table what may be the cause of that.
"""

from __future__ import annotations

from zombiescope.diagnosis.presence import Presence
from zombiescope.diagnosis.symptom import THINGS, Symptom
from zombiescope.diagnosis.thresholds import JOIN_FOLLOWS_US, JOIN_NEAR_US, RAY_FAILS_BEFORE_US
from zombiescope.kernel.log_kinds import Subject

CAUSES: dict[Subject, frozenset[Subject]] = {
    "cpu": frozenset({"cpu", "memory"}),
    "network": frozenset({"network", "cpu", "memory", "machine"}),
    "memory": frozenset({"memory", "cpu"}),
    "disk": frozenset({"disk", "machine"}),
    "gpu": frozenset({"gpu", "machine"}),
    "machine": frozenset({"machine"}),
    "waiting": frozenset({"waiting", "disk", "network", "memory", "cpu"}),
    "work": frozenset({"work", "cpu", "network", "memory", "disk", "gpu", "machine", "waiting"}),
    "nothing": frozenset(),
}
"""What a symptom is about -> what its cause can be about."""


def follows(earlier: Symptom, later: Symptom, presence: Presence | None) -> bool:
    """One of the two has no place. The cause comes first; what is noticed in the same seconds may come before it."""
    distance_us = later.from_us - earlier.to_us
    forwards = distance_us <= JOIN_FOLLOWS_US and earlier.about in CAUSES[later.about]
    before_us = RAY_FAILS_BEFORE_US if _is_rays(earlier) and not _is_rays(later) else JOIN_NEAR_US
    backwards = distance_us <= before_us and later.about in CAUSES[earlier.about]
    if not (forwards or backwards) or _differ(earlier, later) or _are_two_jobs(earlier, later):
        return False
    return _from_there(earlier, later, presence) and _about_memory(earlier, later, presence)


def _differ(one: Symptom, other: Symptom) -> bool:
    """Two cards, two disks or two GPUs are two things."""
    mine, theirs = ({name: str(each.facts[name]) for name in THINGS if each.facts.get(name)} for each in (one, other))
    return any(
        not (mine[name].startswith(theirs[name]) or theirs[name].startswith(mine[name]))
        for name in mine.keys() & theirs.keys()
    )


JOB_NAMES = ("submission_id", "job")


def _is_rays(symptom: Symptom) -> bool:
    return str(symptom.facts.get("event") or "").startswith(("ray_", "rayjob_"))


def _are_two_jobs(one: Symptom, other: Symptom) -> bool:
    """What Ray reports of two jobs has nothing to do with each other; the end of a node concerns all of them."""
    if not (_is_rays(one) and _is_rays(other)):
        return False
    pairs = [
        (one.facts[name], other.facts[name]) for name in JOB_NAMES if one.facts.get(name) and other.facts.get(name)
    ]
    return bool(pairs) and all(mine != theirs for mine, theirs in pairs)


def _from_there(one: Symptom, other: Symptom, presence: Presence | None) -> bool:
    """What comes from certain cores, beside somebody who took a core: it was one of those."""
    event, taken = (one, other) if one.cores is not None else (other, one)
    if event.cores is None or taken.about != "cpu":
        return True
    if taken.cpu is not None or not event.cores:
        return taken.cpu in event.cores
    if presence is None or taken.group is None or not taken.detector.names_hog:
        return True
    return presence.was_on_any(taken, event.cores, taken)


def _about_memory(one: Symptom, other: Symptom, presence: Presence | None) -> bool:
    """Memory that ran out, beside somebody who took the CPU: it was freeing memory, or it is the same program, or
    interrupts were off and nobody was seen."""
    event, taken = (one, other) if one.about == "memory" else (other, one)
    if event.about != "memory" or taken.about != "cpu" or taken.facts.get("interrupts_off") or presence is None:
        return True
    names = {event.facts.get("comm"), event.facts.get("invoker")} - {None}
    doer = taken.facts.get("comm") or presence.holder(taken)
    return doer in names or presence.reclaims(taken)
