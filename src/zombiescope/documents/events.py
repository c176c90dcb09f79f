"""What happened in a window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zombiescope.documents.window import Window
from zombiescope.recording.event import Event


def document(name: str, window: Window, found: Sequence[Event]) -> dict[str, Any]:
    return {
        "node": name,
        "from": window.start_us / 1e6,
        "to": window.end_us / 1e6,
        "events": [event(each) for each in found],
    }


def event(each: Event) -> dict[str, Any]:
    same = ("kind", "source", "severity", "text", "fields")
    return {"at": each.at_us / 1e6, **{name: getattr(each, name) for name in same}}
