"""A symptom, and how a kind of symptom is declared: how it is found, weighed, joined, reported, drawn. One file each.

A file in symptoms/ has one DETECTOR. Grouping, ranking, the reports and the page ask the detector of a symptom, and
never compare kinds, so a new kind is a new file. (Patterns do ask for the kinds that are evidence of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from zombiescope.base.severity import Severity, rank
from zombiescope.kernel.log_kinds import KINDS, Subject

if TYPE_CHECKING:
    from zombiescope.diagnosis.facts import Facts

Role = Literal["core", "hog", "victim"]
"""What it is about: a core that was lost, who took the CPU, or who was hurt."""

Begins = Literal["onset", "moment", "summed", "window"]
"""What its first moment is worth when an incident is given its id, best first:

onset    the CPU was taken from then on, through whatever window one looks
moment   it was noticed then
summed   it is added up over the window, and begins somewhere in it
window   it is as long as the window, so its beginning says nothing
"""

Joins = Literal["place", "echo", "migrating"]
"""With which others it is one incident:

place      those on its core or of its group, near in time; without a place, whatever came shortly before it
echo       as `place`, but it says nothing new where the same task is reported as migrating at that time
migrating  as `place`, and with what happened on any core while it was on many, unless another of its kind held that one
"""

THINGS = ("gpu", "switch", "interface", "part", "device", "controller", "server")
"""Fields of an event that name the thing it is about."""


@dataclass(frozen=True, slots=True)
class Detector:
    kind: str
    """As reported: "core_saturated"."""
    title: str
    """As a heading: "a core was lost"."""
    reported_when: str
    """For the docs, as the end of a sentence."""
    find: Callable[[Facts], Iterator[Symptom]]
    source: str
    """The table it is read from."""
    role: Role
    about: Subject = "cpu"
    begins: Begins = "moment"
    joins: Joins = "place"
    weight: int = 0
    """Among symptoms of the same severity the heaviest are shown first in a chain."""
    bounds_case: bool = False
    """The time that is examined reaches from the first of these to the last; others only follow from what was there."""
    names_hog: bool = False
    """Its group is a task, or a group of tasks, that took the CPU."""
    has_hog: bool = True
    """Some task did it: where no pattern fits, that task is named."""
    core_rank: int | None = None
    """How well it shows which core was lost, 0 the best."""
    core_is_held: bool = False
    """Who ran on its core in the kernel is suspected."""
    core_is_taken: bool = False
    """Whoever else ran on its core, in the kernel or not, is suspected; its fact `pids` are those who waited for it."""
    is_stopped: bool = False
    """Its group is a cgroup that stood still, so whoever ran meanwhile has nothing to do with it."""
    critical_after_s: float | None = None
    """With a confirmed cause it is critical once it lasts this long."""
    victim: str = ""
    """Whom it hurts, with {cpu}; its group without."""
    is_apart: bool = False
    """Each group and fact `cause` is an incident of its own, though the processes have one name, as ranks do."""
    is_remark: bool = False
    """Worth knowing, and no incident by itself unless it is critical: healthy nodes have that at times."""

    @property
    def is_onset(self) -> bool:
        """Somebody took the CPU."""
        return self.begins == "onset"

    @property
    def is_subject(self) -> bool:
        """An incident is about it rather than about what followed."""
        return self.is_onset or self.is_stopped


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something that users of the node notice, or that led to it. `group` says which task or owner it is about."""

    detector: Detector
    from_us: int
    to_us: int
    text: str
    severity: Severity = "warning"
    cpu: int | None = None
    group: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    heading: str = ""
    """In place of the title of its kind."""
    subject: Subject | None = None
    """In place of what its kind is about."""
    cores: frozenset[int] | None = None
    """The cores that it can have come from (those that serve the card); None: it is not known which."""
    finding: str = ""
    """The rule by which `check` reports it, in place of its kind."""

    @property
    def rule(self) -> str:
        return self.finding or self.kind.replace("_", "-")

    @property
    def kind(self) -> str:
        return self.detector.kind

    @property
    def title(self) -> str:
        return self.heading or self.detector.title

    @property
    def about(self) -> Subject:
        return self.subject or self.detector.about

    @property
    def thing(self) -> str:
        """The card, GPU or disk that an event names; empty for anything else."""
        named = (self.facts.get(name) for name in THINGS) if self.subject is not None else ()
        return next((str(name) for name in named if name), "")

    @property
    def core_is_held(self) -> bool:
        """Who ran on its core in the kernel is suspected."""
        return self.cpu is not None and (self.detector.core_is_held or self.subject == "cpu")

    @property
    def has_suspect(self) -> bool:
        """Somebody took a CPU. What is only announced, and names no core, says nothing about whoever ran meanwhile."""
        return self.core_is_held or self.subject is None

    @property
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6

    @property
    def is_remark(self) -> bool:
        """No part of an incident."""
        return self.detector.is_remark and self.severity != "critical"

    @property
    def victim(self) -> str | None:
        """Whom it hurt; None where it does not say. The group of those who wait is what they wait for."""
        if self.facts.get("waiters"):
            return ", ".join(map(str, self.facts["waiters"]))
        if self.detector.victim:
            return None if self.cpu is None else self.detector.victim.format(cpu=self.cpu)
        return self.group if self.detector.role == "victim" else None


# --- of an event ------------------------------------------------------------------------------------------------------

_ORDER = {kind: place for place, kind in enumerate(KINDS)}


def said(symptom: Symptom) -> str:
    """The sentence of an event; of any other symptom its text."""
    row = KINDS.get(str(symptom.facts.get("event")))
    sentence = row.says(symptom.facts) if row is not None and row.says is not None else ""
    return sentence or symptom.text


def first_event(symptoms: Iterable[Symptom], *kinds: str) -> Symptom | None:
    """Of the events among these (of some kinds), the one that heads them."""
    events = [one for one in symptoms if "event" in one.facts and (not kinds or one.facts["event"] in kinds)]
    return min(
        events,
        key=lambda one: (-rank(one.severity), _ORDER.get(one.facts["event"], len(_ORDER)), one.from_us),
        default=None,
    )


def event_thing(symptoms: Iterable[Symptom]) -> str:
    """Which card, disk, GPU or task the event that heads them is about; empty where it does not say."""
    first = first_event(symptoms)
    return "" if first is None else first.thing or str(first.facts.get("comm") or first.cpu or "")
