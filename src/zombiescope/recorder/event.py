"""Something that happened, on its way into the recording."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    time_us: int
    kind: str
    source: str
    severity: str
    text: str
    fields: dict[str, Any] = field(default_factory=dict)

    def row(self) -> tuple[int, str, str, str, str, str]:
        fields = json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False) if self.fields else "{}"
        return (self.time_us, self.kind, self.source, self.severity, self.text, fields)
