"""The section `incident_log` and its service: each change of an incident as a line of JSON on standard output, for
log shippers."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from zombiescope.agent.config.setting import setting
from zombiescope.agent.incidents import Change, IncidentWatch
from zombiescope.agent.service import Context, Service
from zombiescope.agent.webhook.alert import of_incident
from zombiescope.base.severity import rank

POLL_S = 2.0
SCHEMA = "zombiescope.incident_change/1"


@dataclass(frozen=True, slots=True)
class IncidentLogSection:
    """Incidents on standard output, as lines of JSON."""

    enabled: bool = setting(False, "Write a line when an incident begins, gets worse and ends.")
    least: str = setting("info", "Lowest severity to write.", choices=("info", "warning", "critical"))


def services(section: IncidentLogSection) -> Sequence[Service]:
    return (IncidentLogService(section),) if section.enabled else ()


@dataclass(slots=True)
class IncidentLogService:
    section: IncidentLogSection
    name: str = "incident_log"

    def run(self, context: Context, stop: threading.Event) -> None:
        watch = IncidentWatch(context.node_dir)
        context.say("ok")
        context.beat(POLL_S)
        while not stop.wait(POLL_S):
            context.beat(POLL_S)
            for change in watch.poll():
                if self._is_news(change):
                    _write(line(change, context.node))
                    context.worked()

    def _is_news(self, change: Change) -> bool:
        if rank(_severity(change.incident)) < rank(self.section.least):
            return False
        worse = change.before is not None and rank(_severity(change.incident)) > rank(_severity(change.before))
        return change.kind != "changed" or worse


def line(change: Change, node: str) -> dict[str, Any]:
    """Texts are masked and cut as in an alert."""
    alert = of_incident(change.incident, node)
    times = {"from": alert.starts_s, "to": alert.ends_s}
    return {"schema": SCHEMA, "at": time.time(), "change": change.kind, **alert.labels, **alert.annotations, **times}


def _write(document: dict[str, Any]) -> None:
    with suppress(OSError):  # a reader of the log that went away
        sys.stdout.write(json.dumps(document) + "\n")
        sys.stdout.flush()


def _severity(incident: dict[str, Any]) -> str:
    return str(incident.get("severity") or "info")
