"""What happened to a pod between two looks at it: restarted, killed for memory, evicted, failed.

A restart has the time at which its container ended, which kubelet took from this node's own clock. What the control
plane does has only the API server's clock, which may be off: that is put at the moment at which we heard of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from zombiescope.node.cluster.pod import Pod, PodContainer

RESTARTED, OOM_KILLED, EVICTED, FAILED = "pod_restarted", "pod_oom_killed", "pod_evicted", "pod_failed"
KINDS = (RESTARTED, OOM_KILLED, EVICTED, FAILED)
_EVICTED = ("Evicted", "Preempted", "Preempting", "NodeShutdown", "Terminated", "Shutdown")
_NEW_US = 120_000_000
"""What is seen for the first time and ended longer ago is history: it was recorded then, or nobody was here."""


@dataclass(frozen=True, slots=True)
class PodEvent:
    at_us: int
    kind: str
    severity: str
    text: str
    fields: dict[str, Any]


def changes(old: Pod | None, new: Pod, now_us: int) -> Iterator[PodEvent]:
    """`old` is None for a pod that was not known."""
    before = {one.name: one for one in old.containers} if old is not None else {}
    for container in new.containers:
        yield from _restarts(new, before.get(container.name), container, now_us, is_new=old is None)
    yield from _ends(old, new, now_us)


def _restarts(
    pod: Pod, old: PodContainer | None, new: PodContainer, now_us: int, *, is_new: bool
) -> Iterator[PodEvent]:
    last = new.last
    at_us = now_us if last is None or last.at_us is None else min(last.at_us, now_us)
    times = new.restarts - (old.restarts if old is not None else 0)
    ended_again = last is not None and last != (old.last if old is not None else None)
    if (times <= 0 and not ended_again) or (is_new and at_us < now_us - _NEW_US):
        return
    fields = _fields(pod, new)
    if ended_again and last is not None and last.reason == "OOMKilled":
        yield PodEvent(at_us, OOM_KILLED, "warning", f"{_label(pod, new)} was killed: out of memory", fields)
    if times > 0:
        why = _why(new)
        often = "was restarted" if times == 1 else f"was restarted {times} times"
        yield PodEvent(at_us, RESTARTED, "warning", f"{_label(pod, new)} {often}{why}", {**fields, "times": times})


def _ends(old: Pod | None, new: Pod, now_us: int) -> Iterator[PodEvent]:
    if _is_evicted(new) and (old is None or not _is_evicted(old)):
        if old is not None or not new.is_over:
            why = new.disruption or new.reason or ""
            said = f": {new.message}" if new.message and new.reason else ""
            yield PodEvent(now_us, EVICTED, "warning", f"pod {new.path} was evicted ({why}){said}", _fields(new))
    elif new.phase == "Failed" and old is not None and old.phase != "Failed":
        why = f" ({new.reason})" if new.reason else ""
        yield PodEvent(now_us, FAILED, "warning", f"pod {new.path} failed{why}", _fields(new))


def _is_evicted(pod: Pod) -> bool:
    return pod.disruption is not None or pod.reason in _EVICTED


def _why(container: PodContainer) -> str:
    last = container.last
    if last is None:
        return ""
    code = "" if last.code is None else f"exit {last.code}"
    reason = "" if last.reason in (None, "Error", "Completed") else str(last.reason)
    told = ", ".join(part for part in (code, reason) if part)
    return f" ({told})" if told else ""


def _label(pod: Pod, container: PodContainer) -> str:
    owner = f" of {pod.owner_path}" if pod.owner else ""
    return f"container {pod.path}/{container.name}{owner}"


def _fields(pod: Pod, container: PodContainer | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"pod": pod.name, "namespace": pod.namespace, "pod_uid": pod.cgroup_uid}
    if pod.owner is not None:
        found["owner"] = pod.owner_path
    if container is not None:
        last = container.last
        found |= {"container_name": container.name, "image": container.image, "restarts": container.restarts}
        found |= {"code": last.code, "reason": last.reason} if last is not None else {}
    return {key: value for key, value in found.items() if value is not None}
