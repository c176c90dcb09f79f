"""Steps for the whole node, for what nothing smaller mends: cordon, drain, reboot.

Shown at the end of a plan on a Kubernetes node, done only where they were asked for by name (--drain, --reboot): the
last resort is a person's decision. Undo is uncordon; evicted pods run elsewhere and stay.

A reboot ends by itself whatever holds until the next boot, so such steps are left out where one was asked for: one of
them that fails must not be in the way of the reboot that makes up for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from zombiescope.fix.actions.node import Cordon, Drain
from zombiescope.fix.actions.reboot import KIND, Reboot
from zombiescope.fix.step import Action, ActionFailedError, Step, quoted
from zombiescope.fix.unit_steps import listed
from zombiescope.kernel import host
from zombiescope.kernel.process import read_stat
from zombiescope.kernel.procfile import names_in
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.node.cluster.access import Access, ClusterError
from zombiescope.node.cluster.maintenance import PROGRESS, SENTINEL, CordonNode, DrainNode, has_kured
from zombiescope.node.systemd import reboot

KUBELETS = ("kubelet", "kubelite", "k3s", "k3s-server", "k3s-agent", "rke2", "k0s")
UNTIL_REBOOT = ("zombies.reclaim", "tmpfs.remove", "hog.move", "process.suspend", "setting")
"""Kinds of steps that the next boot takes back, or makes needless."""
LOSSES = ("local-data", "unmanaged", "unsafe")
"""What a drain asks for: emptyDirs, pods that nothing starts again, pods that the autoscaler was told to leave."""

_WAITS = "pods that want to come here wait, or go elsewhere"
_MOVES = "its pods end and start elsewhere, if there is room; budgets are obeyed"
_ENDS = "whatever still runs on it ends; what is not disabled comes back with it"


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """What was asked for by name."""

    drain: bool = False
    reboot: bool = False
    kubeconfig: str | None = None
    node: str | None = None
    """As Kubernetes calls it; None: $NODE_NAME, or the host's name."""
    namespace: str = "zombiescope"
    """Where the permits are."""
    most: int = 1
    """Nodes of the cluster that may be down at once."""
    may_lose: frozenset[str] = frozenset()
    """Of LOSSES."""

    @property
    def is_asked(self) -> bool:
        return self.drain or self.reboot


def added(plan: Plan, asked: NodeRequest) -> Plan:
    """The plan with what is done to the whole node at its end. ActionFailedError where that cannot be done here."""
    in_cluster = asked.kubeconfig is not None or asked.node is not None or has_kubelet()
    if asked.drain and not in_cluster:
        raise ActionFailedError(
            "no kubelet runs on this machine, so there is nothing to drain",
            "name the node with --kube-node, or use --reboot",
        )
    more = tuple(_steps(asked, plan.target)) if asked.is_asked else tuple(_shown(asked)) if in_cluster else ()
    kept = (_for_reboot(step) if asked.reboot else step for step in plan.steps)
    left = [step for step in kept if not (more and step.part == "last-resort")]
    return replace(plan, steps=distinct((*left, *more)))


def has_kubelet() -> bool:
    """Whether this machine is a Kubernetes node."""
    found = (read_stat(int(name)) for name in names_in("/proc") or () if name.isdecimal())
    return any(stat is not None and stat.comm in KUBELETS for stat in found)


def tell(told: Callable[[str], object]) -> None:
    """Who hears what a drain waits for, from now on."""
    PROGRESS[:] = [told]


def is_of_node(kind: str) -> bool:
    return kind in (CordonNode.kind, DrainNode.kind, KIND)


def is_reboot(step: Step) -> bool:
    return step.action is not None and step.action.kind == KIND


def _for_reboot(step: Step) -> Step:
    if step.action is None or step.action.kind not in UNTIL_REBOOT:
        return step
    return replace(step, action=None, state="skipped", why="the reboot makes it needless")


def _steps(asked: NodeRequest, why: str) -> Iterator[Step]:
    """Of a node of a cluster all three; of another one the reboot."""
    boot_id = host.read().boot_id or ""
    if not (asked.kubeconfig is not None or asked.node is not None or has_kubelet()):
        yield _reboot(Reboot(boot_id))
        return
    node = Access(node=asked.node).node_name()
    yield from steps(node, asked, why)
    if asked.reboot:
        yield _reboot(
            Reboot(boot_id, node, asked.kubeconfig, _by_kured(node, asked.kubeconfig), asked.namespace, asked.most)
        )


def steps(node: str, asked: NodeRequest, why: str = "") -> Iterator[Step]:
    """Cordon and drain."""
    cordon = Cordon(node=node, kubeconfig=asked.kubeconfig, why=why or "zombiescope fix")
    may = {name.replace("-", "_"): True for name in sorted(asked.may_lose & set(LOSSES))}
    drain = Drain(node=node, kubeconfig=asked.kubeconfig, namespace=asked.namespace, most=asked.most, **may)
    yield _acting(_cordon(node), cordon)
    yield _acting(_drain(node), drain)


def _by_kured(node: str, kubeconfig: str | None) -> bool:
    """Where the server cannot be asked the steps before say why, and stop the plan."""
    try:
        return has_kured(node, kubeconfig)
    except ClusterError:
        return False


def _shown(asked: NodeRequest) -> Iterator[Step]:
    """The same without its powers, and without asking the API server: nobody wanted it yet."""
    node = Access(node=asked.node).node_name()
    yield replace(_cordon(node), command=quoted(CordonNode(node).command()), why="--drain does it")
    yield replace(_drain(node), command=quoted(DrainNode(node).command()), why="--drain does it")
    yield replace(_rebooting(), command=quoted(reboot.SCHEDULE), why="--reboot does it, when the node is drained")


# --- what each is called ---------------------------------------------------------------------------------------------


def _cordon(node: str) -> Step:
    return Step(
        id=f"{CordonNode.kind}:{node}", kind="change", part="last-resort", does=f"node {node}: take no new pods",
        risk=_WAITS, undo=_uncordon(node), verify=quoted(("kubectl", "get", "node", node)) or "",
    )  # fmt: skip


def _drain(node: str) -> Step:
    on_it = ("kubectl", "get", "pods", "--all-namespaces", "--field-selector", f"spec.nodeName={node}")
    return Step(
        id=f"{DrainNode.kind}:{node}", kind="change", part="last-resort",
        does=f"node {node}: evict the pods that something starts elsewhere", risk=_MOVES,
        undo=f"{_uncordon(node)}; evicted pods stay where they are then", verify=quoted(on_it) or "",
    )  # fmt: skip


def _rebooting() -> Step:
    return Step(
        id=KIND, kind="change", part="last-resort", does="reboot this node, in a minute", risk=_ENDS,
        undo=f"{quoted(reboot.CANCEL)}, within the minute", verify="uptime --since",
    )  # fmt: skip


def _reboot(action: Reboot) -> Step:
    made = _acting(_rebooting(), action)
    if not action.by_kured:
        return made
    return replace(made, does=f"ask kured to reboot this node ({SENTINEL})", undo=f"rm {SENTINEL}")


def _uncordon(node: str) -> str:
    return quoted(("kubectl", "uncordon", node)) or "uncordon it"


def _acting(step: Step, action: Action) -> Step:
    touches, trouble = listed(action)
    return replace(step, command=quoted(action.command()), touches=touches, why=trouble, action=action)
