"""What waits for the target, kept though retention deletes it from the recording.

A unit waits as a directory of hard links with the names of the recording, in which `unit.json` comes last: without
it the directory is no unit. A link costs nothing while the original is there; what only the spool still has
counts against its bound, and beyond that the oldest goes, what belongs to no incident first. That is the only way in
which something is lost, and it is counted.

Where links cannot be made (another file system, no rights), a unit is sent from the recording as long as it is there.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store.shipping.units import Unit

FOLDER = "spool"
_ABOUT = "unit.json"
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSPC, errno.EDQUOT, errno.EMLINK, errno.EACCES)


class Spool:
    def __init__(self, folder: Path, node_dir: Path) -> None:
        """Raises OSError."""
        self._folder = folder / FOLDER
        self._node_dir = node_dir
        safe_files.make_directory(self._folder)
        self.refused: str | None = None
        """Why the last unit could not be linked."""

    def waiting(self) -> list[Unit]:
        """Every unit that waits; what an interrupted run left half is removed."""
        found = []
        for place in sorted(self._folder.iterdir()):
            unit = self._read(place)
            if unit is None:
                shutil.rmtree(place, ignore_errors=True)
            else:
                found.append(unit)
        return found

    def _read(self, place: Path) -> Unit | None:
        try:
            said = _json.loads((place / _ABOUT).read_bytes())
            unit = Unit(**{**said, "files": tuple(said["files"])})
            sizes = [(place / name).stat().st_size for name in unit.files]
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return replace(unit, size_bytes=sum(sizes)) if unit.key == place.name else None

    def place(self, unit: Unit) -> Path:
        """Where its files are: the spool, or the recording where they could not be linked."""
        inside = self._folder / unit.key
        return inside if (inside / _ABOUT).exists() else self._node_dir

    def add(self, unit: Unit) -> bool:
        """Whether it is safe from retention now. Raises FileNotFoundError when the recording has it no more."""
        place = self._folder / unit.key
        try:
            for name in unit.files:
                target = place / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with contextlib.suppress(FileExistsError):
                    os.link(self._node_dir / name, target, follow_symlinks=False)
            safe_files.replace(place / _ABOUT, json.dumps(asdict(unit)).encode())
        except OSError as error:
            shutil.rmtree(place, ignore_errors=True)
            if error.errno not in _NO_LINKS:
                raise
            self.refused = os.strerror(error.errno or 0)
            return False
        return True

    def remove(self, unit: Unit) -> None:
        shutil.rmtree(self._folder / unit.key, ignore_errors=True)

    def own_bytes(self, unit: Unit) -> int:
        """What only the spool has of it."""
        total = 0
        for name in unit.files:
            with contextlib.suppress(OSError):
                status = (self._folder / unit.key / name).stat()
                total += status.st_size if status.st_nlink == 1 else 0
        return total

    def bound(self, most_bytes: int) -> list[tuple[Unit, int]]:
        """What had to go, and how many bytes of each were nowhere else."""
        owned = [(unit, size) for unit in self.waiting() if (size := self.own_bytes(unit))]
        owned.sort(key=lambda each: (each[0].urgent, each[0].from_us))
        total = sum(size for _, size in owned)
        gone = []
        for unit, size in owned:
            if total <= most_bytes:
                break
            self.remove(unit)
            total -= size
            gone.append((unit, size))
        return gone


# --- ledger -----------------------------------------------------------------------------------------------------------
# What the target has, on disk: the books about one node and one target.
#
# ledger.json {"sent": {unit: bytes}, "documents": {name: sha256}, "superseded": [...], "dropped": n, ...}
#
# One small file, replaced as a whole and synced, so that whatever ends the process leaves the old state or the new one.
# It is written after the target has a unit. Ended in between, the unit is sent again under the same name, unless its
# receipt is found over there (shipper.py): nothing is there twice, and nothing is taken for sent that is not. Books
# that are lost or damaged cost questions, not data.
#
# It holds what is still in the recording or in the spool, and forgets the rest: it is as small as the recording.

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
                return parse_ledger(file.read(MOST_BYTES)), False
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


def parse_ledger(data: bytes) -> Books:
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
