"""Containers that come back again and again: one that a policy restarts, one that its pod gets anew, or ever new ones
of an image that a script runs. The same rule as for cgroups (churn.py); an event says what those have in common."""

from __future__ import annotations

from dataclasses import dataclass, field

from zombiescope.base.severity import Severity
from zombiescope.kernel.cgroup_path import Owner
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.requester import Requester
from zombiescope.recorder.churn import Churn
from zombiescope.store.event import Event


@dataclass(slots=True)
class TrackedContainer:
    id: str
    cgroup: str
    owner: Owner
    runs: int = 0
    started_us: int | None = None
    exited_us: int | None = None
    known: Description = field(default_factory=Description)
    requester: Requester | None = None
    is_asked: bool = False
    tries: int = 0

    @property
    def runtime(self) -> str | None:
        return self.known.runtime or self.owner.runtime

    def row(self, wall_us: int) -> tuple[object, ...]:
        known, who = self.known, self.requester
        return (
            wall_us, self.id, known.name, known.image, self.runtime, known.namespace, known.pod,
            known.pod_uid or self.owner.pod_uid, self.cgroup, self.started_us, self.exited_us, known.code, self.runs,
            known.restarts, known.restart_policy, who.comm if who else None, who.pid if who else None,
            who.unit if who else None, who.command if who else None, known.owner,
            who.container if who else None, who.how if who else None, known.manager,
        )  # fmt: skip


class Loops:
    def __init__(self) -> None:
        self._churn = Churn()

    def ended(self, one: TrackedContainer, at_us: int) -> Event | None:
        """It ended: an event, if what has its name did so again and again."""
        if one.runtime == "slurm":
            return None  # jobs come and go: that is what they are for
        same, family = _family(one)
        news = self._churn.removed(family, at_us)
        if news is None:
            return None
        count, seconds = news
        known, who = one.known, one.requester
        fields = {
            "same": same, "id": one.id, "name": known.name, "image": known.image, "pod": known.pod,
            "namespace": known.namespace, "owner": known.owner, "runs": one.runs, "restarts": known.restarts,
            "count": count, "seconds": round(seconds, 1), "restart_policy": known.restart_policy, "code": known.code,
            "requester": who.comm if who else None, "requester_unit": who.unit if who else None,
        }  # fmt: skip
        # Ever new containers that do not fail are a queue of jobs until somebody knows better.
        severity: Severity = "info" if same == "image" and not known.code else "warning"
        return Event(at_us, "container_restart", "containers", severity, _text(one, same, count, seconds), fields)


def _family(one: TrackedContainer) -> tuple[str, str]:
    """What makes two containers the same for somebody who restarts them: (which property, its value)."""
    known = one.known
    if known.pod:
        return "pod", f"pod {known.namespace}/{known.pod}/{known.name}"
    if one.runs > 1 or known.restart_policy not in (None, "no") or not known.image:
        return "id", f"id {one.id}"
    who = one.requester
    return "image", f"image {known.image} {who.comm if who else None} {who.unit if who else None}"


def _text(one: TrackedContainer, same: str, count: int, seconds: float) -> str:
    known, who = one.known, one.requester
    if same == "image":
        text = f"{count} containers of image {known.image} ended in {seconds:.0f} s"
    else:
        place = f" of pod {known.namespace}/{known.pod}" if known.pod else ""
        image = f" (image {known.image})" if known.image else ""
        text = f"container {known.name or one.id[:12]}{place}{image} ended {count} times in {seconds:.0f} s"
    if same == "id" and known.restart_policy and known.restart_policy != "no":
        return f"{text}, restart policy {known.restart_policy}"
    if who is not None:
        return f"{text}, run by {who.comm}" + (f" ({who.unit})" if who.unit else "")
    return text
