"""Steps of a fix that take a node out of its cluster: cordon and drain. Undo of both is uncordon.

Each has the shape of an action of a remedy: plain arguments that a log can keep, `touches`, `before`, `is_applied`,
`apply`, `undo`; what fails is a ClusterError. Nothing here is done by the agent: whoever runs `fix` brings credentials
(the chart's second account), and is asked first. The reboot itself is fix/actions/reboot.py's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from zombiescope.base.text import printable
from zombiescope.node.cluster import access
from zombiescope.node.cluster.access import Access, ClusterError
from zombiescope.node.cluster.drain import TIMEOUT_S, Consent, Drain, DrainPlan, plan
from zombiescope.node.cluster.pod import time_us

if TYPE_CHECKING:
    from lightkube import Client


SENTINEL = Path("/run/reboot-required")
"""kured's: where it runs, it reboots the node when this file is there, one node after the other."""
MOST_LISTED = 20
PROGRESS: list[Callable[[str], object]] = []
"""Called with a line for whatever a drain waits for: it may take minutes."""

T = TypeVar("T")


def _answer(node: str, kubeconfig: str | None, ask: Callable[[Client], T]) -> T:
    """Raises ClusterError."""
    client = Access(kubeconfig, node).client()
    try:
        return ask(client)
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class _OnNode:
    node: str
    kubeconfig: str | None = None

    def arguments(self) -> dict[str, Any]:
        return asdict(self)

    def _with_client(self, ask: Callable[[Client], T]) -> T:
        return _answer(self.node, self.kubeconfig, ask)

    def _state(self) -> NodeState:
        return self._with_client(lambda client: read_node(client, self.node))


@dataclass(frozen=True, slots=True)
class CordonNode(_OnNode):
    why: str = "maintenance"
    kind: ClassVar[str] = "node.cordon"

    def command(self) -> tuple[str, ...]:
        return ("kubectl", "cordon", self.node)

    def touches(self) -> tuple[str, ...]:
        state = self._state()
        return (f"node {self.node}: " + ("takes no pods already" if state.unschedulable else "takes no new pods"),)

    def before(self) -> dict[str, Any]:
        return {"unschedulable": self._state().unschedulable}

    def is_applied(self) -> bool:
        return self._state().unschedulable

    def apply(self) -> None:
        self._with_client(lambda client: cordon(client, self.node, self.why))

    def undo(self, before: Mapping[str, Any]) -> None:
        """Somebody else's cordon stays."""
        if not before.get("unschedulable"):
            self._with_client(lambda client: uncordon(client, self.node))


@dataclass(frozen=True, slots=True)
class DrainNode(_OnNode):
    """`namespace`: where the permits are. `most`: nodes at once, in the whole cluster."""

    namespace: str = "zombiescope"
    most: int = 1
    timeout_s: float = TIMEOUT_S
    local_data: bool = False
    unmanaged: bool = False
    unsafe: bool = False
    kind: ClassVar[str] = "node.drain"

    @property
    def consent(self) -> Consent:
        return Consent(self.local_data, self.unmanaged, self.unsafe)

    def command(self) -> tuple[str, ...]:
        more = [("--delete-emptydir-data", self.local_data), ("--force", self.unmanaged)]
        words = [word for word, wanted in more if wanted]
        return ("kubectl", "drain", self.node, "--ignore-daemonsets", *words)

    def touches(self) -> tuple[str, ...]:
        lines = list(self._plan().lines())
        more = (f"and {len(lines) - MOST_LISTED} more",) if len(lines) > MOST_LISTED else ()
        return (*lines[:MOST_LISTED], *more)

    def before(self) -> dict[str, Any]:
        return {"pods": [pod.path for pod in self._plan().evicted]}

    def is_applied(self) -> bool:
        """Empty, and with a permit: a node that has none may be one of two that go down at once."""
        return self._with_client(self._is_done)

    def _is_done(self, client: Client) -> bool:
        found = plan(client, self.node, self.consent)
        return not found.evicted and not found.refused and self._permits(client).held() is not None

    def apply(self) -> None:
        self._with_client(self._drain)

    def _drain(self, client: Client) -> None:
        if not read_node(client, self.node).unschedulable:
            raise ClusterError(f"{self.node} takes new pods", "cordon it first")
        self._permits(client).take()
        Drain(client, self.node, consent=self.consent, timeout_s=self.timeout_s, told=_tell).run()

    def undo(self, before: Mapping[str, Any]) -> None:  # noqa: ARG002  evicted pods run elsewhere and stay there
        """The permit goes back; the node's cordon is another step."""
        self._with_client(lambda client: self._permits(client).give_back())

    def _permits(self, client: Client) -> Permits:
        return Permits(client, self.node, self.namespace, most=self.most)

    def _plan(self) -> DrainPlan:
        return self._with_client(lambda client: plan(client, self.node, self.consent))


def _tell(line: str) -> None:
    for each in PROGRESS:
        each(line)


def pods_left(node: str, kubeconfig: str | None) -> int:
    """Those that a drain would evict. Raises ClusterError."""
    return len(_answer(node, kubeconfig, lambda client: plan(client, node)).evicted)


def holds_permit(node: str, kubeconfig: str | None, namespace: str, most: int) -> bool:
    """Whether this node may go down. Raises ClusterError."""
    held = _answer(node, kubeconfig, lambda client: Permits(client, node, namespace, most=most).held())
    return held is not None


