"""Who asked for containers: the program that runs them, their restart policy, or the pods they belong to.

A runtime makes a container's cgroup, processes and mounts for somebody else. The recording's table of containers says
for whom, container by container; here they are added up, so that 2,200 of them that one loop ran are one request.
Names are those that somebody gave to containers, images and pods, so they are compared and never taken apart, but for
the end that Kubernetes makes itself.

The last resort is the audit's catalogue: it knows which unit runs the image of a common agent. A request of that kind
says so (`kind` "catalogue"), because nothing on the node showed it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from zombiescope.audit import catalogue
from zombiescope.diagnosis.carriers import has_carriers_name, is_carrier_unit
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.thresholds import RESTARTED_RUNS, RESTARTED_RUNS_WHATEVER_POLICY
from zombiescope.query.containers import Container
from zombiescope.store.container_names import pod_owner

Kind = Literal["script", "restart policy", "pod", "catalogue", "image"]

_ORDINAL = re.compile(r"-[0-9]+$")


@dataclass(frozen=True, slots=True)
class Request:
    """Containers that one asked for."""

    kind: Kind
    key: Hashable
    actor: Actor
    containers: int
    runs: int
    """How often they were made, together."""
    restarts: int | None
    """As the runtime counts them, of the one with most."""
    policy: str | None
    command: str | None
    how: str | None = None
    """How the one who asked is known: "command line" or "socket"."""
    manager: str | None = None
    """What the containers' labels name."""

    @property
    def said(self) -> str:
        """The sentence about the containers."""
        image = f" of image {self.actor.image}" if self.actor.image else ""
        if self.kind == "pod":
            owner = f" of {self.actor.owner}" if self.actor.owner else ""
            return f"{_count(self.runs, 'container')}{image} in pods {self.actor.namespace}/{self.actor.pod}{owner}"
        if self.kind == "restart policy" and self.containers == 1:
            name = self.actor.container_name or self.actor.container or "a container"
            return f"the same container, {name}{image}, was made {self.runs:,} times"
        if self.kind == "restart policy":
            return f"{self.containers:,} containers{image} were made {self.runs:,} times"
        return f"{_count(self.containers, 'container')}{image}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def requests(containers: Iterable[Container]) -> list[Request]:
    """Those that somebody can be named for, most runs first."""
    groups: defaultdict[tuple[Kind, Hashable], list[Container]] = defaultdict(list)
    by_id: dict[str, Container] = {}
    for container in containers:
        by_id[container.id] = container
        if (key := _key(container)) is not None:
            groups[key].append(container)
    made = [_request(kind, key, members, by_id) for (kind, key), members in groups.items()]
    return sorted(made, key=lambda one: (-one.runs, str(one.key)))


def family(pod: str) -> str:
    """A pod's name without the end that a Deployment, a Job, a DaemonSet or a StatefulSet gave it."""
    if (owner := pod_owner(pod)) != pod:
        return f"{owner}-*"
    return f"{pod[: found.start()]}-*" if (found := _ORDINAL.search(pod)) else pod


def _runs(container: Container) -> int:
    return max(container.runs or 1, 1)


def _restarted(container: Container) -> bool:
    again = max(_runs(container), (container.restarts or 0) + 1)
    return again >= RESTARTED_RUNS_WHATEVER_POLICY or (
        again >= RESTARTED_RUNS and container.restart_policy not in (None, "", "no")
    )


def _key(container: Container) -> tuple[Kind, Hashable] | None:
    if container.pod:
        return "pod", (container.namespace, container.owner or family(container.pod))
    if _restarted(container):
        return "restart policy", (container.image or container.id, container.restart_policy)
    who = _who(container)
    if any(who):
        return "script", who
    if container.image and (agent := catalogue.shipped().agent_of_image(container.image)) is not None:
        return "catalogue", agent.unit
    return ("image", container.image) if container.image else None


def _who(container: Container) -> tuple[str | None, str | None, str | None]:
    """(program, unit, container) that asked, without those who carry out: of `ExecStart=docker run` it is the unit
    alone."""
    unit = None if is_carrier_unit(container.requester_unit) else container.requester_unit
    program = container.requester
    inside = None if unit else container.requester_container
    is_carrier = container.requester_pid == 1 or has_carriers_name(program)
    return None if is_carrier else program, unit, inside


def _request(kind: Kind, key: Hashable, members: list[Container], by_id: Mapping[str, Container]) -> Request:
    top = max(members, key=lambda one: (_runs(one), one.at_us))
    policies = Counter(one.restart_policy for one in members if one.restart_policy)
    return Request(
        kind,
        (kind, key),
        _actor(kind, top, members, by_id),
        len(members),
        sum(_runs(one) for one in members),
        max((one.restarts for one in members if one.restarts is not None), default=None),
        policies.most_common(1)[0][0] if policies else None,
        top.requester_command,
        top.requester_how,
        top.manager,
    )


def _actor(kind: Kind, top: Container, members: list[Container], by_id: Mapping[str, Container]) -> Actor:
    images = Counter(one.image for one in members if one.image)
    image = images.most_common(1)[0][0] if images else None
    names = {one.name for one in members if one.name}
    name = names.pop() if len(names) == 1 else None
    if kind == "pod":
        pods = {one.pod for one in members}
        pod = top.pod if len(pods) == 1 else family(top.pod or "")
        return Actor(pod=pod, namespace=top.namespace, image=image, container_name=name, owner=top.owner)
    if kind == "script":
        program, unit, inside = _who(top)
        pid = top.requester_pid if program else None
        if inside is not None:
            home = by_id.get(inside) or Container(inside)
            return Actor(
                comm=program, pid=pid, container=inside, container_name=home.name, image=home.image, pod=home.pod,
                namespace=home.namespace, owner=home.owner, cgroup=home.cgroup,
            )  # fmt: skip
        return Actor(comm=program, pid=pid, unit=unit, image=image, container_name=name)
    if kind == "catalogue":
        agent = catalogue.shipped().agent_of_image(image or "")
        return Actor(unit=agent.unit if agent else None, image=image, container_name=name)
    if len(members) == 1:
        return Actor(container=top.id, container_name=top.name, image=image, cgroup=top.cgroup)
    return Actor(image=image, container_name=None)
