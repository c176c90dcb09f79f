"""For each part and each way in which it can be dead: /readyz, /metrics, the alert, the Event and the webhook report
it, and report that it works again. The parts of a recorder are published as it does, with its heartbeat file."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tests.helpers.api_client import Api
from tests.helpers.publisher import publishing

from zombiescope.agent import node_parts, parts
from zombiescope.agent.health import Health
from zombiescope.agent.kubernetes import PART_FAILED, PART_RECOVERED, KubernetesSection, _Session, part_news
from zombiescope.agent.metrics import families
from zombiescope.agent.metrics.door import Request
from zombiescope.agent.metrics.exposition import registry
from zombiescope.agent.metrics.pages import Pages
from zombiescope.agent.node_parts import SUPERVISOR, VITAL
from zombiescope.agent.part_watch import QUIET_S, PartChange, PartWatch
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.agent.webhook.alert import of_part
from zombiescope.agent.webhook.part import Outbox
from zombiescope.base.feed import Feed
from zombiescope.base.missing import Missing
from zombiescope.node.cluster.node_events import NodeEvents
from zombiescope.store import health, locate
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part

pytest.importorskip("lightkube")

RULES = Path(__file__).parents[3] / "deploy/prometheus/alerts.yaml"
PUBLISHED = (
    LIVE_DIAGNOSIS, "disk writer", "GPU reader", "Python stack reader", "whole-stack reader", "task-wait reader",
    "hardware reader", "process lookup", "container lookup", "network card reader",
)  # fmt: skip
SERVICES = ("account", "metrics", "webhook", "kubernetes", "profiles", "ray", "shipping", SUPERVISOR)
OPENMETRICS = {"accept": "application/openmetrics-text; version=1.0.0"}
WHY = "failed: self-test: indices_nonzero died of SIGSEGV"


@dataclass
class Recorded:
    """A recording that goes on."""

    missing: tuple[Missing, ...] = ()

    def newest_s(self) -> float:
        return time.time()


@dataclass
class Agent:
    """What the agent's services see of a node, each asked once by `look`."""

    node_dir: Path
    runtime: Path
    now: float = 1000.0
    recorded: Recorded = field(default_factory=Recorded)

    def __post_init__(self) -> None:
        self.health = Health(lambda _: None, lambda: self.now)
        for name in SERVICES:
            self.health.say(name, "ok")
            self.health.beat(name, 2.0)
        context = Context("metrics", self.node_dir, "lab", "lab", Tally(parts.families()), self.health)
        self._pages = Pages(registry(context.tally), context, self.recorded)
        self._watch = PartWatch(lambda: node_parts.news(self.node_dir, self.health), clock=lambda: self.now)
        self._events, self.api = NodeEvents("lab"), Api()
        self.outbox = Outbox(None)

    def publish(self, *told: Part) -> None:
        now = time.time()
        well = {name: Part(name, "ok", now, now, 1) for name in PUBLISHED}
        path = health.path_of(self.runtime, os.getpid())
        own = Part(RECORDER, "ok", now, now, 1)
        health.publish(
            path, RECORDER, self.node_dir, ({RECORDER: own} | well | {one.name: one for one in told}).values()
        )

    def readyz(self) -> tuple[int, dict[str, Any]]:
        answer = self._pages.answer(Request("/readyz", {}))
        return answer.status, json.loads(answer.body)

    def metrics(self) -> dict[tuple[str, ...], float]:
        text = self._pages.answer(Request("/metrics", OPENMETRICS)).body.decode()
        found = text_string_to_metric_families(text)  # type: ignore[no-untyped-call]
        return {(one.name, *one.labels.values()): one.value for family in found for one in family.samples}

    def look(self) -> list[PartChange]:
        """What follows from the parts as they are now: Events and alerts are sent."""
        changes = self._watch.poll()
        for change in changes:
            asyncio.run(self._tell(change))
            self.outbox.put(of_part(change, "lab"))
        return changes

    async def _tell(self, change: PartChange) -> None:
        await self._events.tell(self.api, part_news(change))  # type: ignore[arg-type]


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    runtime, node_dir = tmp_path / "run", tmp_path / "node=lab"
    runtime.mkdir()
    node_dir.mkdir()
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(runtime))
    with (node_dir / locate.LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = Agent(node_dir, runtime)
        made.publish()
        made.metrics()
        assert made.look() == []
        yield made


def down_by_the_rule(metrics: dict[tuple[str, ...], float]) -> set[str]:
    """The parts for which the alert ZombiescopePartDown fires; promtool tries the rule itself (test_deploy.py)."""
    rules = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    (rule,) = [rule for rule in rules if rule["alert"] == "ZombiescopePartDown"]
    series = families.PART_UP
    recorder = f'{series}{{part="recorder"}} == 0'
    assert rule["expr"] == f"{recorder} or {series} == 0 unless on (instance) {recorder}"
    down = {labels[0] for (name, *labels), value in metrics.items() if name == series and value == 0}
    return {RECORDER} if RECORDER in down else down


def assert_reported(agent: Agent, name: str, state: str, why: str) -> None:
    changes = agent.look()
    said = f"{name} {why}"
    code, document = agent.readyz()
    assert code == (503 if name in VITAL else 200), document
    assert said in (str(document["why"]) if name in VITAL else " ".join(document["degraded"]))
    assert document["parts"][name]["state"] == state
    found = agent.metrics()
    assert found[families.PART_UP, name] == 0
    assert found[families.PART_FAILURES, name] >= 1
    assert name in down_by_the_rule(found)
    assert name in [change.part.name for change in changes]
    (event,) = [one for one in agent.api.created if said in one["message"]]
    assert (event["reason"], event["type"], event["involvedObject"]["kind"]) == (PART_FAILED, "Warning", "Node")
    (alert,) = [one for one in agent.outbox.next() if said in one.summary]
    assert (alert.status, alert.severity, alert.name) == ("firing", "warning", "ZombiescopePartDown")
    agent.outbox.sent(agent.outbox.next())


def assert_works_again(agent: Agent, name: str) -> None:
    assert agent.look() == []
    agent.now += QUIET_S
    for service in SERVICES:
        agent.health.beat(service, 2.0)
    assert [(change.kind, change.part.name) for change in agent.look()] == [("recovered", name)]
    assert agent.readyz()[0] == 200
    assert agent.readyz()[1]["degraded"] == []
    assert agent.metrics()[families.PART_UP, name] == 1
    event = agent.api.created[-1]
    assert (event["reason"], event["type"]) == (PART_RECOVERED, "Normal")
    assert name in event["message"]
    assert [(one.status, one.summary) for one in agent.outbox.next()] == [("resolved", f"{name} works again")]


def test_a_node_on_which_everything_works_is_ready(agent: Agent) -> None:
    code, document = agent.readyz()
    assert (code, document["why"], document["degraded"], document["missing"]) == (200, None, [], [])
    found = agent.metrics()
    assert {name: found[families.PART_UP, name] for name in (RECORDER, *PUBLISHED, *SERVICES)} == dict.fromkeys(
        (RECORDER, *PUBLISHED, *SERVICES), 1.0
    )
    assert found[families.PART_SUCCESS, LIVE_DIAGNOSIS] == pytest.approx(time.time(), abs=60)
    assert down_by_the_rule(found) == set()


@pytest.mark.parametrize("state", ["failed", "hung"])
@pytest.mark.parametrize("name", [RECORDER, *PUBLISHED])
def test_a_part_that_the_recorder_publishes_as_dead(agent: Agent, name: str, state: health.State) -> None:
    dead = Part(name, state, time.time(), time.time(), 5, WHY, failures=1)
    agent.publish(dead)
    assert_reported(agent, name, state, WHY)
    agent.publish(replace(dead, state="ok"))
    assert_works_again(agent, name)


@pytest.mark.parametrize("state", ["failed", "hung"])
@pytest.mark.parametrize("name", SERVICES)
def test_a_service_of_the_agent_that_is_dead(agent: Agent, name: str, state: str) -> None:
    if state == "failed":
        agent.health.say(name, "failed", WHY.removeprefix("failed: "))
        assert_reported(agent, name, state, WHY)
    else:
        agent.now += 6.0
        for other in SERVICES:
            if other != name:
                agent.health.beat(other, 2.0)
        assert_reported(agent, name, state, "has done nothing for 6 s")
    agent.health.say(name, "ok")
    agent.health.beat(name, 2.0)
    assert_works_again(agent, name)


@pytest.mark.parametrize(("number", "state"), [(signal.SIGKILL, "failed"), (signal.SIGSTOP, "hung")])
def test_a_publisher_that_is_killed_or_stopped_takes_all_its_parts_along_and_is_one_report(
    agent: Agent, number: signal.Signals, state: str
) -> None:
    health.withdraw(health.path_of(agent.runtime, os.getpid()))
    parts_told = [(RECORDER, "ok", ""), *((name, "ok", "") for name in PUBLISHED)]
    with ExitStack() as stack:
        publisher = stack.enter_context(publishing(agent.runtime, agent.node_dir, *parts_told))
        assert agent.readyz()[0] == 200
        publisher.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitpid(publisher.pid, os.WUNTRACED)
        else:
            publisher.wait()
        changes = agent.look()
        code, document = agent.readyz()
        assert code == 503
        assert document["why"].startswith(f"{RECORDER} ")
        assert ("is stopped" if state == "hung" else "has died") in document["why"]
        assert LIVE_DIAGNOSIS not in document["why"], "a consequence"
        assert {document["parts"][name]["state"] for name in (RECORDER, *PUBLISHED)} == {state}
        found = agent.metrics()
        assert {name: found[families.PART_UP, name] for name in PUBLISHED} == dict.fromkeys(PUBLISHED, 0.0)
        assert down_by_the_rule(found) == {RECORDER}
        assert [change.part.name for change in changes] == [RECORDER]
        assert [one["reason"] for one in agent.api.created] == [PART_FAILED]
        assert [one.status for one in agent.outbox.next()] == ["firing"]


@pytest.mark.parametrize("name", [RECORDER, LIVE_DIAGNOSIS, "GPU reader"])
def test_a_publisher_whose_beat_is_old_hangs(agent: Agent, name: str) -> None:
    path = health.path_of(agent.runtime, os.getpid())
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "beat_s": time.monotonic() - health.SILENT_S - 1}))
    agent.look()
    assert agent.readyz()[0] == 503
    assert agent.metrics()[families.PART_UP, name] == 0


