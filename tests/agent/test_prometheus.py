"""Debian's real Prometheus and Alertmanager, a real agent, a real fault: the alert fires, and is over when that is.

`make test-agent` runs it. Everything listens on the loopback and ends with the test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import Needs
from tests.helpers import chart
from tests.helpers.agent_process import AgentProcess, free_port, running_agent, until
from tests.helpers.publisher import heartbeat_of

pytestmark = [pytest.mark.agent, pytest.mark.timeout(420)]

ROOT = Path(__file__).parents[2]
FAULT_S = 60
NAME = "limited-to-a-tenth"
CAUSE = "cfs-throttle"
# What a CPU limit does to a container, as lab/scenarios/cfs_throttle.py does it. It needs no idle machine, and takes a
# tenth of a core.
FAULT = f"""
import os, sys, time
for place in sys.argv[1:]:
    open(place + "/cgroup.procs", "w").write("0")
open("/proc/self/comm", "w").write("throttled")
end = time.monotonic() + {FAULT_S}
while time.monotonic() < end:
    pass
"""


@pytest.fixture(scope="module", autouse=True)
def _needs() -> None:
    needs = Needs()
    needs.root()
    needs.perf_events()
    for program in ("prometheus", "prometheus-alertmanager"):
        if shutil.which(program) is None:
            needs.lack(f"needs {program} (Debian package of that name)")


class Received:
    """A webhook: what it got, and a way to be away for a while."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.away = False
        received = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if not received.away:
                    received.messages.append(json.loads(body))
                self.send_response(503 if received.away else 200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def states(self, cause: str) -> list[str]:
        alerts = [alert for message in self.messages for alert in message["alerts"]]
        return [alert["status"] for alert in alerts if alert["labels"].get("cause") == cause]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def received() -> Iterator[Received]:
    made = Received()
    try:
        yield made
    finally:
        made.close()


@contextmanager
def program(place: Path, *command: str) -> Iterator[None]:
    with (place / f"{Path(command[0]).name}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "GOMAXPROCS": "1"})
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


@contextmanager
def alertmanager(place: Path, hook: str) -> Iterator[int]:
    port, receivers = free_port(), [{"name": "hook", "webhook_configs": [{"url": hook}]}]
    times = {"group_wait": "1s", "group_interval": "1s", "repeat_interval": "1h"}
    config = {"route": {"receiver": "hook", "group_by": ["..."], **times}, "receivers": receivers}
    (place / "am.yaml").write_text(yaml.safe_dump(config))
    options = (f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=", f"--storage.path={place / 'am'}")
    with program(place, "prometheus-alertmanager", f"--config.file={place / 'am.yaml'}", *options):
        until("Alertmanager is up", lambda: _answers(f"http://127.0.0.1:{port}/api/v2/status"))
        yield port


@contextmanager
def prometheus(place: Path, agent: AgentProcess, alerts_to: int, job: dict[str, Any] | None = None) -> Iterator[str]:
    """`job`: how it scrapes; the usual way is one static target."""
    port = free_port()
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ROOT / "deploy/prometheus" / name) for name in ("alerts.yaml", "recording.yaml")],
        "scrape_configs": [
            job or {"job_name": "zombiescope", "static_configs": [{"targets": [f"127.0.0.1:{agent.port}"]}]},
        ],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alerts_to}"]}]}]},
    }
    (place / "prometheus.yaml").write_text(yaml.safe_dump(config))
    options = (f"--storage.tsdb.path={place / 'tsdb'}", f"--web.listen-address=127.0.0.1:{port}")
    with program(place, "prometheus", f"--config.file={place / 'prometheus.yaml'}", *options):
        base = f"http://127.0.0.1:{port}/api/v1"
        until("Prometheus is up", lambda: _answers(f"{base}/status/config"))
        yield base


def _answers(url: str) -> bool:
    with suppress(OSError, ValueError):
        return get(url) is not None
    return False


