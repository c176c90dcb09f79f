"""One thing that Ray reports, from whatever source: an event file, the export API, the dashboard, or a process.

`kind` is that of the event on the node's axis. `key` names the thing, so that what several sources tell is told once.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal[
    "ray_node_dead", "ray_node_stopped", "ray_job_started", "ray_job_finished", "ray_job_failed", "ray_job_stopped",
    "ray_worker_died", "ray_actor_died", "ray_task_lost", "ray_jobs",
]  # fmt: skip
SEVERITY: dict[str, str] = {
    "ray_node_dead": "critical", "ray_job_failed": "warning", "ray_worker_died": "warning", "ray_actor_died": "warning",
    "ray_task_lost": "warning",
}  # fmt: skip
"""Whatever is not named is for information."""

LOSSES = frozenset({"NODE_DIED", "WORKER_DIED", "ACTOR_DIED", "ACTOR_UNAVAILABLE", "OBJECT_LOST", "OWNER_DIED",
                    "LOCAL_RAYLET_DIED", "NODE_OUT_OF_MEMORY", "OUT_OF_MEMORY", "OUT_OF_DISK_ERROR"})  # fmt: skip
"""Errors of a task that are not its own doing: what it ran on, or what it waited for, went away."""

TEXT_CHARACTERS = 300
_ID = re.compile(r"[0-9a-f]{8,64}")
_SUBMISSION = re.compile(r"[\w.:-]{1,128}")
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Report:
    at_us: int
    kind: Kind
    key: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)
    """Flat, of texts and numbers: `job`, `submission_id`, `node_ip`, `node_id`, `pid`, `why`, ..."""

    @property
    def severity(self) -> str:
        return SEVERITY.get(self.kind, "info")


def identity(value: object) -> str | None:
    """An id in hexadecimal; the export API writes them in base64."""
    if not isinstance(value, str) or not value:
        return None
    if _ID.fullmatch(value):
        return value
    try:
        found = base64.b64decode(value, validate=True).hex()
    except (binascii.Error, ValueError):
        return None
    return found if _ID.fullmatch(found) else None


def submission(value: object) -> str | None:
    return value if isinstance(value, str) and _SUBMISSION.fullmatch(value) else None


def short(value: object, most: int = TEXT_CHARACTERS) -> str:
    """On one line, cut."""
    text = _SPACES.sub(" ", value[: 8 * most] if isinstance(value, str) else "").strip()
    return text if len(text) <= most else f"{text[: most - 3]}..."


def known(**fields: object) -> dict[str, Any]:
    """Without what is not known."""
    return {key: value for key, value in fields.items() if value not in (None, "")}
