"""A source that cannot be read, for whoever looks at a node: the recorder, the audit, a check.

Blind is not healthy: what is missing is listed with its reason and the line that grants it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not be read, why, and the setting or command that changes that."""

    source: str
    why: str
    grant: str

    def document(self) -> dict[str, str]:
        return {"source": self.source, "why": self.why, "grant": self.grant}