def has_kured(node: str, kubeconfig: str | None) -> bool:
    """Whether kured looks after this node. Raises ClusterError."""
    found = _answer(node, kubeconfig, lambda client: plan(client, node))
    return any(
        pod.owner is not None and pod.owner.kind == "DaemonSet" and pod.owner.name.startswith("kured")
        for pod, _ in found.staying
    )


ACTIONS = (CordonNode, DrainNode)


# --- cordon -----------------------------------------------------------------------------------------------------------
# A node that takes no new pods, and how it was before.
#
# An annotation says that we did it and why: what somebody else cordoned stays cordoned when ours is undone. kured goes
# first: a node that it is about to reboot is its own business.

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


def read_node(client: Client, node: str) -> NodeState:
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
    before = read_node(client, node)
    if before.kured:
        raise ClusterError(f"kured is rebooting {node}", "wait until it is back")
    if not before.unschedulable:
        _patch(client, node, unschedulable=True, mark=printable(why)[:_MAX_WHY])
    return before


def uncordon(client: Client, node: str) -> bool:
    """Whether it was ours to take back. Raises ClusterError."""
    now = read_node(client, node)
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


# --- permit -----------------------------------------------------------------------------------------------------------
# How many nodes are worked on at once, for the whole cluster: a permit is a Lease that only one can hold.
#
# With a limit of two there are two Leases, zombiescope-maintenance-0 and -1. A node takes a free one and keeps it until
# it is back; who comes too late is told who holds them. The server decides races: a Lease that changed since it was
# read is not written (409).
#
# A permit of a node that never came back is free after its duration and SKEW_S more: clocks of two nodes differ, and
# two nodes down are worse than one that waits.

NAME = "zombiescope-maintenance"
DURATION_S = 3600
SKEW_S = 600.0
MAX_NODES = 100
_CONFLICT, _MISSING = 409, 404


class Permits:
    def __init__(
        self, client: Client, node: str, namespace: str, *, most: int = 1, clock: Callable[[], float] = time.time
    ) -> None:
        if not 1 <= most <= MAX_NODES:
            raise ClusterError(f"{most} nodes at once", f"give a limit from 1 to {MAX_NODES}")
        self._client, self._node, self._namespace, self._most, self._clock = client, node, namespace, most, clock

    def held(self) -> str | None:
        """The name of the one that this node holds. Raises ClusterError."""
        for name, lease in self._all():
            if lease is not None and _spec(lease).get("holderIdentity") == self._node:
                return name
        return None

    def take(self) -> str:
        """Its name; again the same for the node that has one. Raises ClusterError with who holds them."""
        holders: list[str] = []
        leases = list(self._all())
        own = [one for one in leases if one[1] is not None and _spec(one[1]).get("holderIdentity") == self._node]
        for name, lease in own or leases:
            if lease is None:
                if self._write(name, None):
                    return name
            elif own or self._is_free(lease):
                if self._write(name, lease):
                    return name
            else:
                holders.append(str(_spec(lease).get("holderIdentity")))
        who = ", ".join(holders) or "another requester"
        raise ClusterError(f"{self._most} nodes may be worked on at once, and {who} is", "wait until it is back")

    def give_back(self) -> bool:
        """Whether there was one. Raises ClusterError."""
        for name, lease in self._all():
            if lease is not None and _spec(lease).get("holderIdentity") == self._node:
                return self._write(name, lease, holder="")
        return False

    def _is_free(self, lease: dict[str, Any]) -> bool:
        spec = _spec(lease)
        renewed_us, lasts = time_us(spec.get("renewTime")), spec.get("leaseDurationSeconds")
        if not spec.get("holderIdentity"):
            return True
        if renewed_us is None or not isinstance(lasts, int):
            return False
        return self._clock() > renewed_us / 1e6 + lasts + SKEW_S

    def _all(self) -> list[tuple[str, dict[str, Any] | None]]:
        return [(name, self._read(name)) for name in (f"{NAME}-{number}" for number in range(self._most))]

    def _read(self, name: str) -> dict[str, Any] | None:
        from lightkube.resources.coordination_v1 import Lease

        try:
            return dict(self._client.get(Lease, name, namespace=self._namespace).to_dict())
        except access.trouble() as error:
            if access.status_code(error) == _MISSING:
                return None
            raise self._trouble(error) from error

    def _write(self, name: str, lease: dict[str, Any] | None, holder: str | None = None) -> bool:
        """False when somebody was quicker."""
        from lightkube.resources.coordination_v1 import Lease

        at = _stamp(self._clock())
        who = self._node if holder is None else holder
        spec = {"holderIdentity": who, "leaseDurationSeconds": DURATION_S, "acquireTime": at, "renewTime": at}
        about = {"name": name, "namespace": self._namespace}
        if lease is not None:
            about["resourceVersion"] = str(lease["metadata"]["resourceVersion"])
        wanted = access.resource(
            Lease, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": about, "spec": spec}
        )
        try:
            if lease is None:
                self._client.create(wanted)
            else:
                self._client.replace(wanted)
        except access.trouble() as error:
            if access.status_code(error) == _CONFLICT:
                return False
            raise self._trouble(error) from error
        return True

    def _trouble(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the Lease {self._namespace}/{NAME} cannot be used: {access.brief(error)}")


def _stamp(at_s: float) -> str:
    """These times must have six digits of a second, and the client leaves out those that are all 0."""
    at = datetime.fromtimestamp(at_s, UTC)
    return at.replace(microsecond=at.microsecond or 1).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _spec(lease: dict[str, Any]) -> dict[str, Any]:
    found = lease.get("spec")
    return found if isinstance(found, dict) else {}
