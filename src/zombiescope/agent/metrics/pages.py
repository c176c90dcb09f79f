"""What the door answers: /metrics, /healthz (this process lives), /readyz (the node is recorded and diagnosed)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from zombiescope.agent import node_parts
from zombiescope.agent.metrics import exposition
from zombiescope.agent.metrics.door import Answer, Request
from zombiescope.agent.metrics.parts_account import PartsAccount
from zombiescope.agent.node_parts import BAD, VITAL, VITAL_SOURCES
from zombiescope.agent.service import Context
from zombiescope.base.missing import Missing
from zombiescope.base.secrets import mask_document
from zombiescope.store import locate
from zombiescope.store.health import Part

FRESH_S = 15.0
"""A recorder writes once a second; one that has not for this long is not ready."""


class Recorded(Protocol):
    """What is known of the recording."""

    missing: tuple[Missing, ...]

    def newest_s(self) -> float | None: ...


class Pages:
    def __init__(self, registered: CollectorRegistry, context: Context, recorded: Recorded) -> None:
        self._registry = registered
        self._health, self._node_dir = context.health, context.node_dir
        self._recorded = recorded
        self._parts = PartsAccount(context.tally)

    def answer(self, request: Request) -> Answer:
        if request.path == "/metrics":
            self._parts.publish(node_parts.read(self._node_dir, self._health))
            body, content_type = exposition.page(self._registry, request.headers.get("accept", ""))
            return Answer(200, body, content_type)
        if request.path == "/healthz":
            return Answer(200, b"ok\n")
        if request.path == "/readyz":
            return self._readiness(tells_why=request.tells_why)
        return Answer(404, b"here are /metrics, /healthz and /readyz\n")

    def _readiness(self, *, tells_why: bool) -> Answer:
        """With reasons, or with the names of what is wrong and nothing more."""
        parts = node_parts.read(self._node_dir, self._health)
        causes = node_parts.causes(parts, self._health)
        why = "; ".join(self._not_ready(causes)) or None
        document: dict[str, Any] = {
            "ready": why is None,
            "why": why,
            "degraded": list(self._degraded(causes)),
            "missing": [one.document() for one in self._recorded.missing],
            "parts": {part.name: _shown(part) for part in parts},
            "services": {
                name: {"state": one.state, "text": one.text, "since": one.since_s}
                for name, one in self._health.conditions().items()
            },
        }
        document = mask_document(document) if tells_why else _without_reasons(document)
        return Answer(200 if why is None else 503, json.dumps(document).encode() + b"\n", "application/json")

    def _not_ready(self, parts: Sequence[Part]) -> Iterator[str]:
        yield from (node_parts.brief(part) for part in parts if part.state in BAD and part.name in VITAL)
        if not locate.is_locked(self._node_dir):
            yield "no recorder writes here"
            return
        newest_s = self._recorded.newest_s()
        if newest_s is None:
            yield "nothing was recorded yet"
        elif (age_s := time.time() - newest_s) > FRESH_S:
            yield f"the recorder has written nothing for {age_s:.0f} s"
        yield from (
            f"{one.source} is missing: {one.why}" for one in self._recorded.missing if one.source in VITAL_SOURCES
        )

    def _degraded(self, parts: Sequence[Part]) -> Iterator[str]:
        """What does not work and leaves the node ready."""
        yield from (node_parts.brief(part) for part in parts if part.state in BAD and part.name not in VITAL)
        for name, one in self._health.conditions().items():
            if one.state == "degraded":
                yield node_parts.brief(one.part(name, 0.0))


def _without_reasons(document: dict[str, Any]) -> dict[str, Any]:
    ready = document["ready"]
    return {
        "ready": ready,
        "why": None
        if ready
        else "reasons are for who bears the token (metrics.token_file); `zombiescope status` has them",
        "degraded": [],
        "missing": [{"source": one["source"]} for one in document["missing"]],
        "parts": {name: {"state": one["state"]} for name, one in document["parts"].items()},
        "services": {name: {"state": one["state"]} for name, one in document["services"].items()},
    }


def _shown(part: Part) -> dict[str, object]:
    return {name: value for name, value in asdict(part).items() if name != "name" and value not in (None, "")}
