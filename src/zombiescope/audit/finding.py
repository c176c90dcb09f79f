"""What an examination found: a finding, what shows it, and what mends it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of a file; `line` is None where the file has no lines that stay."""

    file: str
    line: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """severity: info, warning or critical."""

    id: str
    rule: str
    unit: str | None
    severity: str
    why: str
    evidence: tuple[Evidence, ...]
    fix: str | None


@dataclass(frozen=True, slots=True)
class Audit:
    """Worst first; what could not be examined is in `missing`: {source, why, grant}."""

    findings: tuple[Finding, ...]
    missing: list[dict[str, str]]
