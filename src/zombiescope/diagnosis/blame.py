"""Whom a pattern may blame: the one place through which every culprit goes.

A carrier (pid 1, a runtime, kubelet) may be the hog and is never the culprit. It is replaced by whom it
worked for: the script that ran its client, or the one who asked for most of the containers of that time. Where that is
not known, nobody is to blame. A process that only has the name of a carrier answers for itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from zombiescope.diagnosis.carriers import carries_out_for_its_parent, is_carrier
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.requesters import requests
from zombiescope.diagnosis.runtime_paths import is_in, with_names
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.thresholds import CONTAINER_STARTING_US, MOSTLY_SHARE
from zombiescope.kernel.cgroup_path import owner
from zombiescope.query.containers import Container


def answerable(facts: Facts, actor: Actor, span: tuple[int, int], *, makes: bool) -> Actor | None:
    """Who answers for what an actor did. `makes`: it made processes, cgroups, namespaces or mounts, which runtimes do
    only for a container; what they read or send they do for themselves."""
    container = _container(facts, actor)
    if not is_carrier(actor):
        return actor if container is None else with_names(replace(actor, container=container.id), container)
    if container is not None:
        return next((replace(one.actor, cores=actor.cores) for one in requests([container])), None)
    client = _client_of(facts, actor)
    if client is not None:
        return client.actor(actor.cores)
    return _most_asked(_made_in(facts.containers.values(), span), actor) if makes else None


def _container(facts: Facts, actor: Actor) -> Container | None:
    place = actor.container or (owner(actor.cgroup).container if actor.cgroup else None)
    known = facts.containers.get(place) if place else None
    return known if known is None or is_in(actor.cgroup, known) else None


def _client_of(facts: Facts, actor: Actor) -> SampledTask | None:
    """Who ran `docker run`, where the actor is such a client or was started by one."""
    ancestry = facts.samples.ancestry
    task = next(
        (one for one in facts.samples.known.tasks.values() if one.pid == actor.pid and one.comm == actor.comm), None
    )
    while task is not None and is_carrier(task):
        above = ancestry.parent_of(task)
        if above is not None and carries_out_for_its_parent(task.comm) and not is_carrier(above):
            return above
        task = above
    return None


def _made_in(containers: Iterable[Container], span: tuple[int, int]) -> list[Container]:
    first, last = span[0] - CONTAINER_STARTING_US, span[1] + CONTAINER_STARTING_US
    return [one for one in containers if first <= (one.started_us or one.at_us) <= last]


def _most_asked(containers: list[Container], actor: Actor) -> Actor | None:
    """The one who asked for most of them."""
    asked = requests(containers)
    if not asked or asked[0].runs < MOSTLY_SHARE * sum(one.runs for one in asked):
        return None
    return replace(asked[0].actor, cores=actor.cores)
