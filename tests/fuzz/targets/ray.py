"""What Ray writes and says: event files, a raylet's command line, answers of the dashboard, receipts at a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fuzz.target import Target
from zombiescope.base import json as _json
from zombiescope.node.ray import event_files, raylet
from zombiescope.node.ray.cluster import Cluster
from zombiescope.node.ray.dashboard import Dashboard
from zombiescope.node.ray.report import TEXT_CHARACTERS
from zombiescope.store.shipping import shipper, spool

FIXTURES = Path(__file__).parents[2] / "fixtures/ray"
MOST_TEXT = 2 * TEXT_CHARACTERS


def event_line(data: bytes) -> None:
    for line in data.split(b"\n"):
        report = event_files.parse(line)
        if report is not None:
            assert report.at_us > 0
            assert len(report.text) < MOST_TEXT
            assert all(isinstance(value, str | int) or math.isfinite(value) for value in report.fields.values())


def command_line(data: bytes) -> None:
    found = raylet.parse(1, data)
    assert found is None or raylet.is_address(found.node_ip)


class _Answers(Dashboard):
    """Whatever is asked, the same is answered."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://127.0.0.1:1")
        self._answer = answer

    def _get(self, path: str) -> Any:
        return self._answer if "jobs" in path else {"data": {"result": {"result": self._answer}}}


def dashboard(data: bytes) -> None:
    try:
        answer = _json.loads(data)
    except ValueError:
        return
    cluster = Cluster(_Answers(answer))
    for now_us in (1_794_855_200_000_000, 1_794_855_300_000_000):
        for report in cluster.ask(now_us):
            assert 0 < report.at_us <= now_us
        cluster._jobs = {}


def receipt(data: bytes) -> None:
    for name, _, _ in shipper.read_receipt(data):
        assert not name.startswith("/")
        assert ".." not in name


def books(data: bytes) -> None:
    spool.parse_ledger(data)


def _files(pattern: str) -> Callable[[], list[bytes]]:
    return lambda: [path.read_bytes()[:60_000] for path in sorted(FIXTURES.glob(pattern))]


TARGETS = (
    Target("ray-events", event_line, _files("*events/*.log")),
    Target("raylet", command_line, lambda: [(FIXTURES / "raylet.cmdline").read_bytes().replace(b"\n", b"\0")]),
    Target("ray-dashboard", dashboard, _files("dashboard/jobs.json")),
    Target(
        "shipping-receipt",
        receipt,
        lambda: [b'{"files": [{"name": "log/1760000000000000.seg", "bytes": 3, "sha256": "ab"}]}'],
    ),
    Target(
        "shipping-ledger",
        books,
        lambda: [b'{"sent": {"log/1760000000000000.seg": 3}, "documents": {}, "superseded": ["x"], "key": "00"}'],
        refusals=(ValueError,),
    ),
)
