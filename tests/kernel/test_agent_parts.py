"""A real agent whose processes are stopped and killed: /readyz, /metrics and the heartbeat files report it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.agent_process import AgentProcess, running_agent, until
from tests.helpers.publisher import heartbeat_of

from zombiescope.agent.metrics import families
from zombiescope.agent.node_parts import SERVICES, SUPERVISOR
from zombiescope.store import health
from zombiescope.store.health import RECORDER, Part

pytestmark = [pytest.mark.kernel, pytest.mark.waits]

MODULES = {RECORDER: "zombiescope.recorder", SERVICES: "zombiescope.agent.services"}
AGENT: dict[str, dict[str, Any]] = {"recorder": {"hz": 20, "diagnose": False}, "ray": {"enabled": True}}


@contextmanager
def agent_with_heartbeat(place: Path) -> Iterator[tuple[AgentProcess, list[int]]]:
    """The agent, and the processes that publish the recorder's heartbeat: the recorder, else a stand-in beside it."""
    with running_agent(place, **AGENT) as agent, heartbeat_of(agent) as publishers:
        yield agent, publishers


def parts_of(agent: AgentProcess) -> dict[str, Part]:
    return {part.name: part for part in health.parts_of(agent.node_dir, [agent.place / "run"])}


def readyz(agent: AgentProcess) -> dict[str, Any]:
    _, body = agent.get("/readyz")
    return dict(json.loads(body)) if body else {"why": "", "degraded": []}


def is_up(agent: AgentProcess, part: str) -> float | None:
    return agent.metrics().get((families.PART_UP, part))


def test_a_recorder_that_is_stopped_or_killed_is_reported_and_reported_well_again(tmp_path: Path) -> None:
    with agent_with_heartbeat(tmp_path) as (agent, publishers):
        until("its services are published", lambda: {"metrics", "account", "ray", SUPERVISOR} <= parts_of(agent).keys())
        assert parts_of(agent)[SERVICES].pid == agent.children()[MODULES[SERVICES]]
        until("it works", lambda: is_up(agent, RECORDER) == 1)
        for pid in publishers:
            os.kill(pid, signal.SIGSTOP)
        until("it hangs", lambda: "is stopped" in str(readyz(agent)["why"]))
        assert agent.get("/readyz")[0] == 503
        assert is_up(agent, RECORDER) == 0
        for pid in publishers:
            os.kill(pid, signal.SIGCONT)
        until("it is ready again", lambda: agent.get("/readyz")[0] == 200)
        failures = agent.metrics()[families.PART_FAILURES, RECORDER]
        os.kill(publishers[0], signal.SIGKILL)
        until("its death is reported", lambda: "recorder died of SIGKILL" in str(readyz(agent)["why"]))
        until("it is ready again", lambda: agent.get("/readyz")[0] == 200)
        until("its death is counted", lambda: agent.metrics()[families.PART_FAILURES, RECORDER] > failures)
        assert readyz(agent)["degraded"] == []


def test_services_and_a_supervisor_that_are_stopped_are_reported(tmp_path: Path) -> None:
    with agent_with_heartbeat(tmp_path) as (agent, _):
        until("they are published", lambda: SERVICES in parts_of(agent))
        services = agent.children()[MODULES[SERVICES]]
        os.kill(services, signal.SIGSTOP)
        until("they hang", lambda: parts_of(agent)[SERVICES].state == "hung")
        assert parts_of(agent)["metrics"].state == "hung"
        until("the log reports it", lambda: "the services have been silent for" in agent.said())
        os.kill(services, signal.SIGCONT)
        until("they work again", lambda: parts_of(agent)[SERVICES].state == "ok" and agent.get("/readyz")[0] == 200)
        assert readyz(agent)["degraded"] == []  # and none of them is blamed
        agent.signal(signal.SIGSTOP)
        until("the supervisor hangs", lambda: any(SUPERVISOR in one for one in readyz(agent)["degraded"]))
        assert agent.get("/readyz")[0] == 200
        assert is_up(agent, SUPERVISOR) == 0
        agent.signal(signal.SIGCONT)
        until("it works again", lambda: is_up(agent, SUPERVISOR) == 1)
        assert agent.children()[MODULES[SERVICES]] == services
