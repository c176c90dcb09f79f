"""What the audit says: findings with their evidence, and what it could not look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from zombiescope.base.missing import Missing
from zombiescope.base.secrets import mask_text
from zombiescope.base.severity import rank
from zombiescope.node.systemd.show import RunningUnit


@dataclass(frozen=True, slots=True)
class MissingUntilBoot(Missing):
    """Files alone do not show it; a node that runs does."""


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A place in a file of the audited root, or what the running node answered."""

    file: str
    """Absolute inside the root; for an answer of systemd its object, such as "systemd: ecs.service"."""
    line: int | None
    text: str

    def __post_init__(self) -> None:
        """Unit files, crontabs and command lines hold passwords; a report goes to tickets and into CI."""
        object.__setattr__(self, "text", mask_text(self.text))


@dataclass(frozen=True, slots=True)
class Finding:
    id: str
    """The rule and what it was found on, "endless-restart:ecs.service": the same at every run, for a baseline."""
    rule: str
    unit: str | None
    """The unit it is about; None for the node itself (its kernel, its console)."""
    severity: str
    """info, warning or critical."""
    why: str
    """One or two plain sentences with the numbers."""
    evidence: tuple[EvidenceLine, ...]
    fix: tuple[str, ...]
    """Command lines, in order; a line that starts with # is for the reader."""

    def document(self) -> dict[str, Any]:
        """As in the JSON of `audit` and `check`."""
        return {
            "id": self.id,
            "rule": self.rule,
            "unit": self.unit,
            "severity": self.severity,
            "why": self.why,
            "evidence": [{"file": item.file, "line": item.line, "text": item.text} for item in self.evidence],
            "fix": list(self.fix),
        }


@dataclass(frozen=True, slots=True)
class Audit:
    root: str
    live: bool
    """Whether the running systemd was asked; else everything is from files."""
    findings: tuple[Finding, ...]
    """Worst first."""
    missing: tuple[Missing, ...]
    units: int = 0
    """Unit files that were looked at."""
    enabled: int = 0
    """Services among them that are started without anybody asking."""
    platform: str | None = None
    """What the node is for, as far as its files show: kubernetes, ecs, ...; None where nothing does."""
    running: dict[str, RunningUnit] | None = None
    """What systemd has loaded now, by name; None where it was not asked."""


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Of equals, those of a unit before those of the node: a unit can be switched off today."""
    return tuple(
        sorted(findings, key=lambda finding: (-rank(finding.severity), finding.unit is None, finding.rule, finding.id))
    )
