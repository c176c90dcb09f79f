"""Alerts to a webhook: each incident once, its end once, whatever the receiver does meanwhile."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from zombiescope.agent import parts
from zombiescope.agent.config.setting import Duration
from zombiescope.agent.health import Health
from zombiescope.agent.post import Outcome, is_address, post
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.agent.webhook.alert import of_incident
from zombiescope.agent.webhook.messages import FORMATS, NEVER
from zombiescope.agent.webhook.outbox import MOST, TOGETHER, Outbox
from zombiescope.agent.webhook.part import SENT, WebhookSection, WebhookService
from zombiescope.store import health
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part

SECRET_PATH = "/services/T000/B000/verysecret"


def incident(identity: str, state: str = "open", severity: str = "critical", **more: Any) -> dict[str, Any]:
    causes = [{"pattern": "zombie-memcg", "summary": "core 39 was lost for 6 s: kubelet walks 68,440 cgroups"}]
    known = {"id": identity, "from": 100.0, "to": 106.0, "state": state, "severity": severity, "causes": causes}
    return {**known, "symptoms": [{"text": "core 39 was held"}], "cost": None, **more}


def alert(*given: str, **more: Any) -> Any:
    return of_incident(incident(*given, **more), "gpu-17")


# --- messages --------------------------------------------------------------------------------------------------------


def test_an_alert_in_the_form_of_alertmanagers_webhooks() -> None:
    message = json.loads(FORMATS["webhook"]([alert("a"), alert("b", "closed")]))
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
        text = form([made]).decode()
        assert "hunter22" not in text
        assert "\\u001b" not in text
        assert len(text) < 6000
    text = json.loads(FORMATS["slack"]([made]))["text"]
    assert "<!channel>" not in text
    assert "@here" not in text


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

    def __call__(self, _url: str, body: bytes, _type: str, _timeout_s: float) -> Outcome:
        outcome = self.outcomes.pop(0) if self.outcomes else Outcome("accepted")
        if outcome.kind == "accepted":
            self.got.append(json.loads(body))
        return outcome


@contextmanager
def running(place: Path, receiver: Receiver, said: list[str]) -> Iterator[Tally]:
    tally, stop = Tally(parts.families()), threading.Event()
    section = WebhookSection(url=f"http://127.0.0.1:1{SECRET_PATH}", every=Duration(0.0))
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
        found = post(f"http://127.0.0.1:{server.server_port}{SECRET_PATH}", b"{}", "application/json", 5)
    assert (found.kind, found.wait_s) == (kind, wait_s)
    assert SECRET_PATH not in found.why


@pytest.mark.parametrize("wrong", [" ", "\n", "\x7f", "\x01", "é"])
def test_an_address_that_cannot_be_asked_is_refused_and_its_secret_is_not_repeated(wrong: str) -> None:
    url = f"https://hooks.example.org{SECRET_PATH}{wrong}more"
    assert not is_address(url)
    assert any(where == "webhook.url" for where, *_ in WebhookSection(url=url).problems())
    assert "verysecret" not in post(url, b"{}", "application/json", 5).why


def test_nobody_there_is_a_reason_to_try_later() -> None:
    found = post(f"http://127.0.0.1:1{SECRET_PATH}", b"{}", "application/json", 5)
    assert found == Outcome("later", "http://127.0.0.1:1: Connection refused")
