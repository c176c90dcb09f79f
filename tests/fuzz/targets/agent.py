"""What the agent reads: its configuration, and requests to its door."""

from __future__ import annotations

import json

import h11

from tests.fuzz.target import Target
from zombiescope.agent import parts
from zombiescope.agent.config.load import read
from zombiescope.agent.incidents import cause_of, headline_of
from zombiescope.agent.metrics.door import Access, Answer, Door
from zombiescope.agent.webhook.alert import of_incident
from zombiescope.agent.webhook.messages import FORMATS
from zombiescope.store import incident_file

CONFIGURATION = b"""recorder: {hz: 49, labels: {zone: a}}
metrics:
  listen: 127.0.0.1:9321
  names: [a, b]
webhook: {url: "http://h/x", every: 10s}
"""
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: localhost:9321\r\nAccept: text/plain\r\n\r\n"
INCIDENT = {
    "id": "a", "from": 1.0, "to": 2.0, "state": "open", "severity": "critical", "symptoms": [{"text": "s"}],
    "causes": [{"pattern": "fork-storm", "summary": "x"}], "cost": {"text": "t", "gpus": []},
}  # fmt: skip
INCIDENTS = json.dumps({"at": 1, "incidents": [INCIDENT]}).encode()


def read_configuration(data: bytes) -> None:
    found = read(data.decode("utf-8", "replace"), "agent.yaml", parts.sections(), {})
    for mistake in found.mistakes:
        assert str(mistake).isprintable()
    assert set(found.sections) == set(parts.sections())


def read_request(data: bytes) -> None:
    door = Door(
        lambda request: Answer(200, request.path.encode("utf-8", "replace")), Access(names=frozenset({"localhost"}))
    )
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=16384)
    try:
        connection.receive_data(data)
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return
    if isinstance(event, h11.Request):
        assert door._page(event).status in (200, 400, 403, 405, 421)


def tell_incidents(data: bytes) -> None:
    try:
        entries = incident_file.parse(data)
    except ValueError:
        return
    for entry in entries:
        assert isinstance(cause_of(entry) + headline_of(entry), str)
        alert = of_incident(entry, "node")
        for form in FORMATS.values():
            assert len(form.message([alert], "https://receiver.example.org", "key").body) < 40_000


TARGETS = (
    Target("agent-configuration", read_configuration, lambda: [CONFIGURATION], most_bytes=512, cost=10),
    Target("agent-request", read_request, lambda: [REQUEST]),
    Target("agent-incidents", tell_incidents, lambda: [INCIDENTS]),
)
