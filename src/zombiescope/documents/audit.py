"""What an audit found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.audit import baseline, examine
from zombiescope.audit.baseline import BaselineDiff
from zombiescope.audit.finding import Audit, Finding
from zombiescope.base.severity import rank
from zombiescope.questions.views import AuditQuestion


@dataclass(frozen=True, slots=True)
class AuditAnswer:
    question: AuditQuestion
    audit: Audit
    review: BaselineDiff

    @property
    def shown(self) -> list[Finding]:
        return [each for each in self.review.new if rank(each.severity) >= rank(self.question.at_least)]

    def at_least(self, severity: str) -> bool:
        """Whether any finding that is not accepted is at least this severe."""
        return any(rank(each.severity) >= rank(severity) for each in self.review.new)

    def document(self) -> dict[str, Any]:
        audit, review = self.audit, self.review
        return {
            "root": audit.root,
            "live": audit.live,
            "platform": audit.platform,
            "units": audit.units,
            "services_started": audit.enabled,
            "findings": [finding.document() for finding in self.shown],
            "allowed": [{**finding.document(), "reason": line.reason} for finding, line in review.allowed],
            "stale": [{"id": line.id, "line": line.line, "reason": line.reason} for line in review.stale],
            "missing": [item.document() for item in audit.missing],
        }


def answer(question: AuditQuestion, catalogue: Sequence[Path] = ()) -> AuditAnswer:
    """Raises what audit.examine and audit.baseline.parse do."""
    audit = examine(question.root, question.systemd, catalogue=catalogue)
    allow = question.allow
    lines = baseline.parse(allow.read_bytes(), str(allow)) if allow is not None else ()
    return AuditAnswer(question, audit, baseline.split(audit.findings, lines))
