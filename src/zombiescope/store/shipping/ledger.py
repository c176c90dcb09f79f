"""What the target has, on disk: the books about one node and one target.

    ledger.json   {"sent": {unit: bytes}, "documents": {name: sha256}, "superseded": [...], "dropped": n, ...}

One small file, replaced as a whole and synced, so that whatever ends the process leaves the old state or the new one.
It is written after the target has a unit. Ended in between, the unit is sent again under the same name, unless its
receipt is found over there (shipper.py): nothing is there twice, and nothing is taken for sent that is not. Books that
are lost or damaged cost questions, not data.

It holds what is still in the recording or in the spool, and forgets the rest: it is as small as the recording.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base import safe_files

NAME = "ledger.json"
MOST_BYTES = 64 << 20


@dataclass
class Books:
    sent: dict[str, int] = field(default_factory=dict)
    """Unit -> how many bytes of it the target has."""
    documents: dict[str, str] = field(default_factory=dict)
    """Document -> the SHA-256 of what the target has."""
    superseded: list[str] = field(default_factory=list)
    """Names over there that a part has replaced, still to be deleted."""
    shipped_bytes: int = 0
    shipped_units: int = 0
    dropped_units: int = 0
    dropped_bytes: int = 0
    cleaned_us: int = 0
    """When the target was last looked through for what is too old."""
    sampled: str = ""
    """The last day of which an ordinary segment was sent."""
    key: str = ""
    """With what names are replaced, where they are: the same name is the same word in all that is sent."""


class Ledger:
    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self.books, self.fresh = self._read()

    def _read(self) -> tuple[Books, bool]:
        """The books, and whether there were none that could be read."""
        try:
            with os.fdopen(safe_files.open_to_read(self._path), "rb") as file:
                return parse(file.read(MOST_BYTES)), False
        except (OSError, ValueError):
            return Books(key=os.urandom(16).hex()), True

    def sent_bytes(self, unit: str) -> int:
        """-1: the target has nothing of it."""
        return self.books.sent.get(unit, -1)

    def record(self, unit: str, size_bytes: int) -> None:
        """Raises OSError; what could not be written is still known here, and written the next time."""
        self.books.sent[unit] = size_bytes
        self.books.shipped_bytes += size_bytes
        self.books.shipped_units += 1
        self.save()

    def forget_but(self, units: Collection[str], documents: Collection[str]) -> None:
        """Keeps what can still be asked for. Not saved by itself."""
        self.books.sent = {unit: size for unit, size in self.books.sent.items() if unit in units}
        self.books.documents = {name: digest for name, digest in self.books.documents.items() if name in documents}

    def save(self) -> None:
        """Raises OSError."""
        safe_files.replace(self._path, json.dumps(asdict(self.books), separators=(",", ":")).encode(), sync=True)


def parse(data: bytes) -> Books:
    """Raises ValueError."""
    said = _json.loads(data)
    if not isinstance(said, dict):
        raise ValueError("not an object")
    try:
        books = Books(**said)
        books.sent = {str(unit): int(size) for unit, size in books.sent.items()}
        books.documents = {str(name): str(digest) for name, digest in books.documents.items()}
        books.superseded = [str(name) for name in books.superseded]
        books.sampled = str(books.sampled)
        bytes.fromhex(books.key)
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    return books