def test_the_end_of_the_recorder_is_reported_as_the_supervisor_saw_it(agent: Agent) -> None:
    """At once, with the reason, and also of one that left no heartbeat file behind."""
    health.withdraw(health.path_of(agent.runtime, os.getpid()))
    agent.health.recorder_down = "ended with 7; it is started again in 1 s"
    assert_reported(agent, RECORDER, "failed", "ended with 7")
    agent.health.recorder_down, agent.health.recorder_restarts = None, 1
    agent.publish()
    assert_works_again(agent, RECORDER)


def test_a_recorder_that_was_started_again_between_two_looks_is_reported(agent: Agent) -> None:
    agent.health.recorder_restarts = 1
    assert [(change.kind, change.part.name) for change in agent.look()] == [("failed", RECORDER)]
    assert agent.metrics()[families.PART_FAILURES, RECORDER] == 1


def test_a_part_that_is_switched_off_is_no_failure_and_has_no_series(agent: Agent) -> None:
    agent.publish(Part(LIVE_DIAGNOSIS, "off", time.time(), why="recorder.diagnose is false"))
    assert agent.readyz()[0] == 200
    assert (families.PART_UP, LIVE_DIAGNOSIS) not in agent.metrics()
    assert agent.look() == []


def test_a_service_whose_peer_is_away_is_degraded_and_not_down(agent: Agent) -> None:
    agent.health.say("webhook", "degraded", "http://pager: no answer within 10 s")
    code, document = agent.readyz()
    assert (code, document["degraded"]) == (200, ["webhook is degraded: http://pager: no answer within 10 s"])
    assert agent.metrics()[families.PART_UP, "webhook"] == 1
    assert agent.look() == []


