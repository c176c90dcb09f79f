"""What the action log of this machine says of one plan: which steps were done, by whom, when, and whether it helped.

The plan itself is part of the incident. Here is only what `fix` has written down since; reading it changes nothing.
"""

from __future__ import annotations

import json
from typing import Any

from zombiescope.model.plans import history, log_entry
from zombiescope.model.plans.log_entry import Entry

MOST_ENTRIES = 100
LONGEST_DETAIL = 2_000
"""Bytes of how it was before and after: a step may have deleted thousands of files, and the log names them all."""


def answer(target: str) -> dict[str, Any]:
    """`readable` says why nothing is known, where the log may not be read; else it is null."""
    try:
        mine = [entry for entry in log_entry.entries() if entry.target == target]
        why = None
    except OSError as error:
        mine, why = [], f"{log_entry.directory() / log_entry.FILE}: {error.strerror}"
    checked = next((entry.after for entry in reversed(mine) if entry.event == "verified"), None)
    return {
        "target": target,
        "readable": why,
        "steps": [
            {"id": one.step, "state": one.state, "why": one.told, "at": one.at}
            for one in history.of(mine, target).values()
        ],
        "verified": verified(mine),
        "verification": checked,
        "log": [_line(entry) for entry in mine[-MOST_ENTRIES:]],
    }


def verified(entries: list[Entry]) -> bool | None:
    """What was found after the last change; None where nobody has looked since, or it could not be known."""
    for entry in reversed(entries):
        if entry.event == "verified":
            return {"fixed": True, "verified": True, "still happening": False, "not well yet": False}.get(entry.why)
        if entry.event in ("applying", "applied", "failed", "undoing", "undone", "undo-failed"):
            return None
    return None


def _line(entry: Entry) -> dict[str, Any]:
    said = entry.document()
    return said | {name: _bounded(said[name]) for name in ("before", "after", "action")}


def _bounded(value: Any) -> Any:
    text = json.dumps(value)
    return value if len(text) <= LONGEST_DETAIL else {"left_out": f"{len(text):,} bytes; the log has them"}
