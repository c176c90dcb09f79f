"""Alerts to a webhook: each incident once, its end once, whatever the receiver does meanwhile."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from zombiescope.agent import parts
from zombiescope.agent.config.setting import Duration
from zombiescope.agent.health import Health
from zombiescope.agent.post import Outcome, post
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.agent.webhook.alert import of_incident
from zombiescope.agent.webhook.messages import FORMATS, NEVER
from zombiescope.agent.webhook.part import MOST, SENT, TOGETHER, Outbox, WebhookSection, WebhookService, services
from zombiescope.base.http_client import is_address
from zombiescope.store import health
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part

SECRET_PATH = "/services/T000/B000/verysecret"


def incident(identity: str, state: str = "open", severity: str = "critical", **more: Any) -> dict[str, Any]:
    causes = [{"pattern": "zombie-memcg", "summary": "core 39 was lost for 6 s: kubelet walks 68,440 cgroups"}]
    known = {"id": identity, "from": 100.0, "to": 106.0, "state": state, "severity": severity, "causes": causes}
    return {**known, "symptoms": [{"text": "core 39 was held"}], "cost": None, **more}


def alert(*given: str, **more: Any) -> Any:
    return of_incident(incident(*given, **more), "gpu-17")


def sent(form: str, *alerts: Any) -> Any:
    return json.loads(FORMATS[form].message(alerts, "https://receiver.example.org", "key").body)


# --- messages --------------------------------------------------------------------------------------------------------


def test_an_alert_in_the_form_of_alertmanagers_webhooks() -> None:
    message = sent("webhook", alert("a"), alert("b", "closed"))
    assert (message["version"], message["status"], message["receiver"]) == ("4", "firing", "zombiescope")
    first, second = message["alerts"]
    assert first["labels"] == {
        "alertname": "ZombiescopeZombieMemcg", "node": "gpu-17", "severity": "critical", "cause": "zombie-memcg",
        "incident": "a",
    }  # fmt: skip
    assert (first["status"], first["startsAt"], first["endsAt"]) == ("firing", "1970-01-01T00:01:40Z", NEVER)
    assert (second["status"], second["endsAt"]) == ("resolved", "1970-01-01T00:01:46Z")
    assert first["annotations"]["runbook_url"] == "docs/patterns/zombie-memcg.md"
    assert message["commonLabels"]["cause"] == "zombie-memcg"
    assert "incident" not in message["commonLabels"]


def test_the_pages_that_alerts_point_to_exist() -> None:
    assert (Path(__file__).parents[3] / alert("a").runbook).exists()
    published = of_incident(incident("a"), "gpu-17", "https://wiki.example.org/patterns/")
    assert published.runbook == "https://wiki.example.org/patterns/zombie-memcg.html"


def test_a_name_in_a_message_calls_nobody_and_gives_nothing_away() -> None:
    hostile = "<!channel> *x* @here `rm` \x1b[2J & --password=hunter22hunter22 " + "y" * 5000
    made = alert("a", causes=[{"pattern": "fork-storm", "summary": hostile}])
    for form in FORMATS.values():
        text = form.message([made], "https://receiver.example.org", "secretkey").body.decode()
        assert "hunter22" not in text
        assert "\\u001b" not in text
        assert len(text) < 6000
    text = json.dumps(sent("slack", made))
    assert "<!channel>" not in text
    assert "@here" not in text


PLAN = {
    "summary": "disable the agent",
    "plan": [{"command": None}, {"command": "systemctl disable --now leaky.service"}],
}
EXPLAINED = {"pattern": "zombie-memcg", "summary": "kubelet walks dead cgroups", "fix": PLAN}
PAGE = "https://zs.example.org/{node}/"


def linked(*given: str) -> Any:
    return of_incident(incident(*given, causes=[EXPLAINED]), "gpu 17", "https://wiki.example.org/patterns", PAGE)


def test_an_alert_leads_to_the_incident_and_says_the_first_command() -> None:
    link = "https://zs.example.org/gpu%2017/?page=incident&id=a&node=gpu%2017"
    fix = "disable the agent: systemctl disable --now leaky.service"
    (one,) = sent("webhook", linked("a"))["alerts"]
    assert one["generatorURL"] == link
    assert one["annotations"]["fix"] == fix
    (posted,) = sent("alertmanager", linked("a"))
    assert posted["generatorURL"] == link
    assert "generatorURL" not in sent("alertmanager", alert("a"))[0], "an empty one is no address"


def test_slack_shows_the_fix_and_links_in_blocks_that_it_accepts() -> None:
    message = sent("slack", *[linked(str(number)) for number in range(TOGETHER)])
    assert len(message["blocks"]) <= 50
    section, context = message["blocks"][:2]
    assert "*Fix* disable the agent" in section["text"]["text"]
    assert "|the incident>" in context["elements"][0]["text"]
    assert "|what to do>" in context["elements"][0]["text"]
    assert all(len(json.dumps(block)) < 3200 for block in message["blocks"])
    assert [block["type"] for block in sent("slack", linked("a", "closed"))["blocks"]] == ["section"]


def test_pagerduty_resolves_what_it_triggered() -> None:
    first, second = sent("pagerduty", linked("a")), sent("pagerduty", linked("a", "closed"))
    assert (first["event_action"], second["event_action"]) == ("trigger", "resolve")
    assert first["routing_key"] == second["routing_key"] == "key"
    assert first["dedup_key"] == second["dedup_key"]
    assert first["payload"]["severity"] == "critical"
    assert first["payload"]["source"] == "gpu 17"
    assert [link["text"] for link in first["links"]] == ["the incident", "what to do"]
    assert first["payload"]["custom_details"]["fix"].startswith("disable the agent")


def test_opsgenie_closes_the_alert_that_it_opened() -> None:
    form = FORMATS["opsgenie"]
    first = form.message([linked("a")], "https://api.opsgenie.com/", "key")
    second = form.message([linked("a", "closed")], "https://api.opsgenie.com", "key")
    document = json.loads(first.body)
    assert first.url == "https://api.opsgenie.com/v2/alerts"
    assert second.url == f"https://api.opsgenie.com/v2/alerts/{document['alias']}/close?identifierType=alias"
    assert first.headers == second.headers == {"Authorization": "GenieKey key"}
    assert document["priority"] == "P1"
    assert len(document["message"]) <= 130


def test_an_incident_is_a_log_record_of_otlp() -> None:
    """As the published protocol reads it."""
    from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]  # no stubs
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    read = ParseDict(sent("otlp", linked("a"), linked("b", "closed")), ExportLogsServiceRequest())
    (resource,) = read.resource_logs
    assert {one.key: one.value.string_value for one in resource.resource.attributes}["host.name"] == "gpu 17"
    first, second = resource.scope_logs[0].log_records
    assert (first.event_name, first.severity_text, first.time_unix_nano) == (
        "zombiescope.incident",
        "FATAL",
        100 * 10**9,
    )
    known = {one.key: one.value.string_value for one in second.attributes}
    assert (known["zombiescope.incident"], known["zombiescope.incident.status"]) == ("b", "resolved")
    assert second.time_unix_nano == 106 * 10**9


def test_forms_of_one_alert_send_all_that_wait_one_after_the_other(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("R0UT1NGKEY\n")
    receiver, said = Receiver(), list[str]()
    section = WebhookSection(format="pagerduty", key_file=str(key), every=Duration(3600.0))
    assert list(section.problems()) == []
    with running(tmp_path, receiver, said, section):
        time.sleep(0.05)
        look(tmp_path, incident("a"), incident("b"), incident("c"))
        until(lambda: len(receiver.got) == 3)
    assert {event["routing_key"] for event in receiver.got} == {"R0UT1NGKEY"}
    assert len({event["dedup_key"] for event in receiver.got}) == 3


def test_a_key_that_is_missing_or_is_none_is_one_line() -> None:
    assert [where for where, *_ in WebhookSection(format="opsgenie").problems()] == ["webhook.key_file"]
    assert parts_of(WebhookSection(format="slack")) == 0
    assert parts_of(WebhookSection(format="pagerduty", key_file="/run/key")) == 1


def parts_of(section: WebhookSection) -> int:
    return len(services(section))


# --- what was told ---------------------------------------------------------------------------------------------------


def test_each_incident_is_told_once_and_its_end_once() -> None:
    outbox = Outbox(None)
    outbox.put(alert("a"))
    outbox.sent(outbox.next())
    outbox.put(alert("a"))
    assert outbox.next() == []
    outbox.put(alert("a", "closed"))
    assert [one.status for one in outbox.next()] == ["resolved"]
    outbox.sent(outbox.next())
    outbox.put(alert("a", "closed"))
    assert outbox.next() == []


def test_one_that_gets_worse_is_told_again() -> None:
    outbox = Outbox(None)
    outbox.put(alert("a", "open", "warning"))
    outbox.sent(outbox.next())
    outbox.put(alert("a", "open", "critical"))
    assert [one.severity for one in outbox.next()] == ["critical"]


def test_what_began_and_ended_while_the_receiver_was_away_is_one_message() -> None:
    outbox = Outbox(None)
    outbox.put(alert("a"))
    outbox.put(alert("a", "closed"))
    assert [one.status for one in outbox.next()] == ["resolved"]


def test_a_restart_tells_nothing_twice_and_forgets_no_end(tmp_path: Path) -> None:
    path = tmp_path / "agent" / "webhook.json"
    first = Outbox(path)
    first.put(alert("a"))
    first.sent(first.next())
    again = Outbox(path)
    again.put(alert("a"))
    assert again.next() == []
    assert again.open_ones == ["a"]
    again.put(alert("a", "closed"))
    assert len(again.next()) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"a": 3}', b"\xff" * 9])
def test_a_damaged_memory_is_none(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "w.json").write_bytes(damage)
    assert Outbox(tmp_path / "w.json").open_ones == []


def test_what_waits_is_bounded() -> None:
    outbox = Outbox(None)
    for number in range(MOST + 50):
        outbox.put(alert(str(number)))
    assert (len(outbox), outbox.dropped, len(outbox.next())) == (MOST, 50, TOGETHER)


# --- the service -----------------------------------------------------------------------------------------------------


@dataclass
class Receiver:
    """Answers as it is told, then accepts."""

    outcomes: list[Outcome] = field(default_factory=list)
    got: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, _url: str, body: bytes, _headers: Mapping[str, str], _timeout_s: float) -> Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome("accepted")
        if outcome.kind == "accepted":
            self.got.append(json.loads(body))
        return outcome


@contextmanager
def running(place: Path, receiver: Receiver, said: list[str], section: WebhookSection | None = None) -> Iterator[Tally]:
    tally, stop = Tally(parts.families()), threading.Event()
    section = section or WebhookSection(url=f"http://127.0.0.1:1{SECRET_PATH}", every=Duration(0.0))
    service = WebhookService(section, send=receiver, poll_s=0.01)
    context = Context("webhook", place, "gpu-17", "gpu-17", tally, Health(said.append))
    thread = threading.Thread(target=service.run, args=(context, stop), daemon=True)
    thread.start()
    try:
        yield tally
    finally:
        stop.set()
        thread.join(10)


def look(place: Path, *entries: dict[str, Any]) -> None:
    (place / "new.json").write_text(json.dumps({"at": 1, "incidents": entries}))
    (place / "new.json").rename(place / "incidents.json")


def until(true: Callable[[], bool]) -> None:
    ended = time.monotonic() + 10
    while not true():
        assert time.monotonic() < ended
        time.sleep(0.01)


def test_an_incident_fires_and_resolves(tmp_path: Path) -> None:
    receiver, said = Receiver(), list[str]()
    with running(tmp_path, receiver, said) as tally:
        time.sleep(0.05)
        look(tmp_path, incident("a"), incident("b", severity="info"))
        until(lambda: len(receiver.got) == 1)
        look(tmp_path, incident("a", "closed"))
        until(lambda: len(receiver.got) == 2)
        assert tally.values(SENT) == {("accepted",): 2}
    assert [message["alerts"][0]["status"] for message in receiver.got] == ["firing", "resolved"]
    assert [len(message["alerts"]) for message in receiver.got] == [1, 1]
    assert said == []


def test_a_receiver_that_is_away_gets_it_later_and_that_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zombiescope.agent.webhook.part.FIRST_WAIT_S", 0.01)
    away = Outcome("later", "http://127.0.0.1:1: Connection refused")
    receiver, said = Receiver([away, away, away]), list[str]()
    with running(tmp_path, receiver, said):
        look(tmp_path, incident("a"))
        until(lambda: len(receiver.got) == 1)
    assert said == ["webhook: http://127.0.0.1:1: Connection refused; it is tried again", "webhook: works again"]
    assert SECRET_PATH not in "".join(said)


def test_a_dead_live_diagnosis_is_a_warning_and_its_end_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also its end, when the services were started again meanwhile."""
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("zombiescope.agent.part_watch.PartWatch.quiet_s", 0.05)
    path = health.path_of(tmp_path, os.getpid())
    dead = Part(LIVE_DIAGNOSIS, "failed", 100.0, why="failed: self-test: it died of SIGSEGV", failures=1)
    health.publish(path, RECORDER, tmp_path, [dead])
    receiver, said = Receiver(), list[str]()
    with running(tmp_path, receiver, said):
        until(lambda: len(receiver.got) == 1)
    with running(tmp_path, receiver, said):
        health.publish(path, RECORDER, tmp_path, [Part(LIVE_DIAGNOSIS, "ok", 200.0)])
        until(lambda: len(receiver.got) == 2)
    (first,), (second,) = (message["alerts"] for message in receiver.got)
    assert first["labels"]["alertname"] == "ZombiescopePartDown"
    assert (first["status"], first["labels"]["severity"]) == ("firing", "warning")
    assert first["annotations"]["summary"] == "live diagnosis failed: self-test: it died of SIGSEGV"
    assert second["status"] == "resolved"
    assert (first["fingerprint"], first["labels"]) == (second["fingerprint"], second["labels"])
    assert (Path(__file__).parents[3] / first["annotations"]["runbook_url"]).exists()