def firing(base: str) -> set[tuple[str, str]]:
    """(alert, cause) of those that fire."""
    alerts = get(f"{base}/alerts")["data"]["alerts"]
    names = [(one["labels"]["alertname"], one["labels"].get("cause", "")) for one in alerts if one["state"] == "firing"]
    return set(names)


def value(base: str, expression: str) -> float | None:
    from urllib.parse import quote

    found = get(f"{base}/query?query={quote(expression)}")["data"]["result"]
    return float(found[0]["value"][1]) if found else None


@contextmanager
def limited() -> Iterator[list[Path]]:
    """Cgroups of its own with a tenth of a core."""
    top = Path("/sys/fs/cgroup")
    v1 = (top / "cpu").is_dir()
    places = [top / "cpu" / NAME, top / "memory" / NAME] if v1 else [top / NAME]
    try:
        for place in places:
            place.mkdir(exist_ok=True)
        if v1:
            (places[0] / "cpu.cfs_period_us").write_text("100000")
            (places[0] / "cpu.cfs_quota_us").write_text("10000")
        else:
            (places[0] / "cpu.max").write_text("10000 100000")
        yield places
    finally:
        for place in places:
            until(f"{place} is gone", lambda place=place: _removed(place), 10)  # type: ignore[misc]


def _removed(place: Path) -> bool:
    with suppress(OSError):
        place.rmdir()
    return not place.exists()


@contextmanager
def fault() -> Iterator[None]:
    with limited() as places:
        process = subprocess.Popen([sys.executable, "-c", FAULT, *map(str, places)])
        try:
            yield
        finally:
            process.kill()
            process.wait()


def soon(true: Callable[[], object]) -> bool:
    end = time.monotonic() + FAULT_S + 15
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def look(agent: AgentProcess, state: str) -> None:
    """What a doctor writes down, in its place."""
    causes = [{"pattern": "zombie-memcg", "summary": "core 39 was lost for 6 s"}]
    one = {"id": "zombie-1", "from": time.time() - 6, "to": time.time(), "severity": "critical", "causes": causes}
    document = {"at": time.time(), "incidents": [{**one, "state": state, "symptoms": [{"text": "core 39 was held"}]}]}
    (agent.node_dir / "new").write_text(json.dumps(document))
    (agent.node_dir / "new").rename(agent.node_dir / "incidents.json")


def test_an_incident_goes_all_the_way_to_the_pager_and_back(tmp_path: Path) -> None:
    """By way of Prometheus' rules, and straight to Alertmanager's API. No doctor: its file is written by the test."""
    with received() as hook, alertmanager(tmp_path, hook.url) as alerts_to:
        webhook = {"url": f"http://127.0.0.1:{alerts_to}/api/v2/alerts", "format": "alertmanager", "every": "1s"}
        names = ("ZombiescopeIncident", "ZombiescopeZombieMemcg")
        with (
            running_agent(tmp_path, recorder={"diagnose": False, "hz": 20}, webhook=webhook) as agent,
            prometheus(tmp_path, agent, alerts_to) as base,
        ):
            until("a scrape", lambda: value(base, 'up{job="zombiescope"}') == 1)
            look(agent, "open")
            until("it fires", lambda: ("ZombiescopeIncident", "zombie-memcg") in firing(base))
            until("both are told", lambda: {("firing", name) for name in names} <= told(hook))
            look(agent, "closed")
            until("it is over", lambda: not firing(base) & {("ZombiescopeIncident", "zombie-memcg")})
            until("both are over", lambda: {("resolved", name) for name in names} <= told(hook), 90)
            assert value(base, 'zombiescope_incidents_total{cause="zombie-memcg"}') == 1
            assert value(base, 'zombiescope_webhook_alerts_total{result="accepted"}') == 2
            targets = get(f"{base}/targets")["data"]["activeTargets"]
            assert [one["lastError"] for one in targets] == [""]


