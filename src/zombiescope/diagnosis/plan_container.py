"""What ends a container that comes back again and again: its restart policy, who asks for it, or its pod's owner.

Never the runtime: that takes the containers of everybody else away. What ends a pod is a section of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from zombiescope.base.text import printable
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.plan import NOTE_FIRST, is_plain, may_change, shell, stop, stop_unit, untouchable
from zombiescope.model.plans.step import Act, Step, advice, change, command, note
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
        yield from pod_steps(actor, known, does)
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


# --- plan pod ---------------------------------------------------------------------------------------------------------
# What ends a pod that comes back again and again: its owner, scaled down, suspended or kept off the nodes.
#
# A pod belongs to whoever wrote its spec, and changing its owner needs rights in the cluster: the commands are for a
# person, `fix` never runs them. Where nobody asked the API server who owns it, the plan says where that is read; what
# belongs to the cluster itself is only looked at.

_SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_SUSPENDED = ("Job",)
_OF_THE_CLUSTER = ("kube-system", "kube-node-lease", "kube-public")
_NOWHERE = "zombiescope.io/nowhere"
"""A label that no node has."""


def pod_steps(actor: Actor, known: Container | None, does: str) -> Iterator[Step]:
    namespace = actor.namespace or (known.namespace if known else None)
    pod = (known.pod if known else None) or actor.pod
    name = (known.name if known else None) or actor.container_name
    image = actor.image or (known.image if known else None)
    of = f" (image {image})" if image else ""
    if namespace is None or pod is None or not is_plain(namespace) or not is_plain(pod):
        uid = (known.pod_uid if known else None) or actor.pod or ""
        yield advice(f"a pod{of} {does}: its uid is {uid}; the owner of its spec has to change it")
        if is_plain(uid):
            yield command(shell("crictl", "pods", "--label", f"io.kubernetes.pod.uid={uid}"), "its name and namespace")
        return
    one = ("-c", name) if is_plain(name) and name is not None else ()
    yield command(shell("kubectl", "-n", namespace, "get", "pod", pod, "-o", "wide"), "restarts, and where it runs")
    yield command(shell("kubectl", "-n", namespace, "describe", "pod", pod), "who owns it, and why it restarts")
    yield command(shell("kubectl", "-n", namespace, "logs", "--previous", pod, *one), "what it said before it ended")
    yield from _ended(namespace, (known.owner if known else None) or actor.owner, f"{namespace}/{pod}{of}", does)


def _ended(namespace: str, owner: str | None, pod: str, does: str) -> Iterator[Step]:
    kind, _, name = (owner or "").partition("/")
    if not name:
        yield advice(
            f"the pod {pod} {does}: its owner ('Controlled By' of describe) makes a new one whenever it is deleted, so "
            "fix or scale down the owner"
        )
        return
    if is_plain(name) and is_plain(kind) and namespace not in _OF_THE_CLUSTER:
        yield from _owner(namespace, kind, name)
    yield advice(f"the pod {pod} {does}: {owner} makes a new one whenever it is deleted, so its spec has to be fixed")


def _owner(namespace: str, kind: str, name: str) -> Iterator[Step]:
    it = ("kubectl", "-n", namespace)
    what = f"{kind.lower()}/{name}"
    if kind in _SCALED:
        yield command(shell(*it, "get", what, "-o", "jsonpath={.spec.replicas}"), NOTE_FIRST)
        yield change(
            shell(*it, "scale", what, "--replicas=0"), f"run no pods of {kind} {name} until it is fixed",
            touches=f"all pods of {kind} {namespace}/{name}, on every node", risk="their users are left without them",
            undo="scale it again to the value that was noted", verify=shell(*it, "get", what), part="stop-gap",
        )  # fmt: skip
    elif kind in _SUSPENDED:
        yield change(
            _patched(it, what, {"suspend": True}), f"suspend {kind} {name} until it is fixed",
            touches=f"the pods of {kind} {namespace}/{name} end", risk="its work so far is lost where it saves none",
            undo=_patched(it, what, {"suspend": False}), verify=shell(*it, "get", what), part="stop-gap",
        )  # fmt: skip
    elif kind == "DaemonSet":
        yield change(
            _patched(it, what, _selector("true")), f"keep {kind} {name} off all nodes until it is fixed",
            touches=f"all pods of {kind} {namespace}/{name}, on every node",
            risk="what it does for the nodes is not done", undo=_patched(it, what, _selector(None)),
            verify=shell(*it, "get", what), part="stop-gap",
        )  # fmt: skip


def _selector(value: str | None) -> dict[str, object]:
    return {"template": {"spec": {"nodeSelector": {_NOWHERE: value}}}}


def _patched(it: tuple[str, ...], what: str, spec: dict[str, object]) -> str:
    return shell(*it, "patch", what, "--type=merge", "-p", json.dumps({"spec": spec}))