def test_missing_sources_are_listed_and_the_disk_makes_the_node_unready(agent: Agent) -> None:
    agent.recorded.missing = (Missing("GPU", "the driver does not answer", "nvidia-smi"),)
    code, document = agent.readyz()
    assert (code, document["missing"]) == (
        200, [{"source": "GPU", "why": "the driver does not answer", "grant": "nvidia-smi"}],
    )  # fmt: skip
    agent.recorded.missing = (Missing("disk", "no space left on device", "df"),)
    assert agent.readyz()[0] == 503
    assert agent.readyz()[1]["why"] == "disk is missing: no space left on device"


def test_the_kubernetes_service_reports_when_the_server_is_back(agent: Agent) -> None:
    """What failed while it was away is reported then, in order, and once."""

    class Away(Api):
        async def create(self, event: Any, **_: Any) -> None:  # noqa: ARG002  a client is given it
            raise OSError("no route to host")

    context = Context("kubernetes", agent.node_dir, "lab", "lab", Tally(parts.families()), agent.health)
    session = _Session(KubernetesSection(enabled=True, node="lab", ray=False), Feed([str(agent.runtime)]), context)
    dead = Part(LIVE_DIAGNOSIS, "failed", 100.0, why=WHY, failures=1)
    agent.publish(dead)
    with pytest.raises(OSError, match="no route"):
        asyncio.run(session._tell(Away()))  # type: ignore[arg-type]
    agent.publish(dead, Part("GPU reader", "hung", 200.0, why="does not answer for 9 s", failures=1))
    for _ in range(2):
        asyncio.run(session._tell(agent.api))  # type: ignore[arg-type]
    assert [one["message"] for one in agent.api.created] == [
        f"zombiescope: live diagnosis {WHY}",
        "zombiescope: GPU reader does not answer for 9 s",
    ]
    assert agent.api.patched == []