def test_a_recorder_that_is_stopped_goes_to_the_pager_and_is_over_when_it_runs_again(tmp_path: Path) -> None:
    alert = "ZombiescopePartDown"
    with received() as hook, alertmanager(tmp_path, hook.url) as alerts_to:
        webhook = {"url": f"http://127.0.0.1:{alerts_to}/api/v2/alerts", "format": "alertmanager", "every": "1s"}
        with (
            running_agent(tmp_path, recorder={"diagnose": False, "hz": 20}, webhook=webhook) as agent,
            heartbeat_of(agent) as publishers,
            prometheus(tmp_path, agent, alerts_to) as base,
        ):
            until("a scrape", lambda: value(base, 'zombiescope_part_up{part="recorder"}') == 1)
            for pid in publishers:
                os.kill(pid, signal.SIGSTOP)
            until("it fires", lambda: (alert, "") in firing(base))
            both = {"prometheus: recorder", "webhook: part: recorder"}
            until("both report it", lambda: both <= of_parts(hook, "firing"))
            for pid in publishers:
                os.kill(pid, signal.SIGCONT)
            until("it is over", lambda: (alert, "") not in firing(base))
            until("both report that", lambda: both <= of_parts(hook, "resolved"), 120)


def of_parts(hook: Received, status: str) -> set[str]:
    """Who reported which part: the rules of Prometheus, or our own webhook."""
    labels = [one["labels"] for message in hook.messages for one in message["alerts"] if one["status"] == status]
    rules = {f"prometheus: {one['part']}" for one in labels if "part" in one}
    return rules | {f"webhook: {one['incident']}" for one in labels if one.get("cause") == "part-down"}


def told(hook: Received) -> set[tuple[str, str]]:
    alerts = [alert for message in hook.messages for alert in message["alerts"]]
    return {(alert["status"], alert["labels"]["alertname"]) for alert in alerts}


def test_an_alert_fires_on_a_real_fault_and_resolves(tmp_path: Path) -> None:
    with received() as hook, received() as own:
        webhook = {"url": own.url, "every": "1s"}
        with (
            alertmanager(tmp_path, hook.url) as alerts_to,
            running_agent(tmp_path, webhook=webhook) as agent,
            prometheus(tmp_path, agent, alerts_to) as base,
        ):
            until("a scrape", lambda: value(base, 'up{job="zombiescope"}') == 1)
            until("the doctor stands by", lambda: _doctor(agent), 60)
            own.away = True
            with fault():
                alert = ("ZombiescopeIncident", CAUSE)
                assert soon(lambda: alert in firing(base)), (firing(base), agent.said())
                assert soon(lambda: "firing" in hook.states(CAUSE))
                own.away = False
            # THEN it is over, and everybody hears of it
            until("the alert is over", lambda: alert not in firing(base), 90)
            until("Alertmanager says so", lambda: "resolved" in hook.states(CAUSE), 60)
            until("our own webhook says so", lambda: "resolved" in own.states(CAUSE), 60)
            # What a scrape a minute later finds is what happened meanwhile
            assert value(base, f'sum(zombiescope_incidents_total{{cause="{CAUSE}"}})') == 1
            assert (value(base, "zombiescope_diagnosis_passes_total") or 0) >= 1
    assert own.states(CAUSE).count("resolved") == 1
    assert own.states(CAUSE).count("firing") <= 2  # once, and once more if it got worse


def _doctor(agent: AgentProcess) -> bool:
    """Whether it is loaded: what it costs is more than nothing."""
    return agent.metrics().get(("zombiescope_process_cpu_seconds_total", "helpers"), 0.0) > 0


# --- as the Prometheus operator scrapes it ---------------------------------------------------------------------------

LOOPING = "ab" * 32
RESTARTS = 8


