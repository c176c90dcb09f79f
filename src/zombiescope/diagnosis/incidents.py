"""Symptoms that are close in time and place are one incident.

Place is a core or a group of tasks; what has neither (a NIC reset, a dead job) belongs to what can have caused it
(belonging.py). It joins what came up to fifteen seconds before it, because the cause comes first: the core is held, the
driver waits five seconds, the card is reset, the job dies. A core belongs to a hog that was on it (presence.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from zombiescope.base.severity import SEVERITIES, Severity
from zombiescope.base.time import SECOND_US
from zombiescope.diagnosis.belonging import follows
from zombiescope.diagnosis.incident import worst
from zombiescope.diagnosis.presence import Presence
from zombiescope.diagnosis.symptom import Begins, Symptom
from zombiescope.diagnosis.thresholds import JOIN_FOLLOWS_US, JOIN_NEAR_US
from zombiescope.kernel.log_kinds import Subject

_RUNS_NOWHERE: frozenset[Subject] = frozenset({"disk", "gpu", "waiting"})
_ANCHORS: dict[Begins, int] = {"onset": 0, "moment": 1, "summed": 2, "window": 2}


@dataclass(frozen=True, slots=True)
class Group:
    """The symptoms of one incident, in the order of time."""

    symptoms: tuple[Symptom, ...]

    @property
    def from_us(self) -> int:
        return min(symptom.from_us for symptom in self.symptoms)

    @property
    def to_us(self) -> int:
        return max(symptom.to_us for symptom in self.symptoms)

    @property
    def severity(self) -> Severity:
        return worst([symptom.severity for symptom in self.symptoms])

    @property
    def is_moderate(self) -> bool:
        """No symptom but that somebody used half a CPU in the kernel, as many healthy programs have."""
        return is_moderate(self.symptoms)

    @property
    def is_worth_a_word(self) -> bool:
        """Somebody who was not there before, and has half a CPU or more: that is said even if nothing explains it."""
        return any(symptom.facts.get("worth_a_word") for symptom in self.symptoms)

    @property
    def primary(self) -> Symptom:
        """What the incident is about: the symptom that names a place and lasted longest."""
        return max(
            self.symptoms,
            key=lambda symptom: (
                symptom.detector.is_subject,
                symptom.seconds,
                SEVERITIES.index(symptom.severity),
                -symptom.from_us,
            ),
        )

    def identity(self, node: str, boot: str) -> str:
        """The same live and offline, and through any window that holds its beginning: of the node, the boot, and the
        place and the second in which the first of its onsets, or else of its other symptoms, began."""
        first = min(self.symptoms, key=lambda symptom: (_anchors(symptom), symptom.from_us // SECOND_US, symptom.kind,
                                                        str(symptom.cpu), str(symptom.group)))  # fmt: skip
        # A hog that leaves its core, or brings more threads, is still that hog. Two cards or GPUs are two places.
        where = first.thing or first.facts.get("comm") or f"{first.cpu}|{first.group}"
        when = "" if first.detector.begins == "window" else first.from_us // SECOND_US
        return _id(f"{node}|{boot}|{first.kind}|{where}|{when}")


def another_id(taken: str, pattern: str) -> str:
    """Of an incident whose own is taken by one with another cause."""
    return _id(f"{taken}|{pattern}")


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def is_moderate(symptoms: Sequence[Symptom]) -> bool:
    return all(_is_moderate(symptom) for symptom in symptoms)


def group(found: Sequence[Symptom], presence: Presence | None = None) -> list[Group]:
    """Incidents in the order of time. Without `presence` nothing is known about who was on which core."""
    symptoms = _without_echoes(found)
    parent = list(range(len(symptoms)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    for number, other in _pairs(symptoms, presence):
        parent[root(other)] = root(number)
    together: dict[int, list[Symptom]] = {}
    for number, symptom in enumerate(symptoms):
        together.setdefault(root(number), []).append(symptom)
    groups = [Group(tuple(sorted(members, key=lambda symptom: symptom.from_us))) for members in together.values()]
    return sorted(groups, key=lambda each: each.from_us)


def _without_echoes(found: Sequence[Symptom]) -> list[Symptom]:
    """Short stalls by a task that is reported as a hog at the same time say nothing new."""
    hogs = [symptom for symptom in found if _is_migrating(symptom)]
    return [
        symptom
        for symptom in found
        if symptom.detector.joins != "echo"
        or symptom.facts.get("comm") is None
        or not any(_echoes(symptom, hog) for hog in hogs)
    ]


def _echoes(stall: Symptom, hog: Symptom) -> bool:
    overlap = stall.from_us < hog.to_us and hog.from_us < stall.to_us
    return overlap and stall.facts.get("comm") == hog.facts.get("comm")


def _pairs(symptoms: Sequence[Symptom], presence: Presence | None) -> Iterator[tuple[int, int]]:
    order = sorted(range(len(symptoms)), key=lambda number: symptoms[number].from_us)
    hogs = [symptom for symptom in symptoms if _is_migrating(symptom)]
    onsets = [symptom for symptom in symptoms if symptom.detector.is_onset and not _is_moderate(symptom)]
    for at, number in enumerate(order):
        for other in order[at + 1 :]:
            if symptoms[other].from_us - symptoms[number].to_us > JOIN_FOLLOWS_US:
                continue
            if _followed_another(symptoms[number], symptoms[other], onsets):
                continue
            if _belong(symptoms[number], symptoms[other], hogs, presence):
                yield number, other


def _belong(earlier: Symptom, later: Symptom, hogs: Sequence[Symptom], presence: Presence | None) -> bool:
    if _is_moderate(earlier) != _is_moderate(later):
        return False
    if _nowhere(earlier) or _nowhere(later):
        return follows(earlier, later, presence)
    if later.from_us - earlier.to_us > JOIN_NEAR_US:
        return False
    if earlier.group is not None and earlier.group == later.group:
        return True
    if earlier.cpu is not None and earlier.cpu == later.cpu:
        return not _one_after_another(earlier, later) and _same_holder(earlier, later, presence)
    if (earlier.cpu is None) == (later.cpu is None):
        return False
    spread, placed = (earlier, later) if earlier.cpu is None else (later, earlier)
    if not _migrates(spread, placed) or _held_by_another(spread, placed, hogs):
        return False
    return presence is None or not _is_migrating(spread) or presence.was_on(spread, placed)


def _same_holder(one: Symptom, other: Symptom, presence: Presence | None) -> bool:
    """Two symptoms of one core are about the same thing unless each had another task there."""
    if presence is None:
        return True
    hogs = [each for each in (one, other) if _is_migrating(each)]
    if len(hogs) == 1:
        return presence.was_on(hogs[0], other if hogs[0] is one else one)
    holders = {presence.holder(one), presence.holder(other)} - {None}
    return len(hogs) == 2 or len(holders) < 2


def _followed_another(one: Symptom, other: Symptom, onsets: Sequence[Symptom]) -> bool:
    """What has no place, beside a cgroup that stood still, while somebody else took the CPU: it followed from that."""
    event, stopped = (one, other) if _nowhere(one) else (other, one)
    if not (_nowhere(event) and stopped.detector.is_stopped):
        return False
    return any(
        onset.from_us <= event.to_us + JOIN_NEAR_US and event.from_us - onset.to_us <= JOIN_FOLLOWS_US
        for onset in onsets
    )


def _is_moderate(symptom: Symptom) -> bool:
    """What many healthy programs do is no part of an incident."""
    return bool(symptom.facts.get("moderate"))


def _is_migrating(symptom: Symptom) -> bool:
    return symptom.detector.joins == "migrating"


def _one_after_another(earlier: Symptom, later: Symptom) -> bool:
    """Two programs that had the same core in turn have nothing to do with each other."""
    hogs = _is_migrating(earlier) and _is_migrating(later)
    return hogs and later.from_us >= earlier.to_us and earlier.facts.get("comm") != later.facts.get("comm")


def _migrates(spread: Symptom, placed: Symptom) -> bool:
    """A hog on many cores, and a symptom on one of them. A throttled cgroup does not run at all, nor does who waits."""
    stopped = (
        spread.detector.is_stopped
        or placed.detector.is_stopped
        or not {spread.about, placed.about}.isdisjoint(_RUNS_NOWHERE)
    )
    return (_is_migrating(spread) or _is_migrating(placed)) and not stopped


def _held_by_another(spread: Symptom, placed: Symptom, hogs: Sequence[Symptom]) -> bool:
    """A core that one hog held all the time was not lost to another one that was here and there."""
    if not _is_migrating(spread):
        return False
    there = [hog for hog in hogs if hog.cpu == placed.cpu and hog.from_us < placed.to_us and placed.from_us < hog.to_us]
    return bool(there) and all(hog.facts.get("comm") != spread.facts.get("comm") for hog in there)


def _anchors(symptom: Symptom) -> int:
    """Lower is better to know an incident by."""
    return _ANCHORS[symptom.detector.begins]


def _nowhere(symptom: Symptom) -> bool:
    return symptom.cpu is None and symptom.group is None
