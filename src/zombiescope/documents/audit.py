"""What an audit found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zombiescope._severity import rank
from zombiescope.audit.baseline import Split
from zombiescope.audit.finding import Audit, Finding


def document(audit: Audit, split: Split, at_least: str) -> dict[str, Any]:
    return {
        "root": audit.root,
        "live": audit.live,
        "platform": audit.platform,
        "units": audit.units,
        "services_started": audit.enabled,
        "findings": [finding.document() for finding in shown(split.new, at_least)],
        "allowed": [{**finding.document(), "reason": line.reason} for finding, line in split.allowed],
        "stale": [{"id": line.id, "line": line.line, "reason": line.reason} for line in split.stale],
        "missing": [item.document() for item in audit.missing],
    }


def shown(findings: Sequence[Finding], at_least: str) -> list[Finding]:
    return [finding for finding in findings if rank(finding.severity) >= rank(at_least)]
