"""/var/log/pods: kubelet's directory of each pod, NAMESPACE_NAME_UID, with one of each container, and its runs' logs.

    /var/log/pods/team-a_agent-7c9f_0a1b2c3d-.../agent/3.log      the fourth run of container `agent`

Kept until the pod is deleted, whatever runtime runs it. Cost: one listing of as many names as there are pods.
"""

from __future__ import annotations

from typing import NamedTuple

from zombiescope.node.containers import files

LOGS = "/var/log/pods"


class Pod(NamedTuple):
    namespace: str
    name: str
    uid: str


def parse(name: str) -> Pod | None:
    """Of the directory's name: none of the three may hold an underscore."""
    words = name.split("_")
    return Pod(*words) if len(words) == 3 and all(map(files.is_component, words)) else None


def of_uid(uid: str, root: str = "/") -> Pod | None:
    found = (pod for name in files.names_in(LOGS, root) if name.endswith(f"_{uid}") and (pod := parse(name)))
    return next(found, None)


def restarts(pod: Pod, container: str, root: str = "/") -> int | None:
    """How often kubelet started a container again: the number of its newest log."""
    if not files.is_component(container):
        return None
    names = files.names_in(f"{LOGS}/{'_'.join(pod)}/{container}", root)
    numbers = [int(stem) for name in names if (stem := name.partition(".")[0]).isdecimal() and len(stem) < 10]
    return max(numbers, default=None)
