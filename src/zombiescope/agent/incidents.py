"""incidents.json, followed: what opened, what was learned, what is over. Read only when it was written anew."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from zombiescope.base import safe_files
from zombiescope.store import incident_file

MOST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Change:
    """`before` is None for one that is new."""

    kind: Literal["opened", "changed", "closed"]
    incident: dict[str, Any]
    before: dict[str, Any] | None = None


class IncidentWatch:
    """One for each service that follows: each has its own memory. Those that were over when it began are nobody's
    news; those that go on are told as opened."""

    def __init__(self, node_dir: Path) -> None:
        self._path = node_dir / incident_file.NAME
        self._written: tuple[int, int, int] | None = None
        self._began = False
        self.known: dict[str, dict[str, Any]] = {}
        self.writes = 0
        """How often it was written while we watched: looks of the doctor."""

    def poll(self) -> list[Change]:
        """What changed since the last call. Never raises for a file that is not there or cannot be read."""
        entries = self._read()
        if entries is None:
            return []
        now = {str(entry.get("id")): entry for entry in entries if entry.get("id")}
        changes = [change for identity, entry in now.items() if (change := self._change(identity, entry))]
        self.known, self._began = now, True
        return changes

    def _change(self, identity: str, entry: dict[str, Any]) -> Change | None:
        before, is_open = self.known.get(identity), entry.get("state") == "open"
        if before is None:
            if not is_open and not self._began:
                return None
            return Change("opened" if is_open else "closed", entry)
        if before == entry:
            return None
        if before.get("state") == "open" and not is_open:
            return Change("closed", entry, before)
        return Change("opened" if is_open and before.get("state") != "open" else "changed", entry, before)

    def _read(self) -> list[dict[str, Any]] | None:
        try:
            with os.fdopen(safe_files.open_to_read(self._path), "rb") as file:
                there = os.fstat(file.fileno())
                written = (there.st_ino, there.st_mtime_ns, there.st_size)
                if written == self._written:
                    return None
                entries = incident_file.parse(file.read(MOST_BYTES))
        except (OSError, ValueError):
            if not self._began:  # none yet: the first that comes is news
                self._began = True
            return None
        self.writes += self._written is not None or self._began
        self._written = written
        return entries


def entries(document: object, name: str) -> list[dict[str, Any]]:
    """The objects in a list of a document; none where it is something else."""
    found = document.get(name) if isinstance(document, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def number(value: object) -> float:
    """0 for what is none."""
    return float(value) if isinstance(value, (int, float)) and value == value and abs(value) < 1e15 else 0.0


def cause_of(incident: dict[str, Any]) -> str:
    """The pattern of its first cause."""
    causes = entries(incident, "causes")
    return str(causes[0].get("pattern") or "unexplained") if causes else "unexplained"


def headline_of(incident: dict[str, Any]) -> str:
    """As `diagnose` heads it."""
    said = [cause.get("summary") for cause in entries(incident, "causes")]
    said += [symptom.get("text") for symptom in entries(incident, "symptoms")]
    return next((str(text) for text in said if text), "not explained")
