"""Sources that cannot be read now: `missing` of node.json, which the recorder replaces when one fails or recovers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.base.missing import Missing
from zombiescope.base.secrets import mask_text
from zombiescope.base.text import printable
from zombiescope.store.layout import NODE_FILE

MOST_BYTES = 4 << 20
_TEXT = 500


class MissingSources:
    """Read again only when it was replaced."""

    def __init__(self, node_dir: Path) -> None:
        self._path = node_dir / NODE_FILE
        self._written: tuple[int, int, int] | None = None
        self._missing: tuple[Missing, ...] = ()
        self.kernel: str | None = None

    def read(self) -> tuple[Missing, ...]:
        """As before where the file cannot be read."""
        try:
            with os.fdopen(safe_files.open_to_read(self._path), "rb") as file:
                there = os.fstat(file.fileno())
                written = (there.st_ino, there.st_mtime_ns, there.st_size)
                if written != self._written:
                    self._take(_json.loads(file.read(MOST_BYTES)))
                    self._written = written
        except (OSError, ValueError):
            pass
        return self._missing

    def _take(self, node: Any) -> None:
        if not isinstance(node, dict):
            return
        self.kernel = node.get("kernel")
        listed = node.get("missing")
        found = [_missing(one) for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        self._missing = tuple(found)


def _missing(entry: dict[str, Any]) -> Missing:
    source, why, grant = (printable(mask_text(str(entry.get(name) or "")))[:_TEXT] for name in Missing.__slots__)
    return Missing(source, why, grant)
