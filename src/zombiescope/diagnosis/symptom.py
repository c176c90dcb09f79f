"""A symptom, and how a kind of symptom is declared: how it is found, weighed, joined, reported, drawn. One file each.

A file in symptoms/ has one DETECTOR. Grouping, ranking, the reports and the page ask the detector of a symptom, and
never compare kinds, so a new kind is a new file. (Patterns do ask for the kinds that are evidence of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from zombiescope._severity import Severity

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

DRIVER_PATIENCE_S = 5.0
"""As long as a network driver waits for its queue before it resets the card."""


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
    is_stopped: bool = False
    """Its group is a cgroup that stood still, so whoever ran meanwhile has nothing to do with it."""
    critical_after_s: float | None = None
    """With a confirmed cause it is critical once it lasts this long."""
    victim: str = ""
    """Whom it hurts, with {cpu}; its group without."""
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
    def seconds(self) -> float:
        return (self.to_us - self.from_us) / 1e6

    @property
    def is_remark(self) -> bool:
        """No part of an incident."""
        return self.detector.is_remark and self.severity != "critical"

    @property
    def victim(self) -> str | None:
        """Whom it hurt; None where it does not say."""
        if self.detector.victim:
            return None if self.cpu is None else self.detector.victim.format(cpu=self.cpu)
        return self.group if self.detector.role == "victim" else None
