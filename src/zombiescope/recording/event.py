"""Something that happened: a row of the table `events`, on its way in or out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from zombiescope._secrets import mask_fields, mask_text


@dataclass(frozen=True, slots=True)
class Event:
    at_us: int
    kind: str
    source: str
    severity: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)

    def masked(self) -> Event:
        """Without secrets, as it may be stored: lines of logs and marks hold what other people's programs print."""
        return replace(self, text=mask_text(self.text), fields=mask_fields(self.fields))

    def row(self) -> tuple[int, str, str, str, str, str]:
        fields = json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False) if self.fields else "{}"
        return (self.at_us, self.kind, self.source, self.severity, self.text, fields)
