"""A default agent of another platform than the node runs: it cannot do its work, and what it does instead differs.

The agents and their reasons are catalogue/agents.toml, what identifies a node's platform is catalogue/platforms.toml.
"""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.catalogue import Agent
from zombiescope.audit.finding import EvidenceLine, Finding
from zombiescope.audit.node import Node
from zombiescope.node.systemd.unit_files import Service
from zombiescope.node.systemd.unit_files.timespan import human

ID = "foreign-agent"
TITLE = "A default agent of another platform"


def find(node: Node) -> Iterator[Finding]:
    for agent in node.catalogue.agents:
        if not _is_started(node, agent.unit):
            continue
        if agent.belongs_to:
            platforms = node.platform.of_kind(agent.kind)
            if agent.belongs_to in platforms:
                continue
            if platforms:
                yield _finding(node, agent, next(iter(platforms)), next(iter(platforms.values())))
            elif agent.kind == "orchestrator" and not agent.endless_by_design:
                yield _not_known(node, agent)
        elif agent.not_on in node.platform.orchestrators:
            yield _finding(node, agent, agent.not_on, node.platform.orchestrators[agent.not_on])


def _is_started(node: Node, unit: str) -> bool:
    running = (node.running or {}).get(unit)
    return unit in node.starts or (running is not None and running.active_state != "inactive")


def _finding(node: Node, agent: Agent, platform: str, shown_by: EvidenceLine) -> Finding:
    service = node.service(agent.unit)
    statuses = agent.terminal_status or (None,)
    endless = service is not None and any(service.is_endless(status) for status in statuses)
    loops = endless and not agent.endless_by_design
    severity = "info" if agent.not_on else "critical" if loops and agent.terminal_status else "warning"
    belongs = f"belongs on {agent.belongs_to} nodes" if agent.belongs_to else f"has nothing to do on {platform} nodes"
    return Finding(
        id=f"{ID}:{agent.unit}",
        rule=ID,
        unit=agent.unit,
        severity=severity,
        why=f"{agent.name} {belongs}, and this is a {platform} node. {agent.why}{_heeds(agent, service)}",
        evidence=(*node.evidence_of(agent.unit), shown_by),
        fix=(f"# if nothing here uses it: {node.disable(agent.unit)}" if agent.not_on else node.disable(agent.unit),),
    )


def _not_known(node: Node, agent: Agent) -> Finding:
    return Finding(
        id=f"{ID}:{agent.unit}",
        rule=ID,
        unit=agent.unit,
        severity="info",
        why=f"{agent.name} belongs on {agent.belongs_to} nodes, and nothing here shows what this node is for. "
        f"{agent.why}",
        evidence=node.evidence_of(agent.unit),
        fix=(f"# if it is not for {agent.belongs_to}: {node.disable(agent.unit)}",),
    )


def _heeds(agent: Agent, service: Service | None) -> str:
    """Whether the unit stays down when the agent asks for it."""
    if service is None or not agent.terminal_status:
        return ""
    statuses = " ".join(map(str, agent.terminal_status))
    if any(service.is_endless(status) for status in agent.terminal_status):
        return (
            f" This unit has no RestartPreventExitStatus={statuses}: systemd restarts it every "
            f"{human(service.restart_us)}, {service.starts_per_day:,.0f} times a day, and each start leaves a cgroup."
        )
    return f" This unit has RestartPreventExitStatus={statuses} and stays stopped then."
