"""What the door answers: /metrics, /healthz (this process lives), /readyz (the recorder records)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client import CollectorRegistry

from zombiescope.agent.health import Health
from zombiescope.agent.metrics import exposition
from zombiescope.agent.metrics.door import Answer, Request
from zombiescope.recording import locate

FRESH_S = 15.0
"""A recorder writes once a second; one that has not for this long is not ready."""


class Pages:
    def __init__(
        self, registered: CollectorRegistry, health: Health, node_dir: Path, newest_s: Callable[[], float | None]
    ) -> None:
        """`newest_s`: when the newest frame that was read was written."""
        self._registry = registered
        self._health = health
        self._node_dir = node_dir
        self._newest_s = newest_s

    def answer(self, request: Request) -> Answer:
        if request.path == "/metrics":
            body, content_type = exposition.page(self._registry, request.headers.get("accept", ""))
            return Answer(200, body, content_type)
        if request.path == "/healthz":
            return Answer(200, b"ok\n")
        if request.path == "/readyz":
            return self._readiness()
        return Answer(404, b"here are /metrics, /healthz and /readyz\n")

    def _readiness(self) -> Answer:
        why = self._not_ready()
        conditions = {
            name: {"state": one.state, "text": one.text, "since": one.since_s}
            for name, one in self._health.conditions().items()
        }
        document = {"ready": why is None, "why": why, "services": conditions}
        return Answer(200 if why is None else 503, json.dumps(document).encode() + b"\n", "application/json")

    def _not_ready(self) -> str | None:
        if not locate.is_locked(self._node_dir):
            return "no recorder writes here"
        newest_s = self._newest_s()
        if newest_s is None:
            return "nothing was recorded yet"
        age_s = time.time() - newest_s
        return f"the recorder has written nothing for {age_s:.0f} s" if age_s > FRESH_S else None
