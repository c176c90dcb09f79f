"""What an examination found: a finding, what shows it, what mends it; and what could not be looked at."""

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
    """severity: info, warning or critical. `fix`: command lines; one that starts with # is for the reader."""

    id: str
    rule: str
    unit: str | None
    severity: str
    why: str
    evidence: tuple[Evidence, ...]
    fix: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Missing:
    source: str
    why: str
    grant: str


@dataclass(frozen=True, slots=True)
class Audit:
    """Worst first."""

    root: str
    live: bool
    findings: tuple[Finding, ...]
    missing: tuple[Missing, ...]
