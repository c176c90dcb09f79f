"""What is still to be told, and what was: each incident when it begins, when it is worse, and when it is over.

Only the newest state of an incident waits: one that began and ended while the receiver was away is told as it is. What
was told is kept in a file, so that a restart tells nothing twice and no end is forgotten.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from zombiescope.agent.webhook.alert import Alert
from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.severity import rank

MOST = 200
TOGETHER = 20


class Outbox:
    """`path` None: nothing is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._told: dict[str, dict[str, Any]] = _load(path)
        self._waiting: dict[str, Alert] = {}
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, alert: Alert) -> None:
        """If there is something to tell."""
        before = self._told.get(alert.incident)
        if not _is_news(alert, before):
            self._waiting.pop(alert.incident, None)
            return
        self._waiting[alert.incident] = alert
        while len(self._waiting) > MOST:
            self._waiting.pop(next(iter(self._waiting)))
            self.dropped += 1

    def put_again(self, alert: Alert) -> None:
        """Though it was told: a receiver that forgets what is not repeated."""
        self._waiting.setdefault(alert.incident, alert)

    def next(self) -> list[Alert]:
        """What goes into the next message, the oldest first."""
        return list(self._waiting.values())[:TOGETHER]

    def sent(self, alerts: list[Alert]) -> None:
        """They were taken, or refused for good."""
        for alert in alerts:
            self._told.pop(alert.incident, None)
            self._told[alert.incident] = {"status": alert.status, "severity": alert.severity}
            if self._waiting.get(alert.incident) is alert:
                del self._waiting[alert.incident]
        while len(self._told) > 2 * MOST:
            self._told.pop(next(iter(self._told)))
        self._save()

    @property
    def open_ones(self) -> list[str]:
        """Incidents that were told as going on, and whose end was not told."""
        return [identity for identity, told in self._told.items() if told.get("status") == "firing"]

    def _save(self) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(mode=0o750, exist_ok=True)
            safe_files.replace(self._path, json.dumps(self._told).encode())
        except OSError:
            return  # a full disk: told twice after a restart is better than not at all


def _is_news(alert: Alert, before: dict[str, Any] | None) -> bool:
    if before is None:
        return alert.status == "firing" or rank(alert.severity) > 0
    if alert.status == "resolved":
        return before.get("status") == "firing"
    return before.get("status") != "firing" or rank(alert.severity) > rank(str(before.get("severity")))


def _load(path: Path | None) -> dict[str, dict[str, Any]]:
    try:
        known = _json.loads(path.read_bytes()) if path is not None else {}
    except (OSError, ValueError):
        return {}
    return (
        {str(key): value for key, value in known.items() if isinstance(value, dict)} if isinstance(known, dict) else {}
    )