def test_what_is_refused_for_good_is_not_sent_again(tmp_path: Path) -> None:
    receiver, said = Receiver([Outcome("refused", "http://x answers 400")]), list[str]()
    with running(tmp_path, receiver, said) as tally:
        look(tmp_path, incident("a"))
        until(lambda: tally.values(SENT) != {})
        assert tally.values(SENT) == {("refused",): 1}
    assert receiver.got == []


# --- over HTTP -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "headers", "kind", "wait_s"),
    [
        (200, {}, "accepted", None),
        (204, {}, "accepted", None),
        (302, {"Location": "http://127.0.0.1:1/"}, "refused", None),
        (400, {}, "refused", None),
        (404, {}, "refused", None),
        (429, {"Retry-After": "7"}, "later", 7.0),
        (429, {"Retry-After": "99999999"}, "later", 3600.0),
        (503, {"Retry-After": "soon"}, "later", None),
    ],
)
def test_what_an_answer_means(code: int, headers: dict[str, str], kind: str, wait_s: float | None) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        found = post(f"http://127.0.0.1:{server.server_port}{SECRET_PATH}", b"{}", {}, 5)
    assert (found.kind, found.wait_s) == (kind, wait_s)
    assert SECRET_PATH not in found.why


@pytest.mark.parametrize("wrong", [" ", "\n", "\x7f", "\x01", "é"])
def test_an_address_that_cannot_be_asked_is_refused_and_its_secret_is_not_repeated(wrong: str) -> None:
    url = f"https://hooks.example.org{SECRET_PATH}{wrong}more"
    assert not is_address(url)
    assert any(where == "webhook.url" for where, *_ in WebhookSection(url=url).problems())
    assert "verysecret" not in post(url, b"{}", {}, 5).why


def test_nobody_there_is_a_reason_to_try_later() -> None:
    found = post(f"http://127.0.0.1:1{SECRET_PATH}", b"{}", {}, 5)
    assert found == Outcome("later", "http://127.0.0.1:1: Connection refused")
