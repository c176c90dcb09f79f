"""The agent as it runs on a node: recorder and services beside each other, and what happens when one of them dies."""

from __future__ import annotations

import os
import platform
import signal
from importlib.metadata import version
from pathlib import Path

import pytest
from tests.helpers.agent_process import AgentProcess, free_port, running_agent, until

from zombiescope.agent.metrics import families

pytestmark = pytest.mark.kernel

RECORDER, SERVICES = "zombiescope.recorder", "zombiescope.agent.services"
STARTS = ("zombiescope_agent_services_starts",)


def newest(agent: AgentProcess) -> float:
    return agent.metrics().get((families.NEWEST,), 0.0)


def test_it_records_answers_and_survives_its_services(tmp_path: Path) -> None:
    with running_agent(tmp_path, recorder={"hz": 49, "diagnose": False}) as agent:
        # WHEN it runs, it says what it records, and what the official parser reads
        wanted = {families.SATURATED, families.STORE, families.LONGEST, families.CPU}
        until("frames are counted", lambda: {name for name, *_ in agent.metrics()} >= wanted)
        found = agent.metrics()
        assert found[(families.BUILD, platform.python_version(), version("zombiescope"))] == 1
        assert found[(families.CPU, "recorder")] > 0
        assert agent.get("/healthz") == (200, b"ok\n")
        # A second one on the same node is refused, with one line that says who is there
        second = agent.another()
        assert second.returncode == 1
        assert f"already records this node into {tmp_path / 'rec'}" in second.stderr
        assert len(second.stderr.splitlines()) == 1
        # WHEN the services are killed, the recorder does not notice, and they are back, counting on
        before, at_us = agent.children(), newest(agent)
        os.kill(before[SERVICES], signal.SIGKILL)
        until("the services are back", lambda: agent.get("/metrics")[0] == 200 and newest(agent) > at_us)
        after = agent.children()
        assert after[RECORDER] == before[RECORDER]
        assert after[SERVICES] != before[SERVICES]
        assert agent.metrics()[STARTS] == 2
        assert "the services died of SIGKILL; they are started again in 1 s" in agent.said()
        # WHEN the configuration changes, what can be changed is; what cannot be says so
        old, agent.port = agent.port, free_port()
        agent.configure(recorder={"hz": 20, "diagnose": False})
        agent.signal(signal.SIGHUP)
        until("the new port answers", lambda: agent.get("/readyz")[0] == 200)
        assert agent.get("/readyz", old)[0] == 0
        assert "recorder.hz was changed; that takes a restart of the agent" in agent.said()
        agent.config.write_text("metrics: {listen: 3")
        agent.signal(signal.SIGHUP)
        until("the mistake is said", lambda: "the old one holds: agent.yaml:1: is not YAML" in agent.said())
        assert agent.get("/readyz")[0] == 200
        # WHEN the recorder dies, it is started again
        os.kill(agent.children()[RECORDER], signal.SIGKILL)
        until("another recorder", lambda: agent.children().get(RECORDER, after[RECORDER]) != after[RECORDER])
        until("it records", lambda: agent.get("/readyz")[0] == 200)
        assert agent.stop() == 0
    # systemd was told of all that
    told = agent.notified()
    assert "WATCHDOG=1" in told
    assert [each for each in told if each != "WATCHDOG=1"] == [
        "READY=1", "RELOADING=1", "READY=1", "RELOADING=1", "READY=1", "STOPPING=1",
    ]  # fmt: skip
    assert "Traceback" not in agent.said()


def test_nothing_is_left_of_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    """A recorder that outlived it would lock out the next agent."""
    with running_agent(tmp_path, recorder={"hz": 20, "diagnose": False}) as agent:
        left = agent.children().values()
        agent.kill()
        until("they end too", lambda: not any(Path(f"/proc/{pid}").exists() for pid in left), 30)
