"""An incident, or a part that is down, as an alert. Text of others is masked, made printable and cut."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from zombiescope.agent.incidents import cause_of, entries, headline_of, number
from zombiescope.agent.node_parts import brief
from zombiescope.agent.part_watch import PartChange
from zombiescope.base.secrets import mask_text
from zombiescope.base.text import printable

RUNBOOKS = "docs/patterns"
"""In this project; `make docs` makes pages of them for a server of your own."""
PARTS_RUNBOOK = "docs/reliability.md"
MOST_TEXT, MOST_LABEL = 800, 128
PART = "part: "
PART_SEVERITY = "warning"


@dataclass(frozen=True, slots=True)
class Alert:
    status: Literal["firing", "resolved"]
    name: str
    incident: str
    node: str
    severity: str
    cause: str
    summary: str
    description: str
    starts_s: float
    ends_s: float | None
    runbook: str
    fix: str = ""
    link: str = ""
    """To the incident on the page."""

    @property
    def labels(self) -> dict[str, str]:
        return {
            "alertname": self.name,
            "node": self.node,
            "severity": self.severity,
            "cause": self.cause,
            "incident": self.incident,
        }

    @property
    def annotations(self) -> dict[str, str]:
        said = {
            "summary": self.summary, "description": self.description, "fix": self.fix, "runbook_url": self.runbook,
        }  # fmt: skip
        return {name: text for name, text in said.items() if text}

    @property
    def fingerprint(self) -> str:
        """The same for firing and resolved: of what identifies it, as Alertmanager does."""
        return hashlib.sha256(f"{self.node}\0{self.incident}".encode()).hexdigest()[:16]


def of_incident(incident: dict[str, Any], node: str, runbooks: str = RUNBOOKS, page: str = "") -> Alert:
    """`page`: the address of the web page, {node} in it replaced."""
    cause, is_open = _safe(cause_of(incident), MOST_LABEL), incident.get("state") == "open"
    known = cause.replace("-", "").isalnum() and cause != "unexplained"
    return Alert(
        status="firing" if is_open else "resolved",
        name="Zombiescope" + "".join(word.capitalize() for word in cause.split("-")),
        incident=_safe(str(incident.get("id")), MOST_LABEL),
        node=_safe(node, MOST_LABEL),
        severity=_safe(str(incident.get("severity") or "info"), MOST_LABEL),
        cause=cause,
        summary=_safe(headline_of(incident), MOST_TEXT),
        description=_symptoms(incident),
        starts_s=number(incident.get("from")),
        ends_s=None if is_open else number(incident.get("to")),
        runbook=_runbook(runbooks.rstrip("/"), cause) if known else "",
        fix=_fix(incident),
        link=_link(page, node, incident),
    )


def of_part(change: PartChange, node: str) -> Alert:
    """A part of zombiescope that failed or hangs. Whatever it measures or reports is missing until it works again."""
    part, failed = change.part, change.kind == "failed"
    return Alert(
        status="firing" if failed else "resolved",
        name="ZombiescopePartDown",
        incident=incident_of(part.name),
        node=_safe(node, MOST_LABEL),
        severity=PART_SEVERITY,
        cause="part-down",
        summary=_safe(brief(part) if failed else f"{part.name} works again", MOST_TEXT),
        description="",
        starts_s=part.since,
        ends_s=None if failed else time.time(),
        runbook=PARTS_RUNBOOK,
    )


def incident_of(part: str) -> str:
    """The same for every failure of a part: the next one is the same alert, firing again."""
    return _safe(f"{PART}{part}", MOST_LABEL)


def part_of(incident: str) -> str | None:
    """The part that an alert was about; None where it was an incident."""
    return incident.removeprefix(PART) if incident.startswith(PART) else None


def _runbook(runbooks: str, cause: str) -> str:
    return f"{runbooks}/{cause}.{'html' if runbooks.startswith('http') else 'md'}"


def _fix(incident: dict[str, Any]) -> str:
    """What to do, and the first command of the plan."""
    for cause in entries(incident, "causes")[:1]:
        plan = cause.get("fix")
        if isinstance(plan, dict) and plan.get("summary"):
            command = next((str(one["command"]) for one in entries(plan, "plan") if one.get("command")), "")
            return _safe(f"{plan['summary']}: {command}" if command else str(plan["summary"]), MOST_TEXT)
    return ""


def _link(page: str, node: str, incident: dict[str, Any]) -> str:
    """As the page's own addresses: it refuses another node's recording."""
    if not page:
        return ""
    place = page.replace("{node}", quote(node, safe="")).rstrip("/")
    return f"{place}/?page=incident&id={quote(str(incident.get('id')), safe='')}&node={quote(node, safe='')}"


def _symptoms(incident: dict[str, Any]) -> str:
    texts = [str(one.get("text")) for one in entries(incident, "symptoms")]
    cost = incident.get("cost")
    texts += [str(cost["text"])] if isinstance(cost, dict) and cost.get("text") else []
    return _safe("; ".join(texts[:4]), MOST_TEXT)


def _safe(text: str, most: int) -> str:
    text = printable(mask_text(text))
    return text if len(text) <= most else text[: most - 1] + "…"


def timestamp(seconds: float) -> str:
    """RFC 3339."""
    return datetime.fromtimestamp(min(max(seconds, 0.0), 253_402_300_799.0), UTC).isoformat().replace("+00:00", "Z")
