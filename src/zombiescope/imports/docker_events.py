"""What `docker events --format '{{json .}}'` printed: when containers were created, started and ended.

    {"Type": "container", "Action": "start", "time": 1743476001, "timeNano": 1743476001123456789,
     "Actor": {"ID": "5f1c...", "Attributes": {"image": "amazon/amazon-ecs-agent:latest", "name": "ecs-agent"}}}

dockerd keeps its last 256 events, so `docker events --since 1h --until 0s` on a node with a loop tells some minutes.
They do not say who asked for a container. Other types of events and other actions are left out and counted.
"""

from __future__ import annotations

from typing import Any

from zombiescope.base import json as _json
from zombiescope.imports.rows import ImportReport
from zombiescope.store import schema

HEAD = ('"Type":"container"', '"Type": "container"')
_MARK = ('"Actor"', '"Action"')
_STARTS, _ENDS = ("start", "restart"), ("die",)
_ID_DIGITS = (12, 64)
MOST = 100_000
_LATEST_US = 1 << 52


def is_line(line: str) -> bool:
    return line.startswith("{") and all(mark in line for mark in _MARK) and '"Type"' in line


def read(text: str, outcome: ImportReport) -> list[tuple[Any, ...]]:
    """Rows of the table of containers."""
    known: dict[str, dict[str, Any]] = {}
    rows = []
    for line in text.splitlines()[:MOST]:
        event = _event(line) if line.strip() else None
        if event is None:
            outcome.skipped["lines that are not a container event"] += bool(line.strip())
            continue
        identity, action, time_us, attributes = event
        one = known.setdefault(identity, {"id": identity, "runtime": "docker", "runs": 0})
        one["time"] = time_us
        one["name"] = _text(attributes.get("name")) or one.get("name")
        one["image"] = _text(attributes.get("image")) or one.get("image")
        if action in _STARTS:
            one |= {"started": time_us, "runs": one["runs"] + 1, "exited": None, "code": None}
        elif action in _ENDS:
            code = _text(attributes.get("exitCode")) or ""
            one |= {"exited": time_us, "code": int(code) if code.isdecimal() and len(code) < 6 else None}
        else:
            continue
        rows.append(tuple(one.get(name) for name in schema.CONTAINERS.names))
    return rows


def _event(line: str) -> tuple[str, str, int, dict[str, Any]] | None:
    try:
        found = _json.loads(line)
    except ValueError:
        return None
    actor = found.get("Actor") if isinstance(found, dict) else None
    if not isinstance(actor, dict) or found.get("Type") != "container":
        return None
    identity, action, nanoseconds = actor.get("ID"), found.get("Action"), found.get("timeNano")
    attributes = actor.get("Attributes")
    if not isinstance(identity, str) or not isinstance(action, str) or isinstance(nanoseconds, bool):
        return None
    is_id = _ID_DIGITS[0] <= len(identity) <= _ID_DIGITS[1] and set(identity) <= set("0123456789abcdef")
    if not is_id or not isinstance(nanoseconds, int) or not 0 < nanoseconds // 1000 < _LATEST_US:
        return None
    return identity, action, nanoseconds // 1000, attributes if isinstance(attributes, dict) else {}


def _text(value: Any) -> str | None:
    return value[:256] if isinstance(value, str) and value.isprintable() and value else None