def as_the_operator_writes_it(alive: str, dead: str) -> dict[str, Any]:
    """The scrape config that the operator makes of the chart's PodMonitor, with two pods in the place of its service
    discovery: its own relabelling (job by jobLabel; namespace, pod and container of the target), and after it ours."""

    def pod(address: str, name: str, node: str) -> dict[str, Any]:
        meta = {"namespace": "zombiescope", "pod_name": name, "pod_container_name": "agent", "pod_node_name": node,
                "pod_label_app_kubernetes_io_name": "zombiescope"}  # fmt: skip
        return {"targets": [address], "labels": {f"__meta_kubernetes_{key}": value for key, value in meta.items()}}

    def relabel(source: str, target: str) -> dict[str, Any]:
        return {"source_labels": [f"__meta_kubernetes_{source}"], "target_label": target}

    (monitor,) = chart.of_kind(chart.objects('metrics={"podMonitor":{"enabled":true}}'), "PodMonitor")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    label = "pod_label_" + re.sub(r"[^a-z0-9]", "_", monitor["spec"]["jobLabel"])
    ours = [
        {"source_labels": one["sourceLabels"], "target_label": one["targetLabel"]} for one in endpoint["relabelings"]
    ]
    return {
        "job_name": "podMonitor/zombiescope/zombiescope/0",
        "honor_labels": endpoint["honorLabels"],
        "static_configs": [pod(alive, "zombiescope-x7k2p", "node-8"), pod(dead, "zombiescope-q9w8e", "node-9")],
        "relabel_configs": [
            relabel("namespace", "namespace"), relabel("pod_container_name", "container"), relabel("pod_name", "pod"),
            {"target_label": "job", "replacement": "zombiescope/zombiescope"}, relabel(label, "job"), *ours,
        ],
    }  # fmt: skip


def a_container_loops() -> None:
    """The memory cgroup of one container, made and removed again and again."""
    top = Path("/sys/fs/cgroup/memory" if Path("/sys/fs/cgroup/memory").is_dir() else "/sys/fs/cgroup")
    docker = top / "docker"
    was_there = docker.is_dir()
    docker.mkdir(exist_ok=True)
    try:
        for _ in range(RESTARTS):
            (docker / LOOPING).mkdir()
            time.sleep(0.4)
            (docker / LOOPING).rmdir()
            time.sleep(1.2)
    finally:
        if not was_there:
            docker.rmdir()


def test_with_the_operators_labels_an_alert_names_the_container_that_loops_and_the_node(tmp_path: Path) -> None:
    with (
        received() as hook,
        alertmanager(tmp_path, hook.url) as alerts_to,
        running_agent(tmp_path, recorder={"diagnose": False, "hz": 20}) as agent,
        prometheus(
            tmp_path, agent, alerts_to, as_the_operator_writes_it(f"127.0.0.1:{agent.port}", "127.0.0.1:1")
        ) as base,
    ):
        until("a scrape", lambda: value(base, 'up{job="zombiescope", instance="node-8"}') == 1)
        # THEN an agent that is dead is found by the rule's own expression, under the name of its node
        until("the dead one", lambda: value(base, 'up{job="zombiescope", instance="node-9"}') == 0)
        dead = ("ZombiescopeAgentDown", "node-9")
        until("it waits to fire", lambda: dead in {(one["alertname"], one.get("instance")) for one in alerts_of(base)})
        # WHEN a container that is not ours loops
        a_container_loops()
        alert = "ZombiescopeContainerCrashLoop"
        until("it fires", lambda: alert in {name for name, _ in firing(base)}, 60)
        (labels,) = [one for one in alerts_of(base) if one["alertname"] == alert]
    # THEN it is named, and not the agent's own pod
    assert (labels["container"], labels["instance"], labels["node"]) == (LOOPING[:12], "node-8", "node-8")
    assert not {"pod", "namespace", "exported_container"} & set(labels)


def alerts_of(base: str) -> list[dict[str, str]]:
    """The labels of each, also of those that wait."""
    return [one["labels"] for one in get(f"{base}/alerts")["data"]["alerts"]]


def test_alertmanager_reads_the_rules_that_silence_symptoms(tmp_path: Path) -> None:
    if shutil.which("amtool") is None:
        Needs().lack("needs amtool (Debian package prometheus-alertmanager)")
    config = tmp_path / "alertmanager.yaml"
    rules = (ROOT / "deploy/prometheus/alertmanager.yaml").read_text()
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n" + rules)
    done = subprocess.run(["amtool", "check-config", config], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "2 inhibit rules" in done.stdout
