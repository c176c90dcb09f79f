"""Metrics of the agent itself, whatever services it has."""

from __future__ import annotations

from zombiescope.agent.tally import Family
from zombiescope.agent.threads import RESTARTS

RECORDER_STARTS = "zombiescope_agent_recorder_starts"
SERVICES_STARTS = "zombiescope_agent_services_starts"

FAMILIES = (
    Family(
        RESTARTS, "counter", "How often a service of the agent failed and was started again.", ("service",), 16,
        "one for each service of the agent",
    ),
    Family(RECORDER_STARTS, "gauge", "How often the agent has started its recorder; 1 is as it should be."),
    Family(SERVICES_STARTS, "gauge", "How often the agent has started its services; 1 is as it should be."),
)  # fmt: skip
