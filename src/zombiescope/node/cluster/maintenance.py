"""Steps of a fix that take a node out of its cluster: cordon and drain. Undo of both is uncordon.

Each has the shape of an action of a remedy: plain arguments that a log can keep, `touches`, `before`, `is_applied`,
`apply`, `undo`; what fails is a ClusterError. Nothing here is done by the agent: whoever runs `fix` brings credentials
(the chart's second account), and is asked first. The reboot itself is fix/actions/reboot.py's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from zombiescope.node.cluster import cordon
from zombiescope.node.cluster.access import Access, ClusterError
from zombiescope.node.cluster.drain import TIMEOUT_S, Consent, Drain, DrainPlan, plan
from zombiescope.node.cluster.permit import Permits

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

    def _state(self) -> cordon.NodeState:
        return self._with_client(lambda client: cordon.read(client, self.node))


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
        self._with_client(lambda client: cordon.cordon(client, self.node, self.why))

    def undo(self, before: Mapping[str, Any]) -> None:
        """Somebody else's cordon stays."""
        if not before.get("unschedulable"):
            self._with_client(lambda client: cordon.uncordon(client, self.node))


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
        if not cordon.read(client, self.node).unschedulable:
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
