"""A node that takes no new pods, and how it was before.

An annotation says that we did it and why: what somebody else cordoned stays cordoned when ours is undone. kured goes
first: a node that it is about to reboot is its own business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from zombiescope.base.text import printable
from zombiescope.node.cluster import access
from zombiescope.node.cluster.access import ClusterError

if TYPE_CHECKING:
    from lightkube import Client

OURS = "zombiescope.io/cordoned"
KURED = "weave.works/kured-reboot-in-progress"
_MAX_WHY = 200


@dataclass(frozen=True, slots=True)
class NodeState:
    unschedulable: bool
    ours: str | None
    """Why we cordoned it; None: it was not us."""
    kured: bool
    """kured is rebooting it."""


def read(client: Client, node: str) -> NodeState:
    """Raises ClusterError."""
    from lightkube.resources.core_v1 import Node

    try:
        found = client.get(Node, node).to_dict()
    except access.trouble() as error:
        raise ClusterError(f"node {node} cannot be read: {access.brief(error)}", _fix(error)) from error
    marks = found.get("metadata", {}).get("annotations") or {}
    return NodeState(bool(found.get("spec", {}).get("unschedulable")), marks.get(OURS), KURED in marks)


def cordon(client: Client, node: str, why: str) -> NodeState:
    """How it was before. Raises ClusterError."""
    before = read(client, node)
    if before.kured:
        raise ClusterError(f"kured is rebooting {node}", "wait until it is back")
    if not before.unschedulable:
        _patch(client, node, unschedulable=True, mark=printable(why)[:_MAX_WHY])
    return before


def uncordon(client: Client, node: str) -> bool:
    """Whether it was ours to take back. Raises ClusterError."""
    now = read(client, node)
    if now.ours is None:
        return False
    _patch(client, node, unschedulable=None, mark=None)
    return True


def _patch(client: Client, node: str, *, unschedulable: bool | None, mark: str | None) -> None:
    from lightkube.resources.core_v1 import Node
    from lightkube.types import PatchType

    patch: dict[str, Any] = {"spec": {"unschedulable": unschedulable}, "metadata": {"annotations": {OURS: mark}}}
    try:
        client.patch(Node, node, patch, patch_type=PatchType.MERGE)
    except access.trouble() as error:
        raise ClusterError(f"node {node} cannot be changed: {access.brief(error)}", _fix(error)) from error


def _fix(error: BaseException) -> str | None:
    if access.status_code(error) in (401, 403):
        return "use the account of the chart's remediation.enabled (docs/kubernetes.md)"
    return None
