"""An incident as an alert. Everything that somebody else chose is masked, made printable and cut."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from zombiescope._secrets import mask_text
from zombiescope._text import printable
from zombiescope.agent.incidents import cause_of, entries, headline_of, number

RUNBOOKS = "docs/patterns"
"""In this project; `make docs` makes pages of them for a server of your own."""
MOST_TEXT, MOST_LABEL = 800, 128


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
        said = {"summary": self.summary, "description": self.description, "runbook_url": self.runbook}
        return {name: text for name, text in said.items() if text}

    @property
    def fingerprint(self) -> str:
        """The same for firing and resolved: of what identifies it, as Alertmanager does."""
        return hashlib.sha256(f"{self.node}\0{self.incident}".encode()).hexdigest()[:16]


def of_incident(incident: dict[str, Any], node: str, runbooks: str = RUNBOOKS) -> Alert:
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
    )


def _runbook(runbooks: str, cause: str) -> str:
    return f"{runbooks}/{cause}.{'html' if runbooks.startswith('http') else 'md'}"


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
