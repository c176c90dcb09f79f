"""How bad something is: one scale for events, findings, symptoms and incidents."""

from __future__ import annotations

from typing import Literal

Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")


def rank(severity: str) -> int:
    """Its place on the scale; a severity of a newer version is never hidden, so it ranks above all that are known."""
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
