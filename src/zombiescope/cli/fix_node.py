"""Options of `zombiescope fix` for the whole node: cordon, drain, reboot; each has to be asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from zombiescope.questions.parameter import Question, parameter

if TYPE_CHECKING:
    from zombiescope.fix.node_steps import NodeRequest
    from zombiescope.fix.verify import Verdict
    from zombiescope.model.plans.plan import Plan

_PANEL = "The whole node"
_ONLY: dict[str, Any] = {"panel": _PANEL, "only": "command"}
LOSSES = ("local-data", "unmanaged", "unsafe")
MOST_NODES = 100


@dataclass(frozen=True, slots=True)
class NodeQuestion(Question):
    """What is to be done to the node itself, at the end of the plan."""

    drain: bool = parameter(False, "Cordon this Kubernetes node and evict its pods. With --undo: uncordon it.", **_ONLY)
    reboot: bool = parameter(False, "Reboot this node at the end; a Kubernetes node is drained first.", **_ONLY)
    kubeconfig: str | None = parameter(
        None, "Credentials for the API server: the chart's remediation account.", metavar="FILE", **_ONLY
    )
    kube_node: str | None = parameter(
        None, "This node's name in Kubernetes. Default: $NODE_NAME, or the host's name.", metavar="NAME", **_ONLY
    )
    lease_namespace: str = parameter(
        "zombiescope", "Where the Leases are that limit how many nodes are down at once.", metavar="NAME", **_ONLY
    )
    nodes_at_once: int = parameter(1, "Maximum number of nodes down at the same time.", low=1, high=MOST_NODES, **_ONLY)
    may_lose: tuple[str, ...] = parameter(
        (), "What a drain may end for good: local-data (emptyDirs), unmanaged pods, unsafe ones. Repeatable.",
        metavar="WHAT", **_ONLY,
    )  # fmt: skip

    @property
    def is_asked(self) -> bool:
        return self.drain or self.reboot

    def check(self) -> None:
        for word in self.may_lose:
            if word not in LOSSES:
                raise typer.BadParameter(f"--may-lose {word}: one of {', '.join(LOSSES)}")
        if self.kubeconfig is not None and not Path(self.kubeconfig).is_file():
            raise typer.BadParameter(f"--kubeconfig {self.kubeconfig}: no such file")

    def request(self) -> NodeRequest:
        from zombiescope.fix.node_steps import NodeRequest

        place = str(Path(self.kubeconfig).absolute()) if self.kubeconfig is not None else None
        return NodeRequest(
            self.drain, self.reboot, place, self.kube_node, self.lease_namespace, self.nodes_at_once,
            frozenset(self.may_lose),
        )  # fmt: skip


def with_node(plan: Plan, question: NodeQuestion) -> Plan:
    from zombiescope.fix import node_steps

    return node_steps.added(plan, question.request())


def after_the_node(plan: Plan, option: str) -> Verdict | None:
    """What can be said of a plan that takes the node down: whether it helped is seen when it is back. None where the
    node stays up."""
    from zombiescope.fix import verify
    from zombiescope.fix.node_steps import is_reboot

    if not any(is_reboot(step) and step.state == "applied" for step in plan.steps):
        return None
    now_us = time.time_ns() // 1000
    back = f"; then 'zombiescope fix {option} --undo --drain' takes pods again" if _drains(plan) else ""
    return verify.unknown(
        now_us, now_us, f"the node goes down; when it is back, look with 'zombiescope diagnose'{back}"
    )


def _drains(plan: Plan) -> bool:
    return any(step.action is not None and step.action.kind == "node.drain" for step in plan.steps)
