"""What ends a pod that comes back again and again: its owner, scaled down, suspended or kept off the nodes.

A pod belongs to whoever wrote its spec, and changing its owner needs rights in the cluster: the commands are for a
person, `fix` never runs them. Where nobody asked the API server who owns it, the plan says where that is read; what
belongs to the cluster itself is only looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.plan import NOTE_FIRST, is_plain, shell
from zombiescope.model.plans.step import Step, advice, change, command
from zombiescope.query.containers import Container

_SCALED = ("Deployment", "StatefulSet", "ReplicaSet", "ReplicationController")
_SUSPENDED = ("Job",)
_OF_THE_CLUSTER = ("kube-system", "kube-node-lease", "kube-public")
_NOWHERE = "zombiescope.io/nowhere"
"""A label that no node has."""


def steps(actor: Actor, known: Container | None, does: str) -> Iterator[Step]:
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
