"""incidents.json of a node: what the doctor found while the recorder ran; open ones first.

The file holds the documents of the diagnosis as `diagnose --json` prints them. It imports nothing heavy: the status of
a node is asked often.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.store import shape
from zombiescope.store.layout import write_synced
from zombiescope.store.store import Directory

NAME = "incidents.json"
MOST = 200


def read(node_dir: Path) -> list[dict[str, Any]]:
    """Every incident that is known, the newest last; none where there is no file or it cannot be read."""
    try:
        return parse(Directory(node_dir).read(NAME))
    except (OSError, ValueError):
        return []


def parse(data: bytes) -> list[dict[str, Any]]:
    """As many as are ever written, whoever wrote it. Raises ValueError."""
    document = _json.loads(data)
    listed = document.get("incidents") if isinstance(document, dict) else None
    found = map(shape.incident, listed[-MOST:]) if isinstance(listed, list) else ()
    return [entry for entry in found if entry is not None]


def close(node_dir: Path) -> None:
    """Whatever is open is closed: nobody looks at it any more. Raises OSError."""
    known = read(node_dir)
    if any(entry.get("state") == "open" for entry in known):
        latest = max(float(entry.get("to") or 0) for entry in known)
        write(node_dir, [{**entry, "state": "closed"} for entry in known], round(latest * 1e6))


def open_ones(node_dir: Path) -> list[dict[str, Any]]:
    return [entry for entry in read(node_dir) if entry.get("state") == "open"]


def write(node_dir: Path, incidents: list[dict[str, Any]], at_us: int) -> None:
    """Raises OSError."""
    document = {"at": at_us / 1e6, "incidents": incidents[-MOST:]}
    write_synced(node_dir / NAME, json.dumps(document, separators=(",", ":")).encode())
