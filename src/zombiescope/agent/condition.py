"""Whether an incident that means a node condition is open: one line and an exit code, for other tools on the node."""

from __future__ import annotations

from typing import Any

from zombiescope.node.cluster.incident_news import ANY, CONDITIONS, news
from zombiescope.store import health

NO, YES, UNKNOWN = 0, 1, 2
"""As plug-ins of node-problem-detector end."""
NAMES = (ANY, *CONDITIONS)
_LINE = 80
"""Characters of which node-problem-detector makes a message."""


def verdict(document: dict[str, Any], name: str) -> tuple[int, str]:
    """Whether an open incident means a condition, or `any`: NO, YES or UNKNOWN, and why in one line of 80 characters.

    Where no live diagnosis works, nobody knows: the answer is UNKNOWN, never NO."""
    running = [one for one in document["recorders"] if one["died"] is None]
    found = [one for recorder in running for one in map(news, recorder["incidents"]) if one is not None and one.is_open]
    for one in found:
        if name == ANY or name in one.conditions:
            return YES, _cut(one.message)
    if not running:
        return UNKNOWN, "no recorder runs on this node"
    known = {part["name"]: part for recorder in running for part in recorder["parts"]}
    for part in (health.RECORDER, health.LIVE_DIAGNOSIS):
        if known.get(part, {}).get("state") != "ok":
            state = known.get(part, {"why": "", "state": "not running"})
            return UNKNOWN, _cut(f"{part}: {state['why'] or state['state']}")
    return NO, "no such incident is open"


def _cut(text: str) -> str:
    return text if len(text) <= _LINE else text[: _LINE - 1] + "…"
