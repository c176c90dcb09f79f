"""What ends a container that comes back again and again: its restart policy, who asks for it, or its pod's owner.

Never the runtime: that takes the containers of everybody else away. What ends a pod is plan_pod.py's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zombiescope.base.text import printable
from zombiescope.diagnosis import plan_pod
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.plan import is_plain, may_change, shell, stop, stop_unit, untouchable
from zombiescope.model.plans.step import Act, Step, advice, change, note
from zombiescope.query.containers import Container, containers
from zombiescope.store.container_names import SHORT_ID

_ENDS_WITH_US = (None, "", "no")
_SLURM_JOB = re.compile(r"slurm-([0-9]{1,12})")
_WHOLE_ID = re.compile(r"[0-9a-f]{64}")
_CLIENTS = {"docker": "docker", "moby": "docker", "podman": "podman"}


def container_of(facts: Facts, actor: Actor) -> Container | None:
    """What was recorded of the actor's container, up to the window's end."""
    if not actor.container:
        return None
    known = facts.always(("containers", facts.end_us), lambda: containers(facts.recording, None, facts.end_us))
    return known.get(actor.container)


def stop_what(facts: Facts, actor: Actor | None, does: str) -> Iterator[Step]:
    """What ends what somebody `does`: through the container, the pod or the unit that it belongs to."""
    if actor is None:
        yield from stop(actor, does)
        return
    known = container_of(facts, actor)
    if actor.pod or (known is not None and (known.pod or known.pod_uid)):
        yield from plan_pod.steps(actor, known, does)
    elif (actor.container or actor.container_name) and (known is not None or not _is_of_the_node(actor)):
        yield from _container(actor, known, does)
    else:
        yield from stop(actor, does)


def _is_of_the_node(actor: Actor) -> bool:
    """Whether its unit is one of the node's systemd, which runs the container, and not one inside the container."""
    inside = actor.container is not None and actor.container in (actor.cgroup or "")
    return actor.unit is not None and not inside and untouchable(actor.unit) is None


def _is_guest(actor: Actor, known: Container | None = None) -> bool:
    """Whether the container is what can be stopped. Not where the actor is who runs it, and is not in it; nor where
    nothing was recorded of the container and a service, which can be stopped, has it in its own cgroup."""
    if actor.container is None:
        return actor.container_name is not None and not (actor.comm or actor.unit)
    in_service = actor.unit is not None and actor.unit.endswith(".service") and untouchable(actor.unit) is None
    return known is not None or not in_service


def to_stop(actor: Actor | None) -> str | None:
    """ "stop ecs.service": by the name under which it is stopped. None where that is nobody known, or the system's."""
    if actor is None:
        return None
    if (actor.container or actor.container_name) and not _is_of_the_node(actor):
        if (job := _slurm_job(actor.container)) is not None:
            return f"end the Slurm job {job}"
        return f"stop the container {actor.container_name or actor.container}"
    if actor.unit is not None:
        return None if untouchable(actor.unit) else f"stop {actor.unit}"
    return f"stop {actor.name}" if may_change(actor) else None


def _slurm_job(container: str | None) -> str | None:
    """The number of the job that this container is."""
    found = _SLURM_JOB.fullmatch(container or "")
    return found and found[1]


def _container(actor: Actor, known: Container | None, does: str) -> Iterator[Step]:
    if (job := _slurm_job(actor.container)) is not None:
        yield advice(f"the Slurm job {job} {does}: `scontrol show job {job}` names its user, `scancel {job}` ends it")
        return
    name = ((known.name if known else None) or actor.container_name or actor.container or "").lstrip("/")
    image = actor.image or (known.image if known else None)
    of = printable(f"container {name}" + (f" (image {image})" if image else ""))
    policy = (known.restart_policy if known else None) or ""
    if policy not in _ENDS_WITH_US and is_plain(name):
        client = _CLIENTS.get((known.runtime if known else None) or "docker", "docker")
        yield from _policy(client, name, actor.container or (known.id if known else None), of, policy)
        return
    unit = known.requester_unit if known else None
    if known is not None and known.requester is not None:
        script = f"{known.requester} (pid {known.requester_pid})" if known.requester_pid else known.requester
        started = f"{of} is started again and again by {script}"
        if unit is not None and untouchable(unit) is None:
            yield stop_unit(unit, f"starts {of}")
        elif unit is not None:
            yield advice(
                f"{started} of {unit}, for which no command is given ({untouchable(unit)}): change that program"
            )
        else:
            yield advice(f"{started}, which belongs to no unit: the user who started it has to stop it")
        if known.requester_command:
            yield note(f"its command line: {known.requester_command}")
        return
    if _is_of_the_node(actor):
        yield from stop(actor, does)
    else:
        yield note(f"{of} {does}; the process that requests it was not recorded, so there is none to stop")


def _policy(client: str, name: str, identity: str | None, of: str, policy: str) -> Iterator[Step]:
    """By id: a name may be another container's by the time that the command runs. Without one only a person acts."""
    acts: tuple[Act | None, Act | None] = (None, None)
    if identity is not None and _WHOLE_ID.fullmatch(identity):
        known = (("client", client), ("name", name), ("id", identity))
        acts = Act("container.no-restart", known), Act("container.stop", known)
        name = identity[:SHORT_ID]
    yield change(
        shell(client, "update", "--restart=no", name),
        f"keep {client} from starting {of} again",
        touches=f"the restart policy of {of}: it is {policy} and becomes no",
        undo=shell(client, "update", f"--restart={policy}", name),
        risk="none by itself: it runs on until it ends",
        verify=shell(client, "inspect", "--format", "{{.HostConfig.RestartPolicy.Name}}", name),
        act=acts[0],
    )
    yield change(
        shell(client, "stop", name),
        f"stop {of}",
        touches=f"{of} is stopped; nothing else is",
        undo=shell(client, "start", name),
        risk="its processes end",
        verify=shell(client, "inspect", "--format", "{{.State.Running}}", name),
        act=acts[1],
    )
