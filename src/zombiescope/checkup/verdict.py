"""The one sentence: what was worst, or that nothing was seen, on how much of what there is to see."""

from __future__ import annotations

from dataclasses import dataclass

from zombiescope.audit.finding import Finding
from zombiescope.checkup.checkup import Checkup, rank


@dataclass(frozen=True, slots=True)
class Verdict:
    """severity: critical, warning, info, or ok. `finding` is the one it was taken from."""

    severity: str
    text: str
    finding: Finding | None = None


def verdict(checkup: Checkup) -> Verdict:
    worst = checkup.findings[0] if checkup.findings else None
    if worst is not None and rank(worst) > 0:
        return Verdict(worst.severity, worst.why, worst)
    seen, there = sum(checkup.sources.values()), len(checkup.sources)
    on = f"{seen} of {there} sources" if seen < there else f"all {there} sources"
    words = f"nothing wrong seen in these {checkup.window.seconds:.0f} seconds, on what could be seen: {on}"
    serious = [finding for finding in checkup.audit.findings if rank(finding) > 0]
    if serious:
        words += f"; the audit has {len(serious)} things that may break later"
    return Verdict("ok", words)
