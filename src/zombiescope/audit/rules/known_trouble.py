"""An agent that is known to fail on some hardware, started here; catalogue/agents.toml says why."""

from __future__ import annotations

from collections.abc import Iterator

from zombiescope.audit.finding import Finding
from zombiescope.audit.node import Node

ID = "known-trouble"
TITLE = "An agent that is known to fail where it is not needed"


def find(node: Node) -> Iterator[Finding]:
    for agent in node.catalogue.agents:
        if agent.belongs_to or agent.not_on or agent.endless_by_design or agent.unit not in node.starts:
            continue
        yield Finding(
            id=f"{ID}:{agent.unit}",
            rule=ID,
            unit=agent.unit,
            severity="info",
            why=f"{agent.name}: {agent.why}",
            evidence=node.evidence_of(agent.unit),
            fix=(f"# if that is so here: {node.disable(agent.unit)}",),
        )