@pytest.mark.parametrize("state", ["failed", "hung"])
@pytest.mark.parametrize("name", [RECORDER, LIVE_DIAGNOSIS])
def test_conditions_of_the_node_are_unknown_while_nothing_is_diagnosed(
    agent: Agent, name: str, state: health.State
) -> None:
    """False would mean: no core starves."""
    context = Context("kubernetes", agent.node_dir, "lab", "lab", Tally(parts.families()), agent.health)
    section = KubernetesSection(enabled=True, node="lab", ray=False, events=False, conditions=True)
    session = _Session(section, Feed([str(agent.runtime)]), context)

    def statuses() -> set[str]:
        asyncio.run(session._tell(agent.api))  # type: ignore[arg-type]
        return {one["status"] for one in agent.api.patched[-1]["status"]["conditions"]}

    assert statuses() == {"False"}
    agent.publish(Part(name, state, 100.0, why=WHY))
    assert statuses() == {"Unknown"}
    assert WHY in agent.api.patched[-1]["status"]["conditions"][0]["message"]
    agent.publish()
    assert statuses() == {"False"}


def test_no_secret_of_a_reason_leaves_the_node(agent: Agent) -> None:
    why = "cannot run trainer --password=hunter22hunter22 \x1b[2J"
    agent.publish(Part("GPU reader", "failed", time.time(), why=why, failures=1))
    agent.look()
    said = json.dumps([agent.readyz()[1], agent.api.created, [one.annotations for one in agent.outbox.next()]])
    assert "GPU reader" in said
    assert "hunter22" not in said
    assert "\\u001b" not in said


def test_memory_of_the_helpers_is_counted_once_for_each_process(agent: Agent) -> None:
    now = time.time()
    helper = {"pid": 4_000_000, "rss_bytes": 30_000_000}
    agent.publish(
        Part(RECORDER, "ok", now, pid=os.getpid(), rss_bytes=50_000_000),
        Part("GPU reader", "ok", now, **helper),  # type: ignore[arg-type]
        Part("task-wait reader", "ok", now, **helper),  # type: ignore[arg-type]
        Part("Python stack reader", "ok", now, pid=4_000_001, rss_bytes=12_000_000),
        Part("disk writer", "ok", now, pid=os.getpid(), rss_bytes=50_000_000),
    )
    assert agent.metrics()[families.RESIDENT, "helpers"] == 42_000_000


def test_counters_go_on_when_a_publisher_counts_from_nothing(agent: Agent) -> None:
    for work in (10, 15, 3):
        agent.publish(Part("GPU reader", "ok", time.time(), work=work))
        found = agent.metrics()
    # The first publication in the fixture had counted 1.
    assert found[families.PART_WORK, "GPU reader"] == 9 + 5 + 3


def test_the_number_of_series_is_bounded(agent: Agent) -> None:
    agent.publish(*(Part(f"part {number}", "ok", 1.0, 1.0) for number in range(60)))
    found = [name for name in agent.metrics() if name[0] == families.PART_WORK]
    assert len(found) <= families.PARTS_SHOWN + 1
