"""state.json: what the next recorder of the same boot must know. The ledger's zombies and the last kernel log record
read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files

NAME = "state.json"


def load(node_dir: Path, boot_id: str | None) -> dict[str, Any]:
    """The state left by the last recorder; empty after a reboot or when there is none that can be read."""
    try:
        state = _json.loads((node_dir / NAME).read_bytes())
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) and boot_id and state.get("boot") == boot_id else {}


def save(node_dir: Path, state: dict[str, Any]) -> None:
    """Replaces the state in one step. Raises OSError."""
    safe_files.replace(node_dir / NAME, json.dumps(state, separators=(",", ":")).encode())
