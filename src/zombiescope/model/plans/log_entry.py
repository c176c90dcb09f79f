"""Lines of the action log, read: what was done to this node by `fix`, by whom, when, and how it was before and after.

Whoever may read the file may show it: the page does. Writing it is fix/log.py's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files

DIRECTORY = "/var/lib/zombiescope-fix"
FILE = "actions.jsonl"
LARGEST_FILE = 64 << 20
_LAST_S = 32_503_680_000.0  # the year 3000: a date can be made of it


@dataclass(frozen=True, slots=True)
class Entry:
    at: float
    run: str
    target: str
    event: str
    step: str = ""
    action: dict[str, Any] | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    why: str = ""
    who: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "at": self.at, "run": self.run, "who": self.who, "target": self.target, "step": self.step,
            "event": self.event, "action": self.action, "before": self.before, "after": self.after, "why": self.why,
        }  # fmt: skip


def directory() -> Path:
    """$ZOMBIESCOPE_FIX_DIR, or the machine's."""
    return Path(os.environ.get("ZOMBIESCOPE_FIX_DIR") or DIRECTORY)


def entries(place: Path | None = None) -> list[Entry]:
    """What the log says, the oldest first; nothing where there is none. Raises OSError."""
    path = (place or directory()) / FILE
    try:
        with os.fdopen(safe_files.open_to_read(path), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - LARGEST_FILE))
            lines = file.read(LARGEST_FILE).split(b"\n")
    except FileNotFoundError:
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


def _entry(line: bytes) -> Entry | None:
    """None for what is no line of ours: one that was cut off, or damage. What root does again is made of it, so it is
    taken as it was written or not at all."""
    try:
        said = _json.loads(line)
        at = float(said["at"])
        texts = [said[name] for name in ("run", "target", "event", "step", "why")]
        details = [said[name] for name in ("action", "before", "after")]
        who = said["who"]
    except (ValueError, KeyError, TypeError):
        return None
    if not 0 <= at < _LAST_S or not all(isinstance(one, str) for one in texts) or not isinstance(who, dict):
        return None
    if not all(one is None or isinstance(one, dict) for one in details) or not _is_action(details[0]):
        return None
    run, target, event, step, why = texts
    action, before, after = details
    return Entry(at, run, target, event, step, action, before, after, why, who)


def _is_action(said: dict[str, Any] | None) -> bool:
    return said is None or (isinstance(said.get("kind"), str) and isinstance(said.get("arguments"), dict))
