"""One round of shipping: what is new is put into the spool, what waits is sent, and the ledger is told.

Order: documents of the node, so that whoever reads knows whose data it is; what belongs to an incident, the newest
first; then the rest, the oldest first. Each unit is followed by its receipt, shipped/<unit>.json: names, sizes and
SHA-256 of what was sent. After a start the receipts are asked before anything is sent again, so that a process that was
ended between sending and writing its ledger sends nothing twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from zombiescope.base import json as _json
from zombiescope.base import safe_files
from zombiescope.store import incident_file, layout
from zombiescope.store.shipping import units as ordinary
from zombiescope.store.shipping.policy import ShippingPolicy
from zombiescope.store.shipping.spool import Ledger, Spool
from zombiescope.store.shipping.target import Target, TargetError
from zombiescope.store.shipping.units import Contents, Unit, contents, is_sendable
from zombiescope.store.store import Directory

if TYPE_CHECKING:
    from zombiescope.store.shipping.redacted import Redactor

RECEIPTS = "shipped/"
RECEIPT_BYTES = 1 << 20
"""One of ours has a few kB; the target is written by others too."""
PIECE_BYTES = 1 << 20
DAY_US = 86_400_000_000
ROLLUP_EVERY_US = 3_600_000_000
"""How often one that still grows is sent."""
_TIMES = re.compile(r"\d{16}")
_FILE = re.compile(r"(?:date=[\d-]+|log|rollup)/[a-z_-]*\d{16}(?:-\d{16})?\.(?:parquet|json|seg)")


@dataclass
class Round:
    """What one round did; `waiting` is what it left."""

    units: int = 0
    bytes: int = 0
    known: int = 0
    """Found over there already."""
    waiting: int = 0
    dropped_units: int = 0
    dropped_bytes: int = 0
    deleted: int = 0
    notes: list[str] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        return not (self.units or self.waiting)


class Shipper:
    def __init__(
        self,
        node_dir: Path,
        folder: Path,
        policy: ShippingPolicy,
        target: Target,
        *,
        now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """`folder`: where ledger and spool are. Raises OSError, NotARecordingError."""
        self._node_dir = node_dir
        self._policy = policy
        self._target = target
        self._now_us = now_us
        self.ledger = Ledger(folder)
        self._spool = Spool(folder, node_dir)
        self._folder = folder
        self._redactor: Redactor | None = None
        self._rolled_us: dict[str, int] = {}
        self._unsure: set[str] | None = None
        """Units that may be over there though the ledger does not say so: those of before this process."""

    # --- a round -----------------------------------------------------------------------------------------------------

    def round(self) -> Round:
        """Sends what there is. Raises TargetError at the first refusal: what waits is still in the spool then."""
        done = Round()
        if self._policy.redact:
            self._prepare_redaction(done)
        found = contents(self._node_dir)
        queue = self._queue(self._take_in(found, done))
        if self._unsure is None:
            self._unsure = {unit.name for unit in queue}
        done.waiting = len(queue)
        self._send_documents(found, [layout.NODE_FILE])
        for unit in queue:
            self._send(unit, done)
            done.waiting -= 1
        self._send_documents(found, found.documents)
        self._clean_up(done)
        self._keep_books(found, done)
        return done

    def _prepare_redaction(self, done: Round) -> None:
        # numpy and pyarrow: 40 MB and a quarter of a second that who sends files as they are need not pay.
        from zombiescope.store.compact import BusyError, compact
        from zombiescope.store.shipping.redacted import Redactor

        try:
            compact(self._node_dir)
        except BusyError:
            done.notes.append("segments are being compacted by the recorder; they are sent when that is done")
        self._redactor = Redactor(self._node_dir, bytes.fromhex(self.ledger.books.key), self._folder)

    def _take_in(self, found: Contents, done: Round) -> list[Unit]:
        """Into the spool with what is new; answers what could not be put there, and is sent from the recording."""
        outside = []
        for unit in self._wanted(found):
            try:
                if not self._spool.add(unit):
                    outside.append(unit)
            except FileNotFoundError:
                continue  # compacted meanwhile: the part is taken in the next round
        if outside:
            done.notes.append(f"the spool has no room or no links ({self._spool.refused}): sent from the recording")
        self._bound_spool(done)
        return outside

    def _bound_spool(self, done: Round) -> None:
        for unit, size in self._spool.bound(self._policy.spool_bytes):
            done.dropped_units += 1
            done.dropped_bytes += size
            self.ledger.books.dropped_units += 1
            self.ledger.books.dropped_bytes += size
            done.notes.append(f"{unit.name} was lost: the spool is full (spool_bytes {self._policy.spool_bytes:,})")

    def _wanted(self, found: Contents) -> list[Unit]:
        """What the policy asks for and the target lacks."""
        everything = self._policy.what == "everything"
        data = [unit for unit in found.data if unit.urgent or (everything and not unit.growing)]
        new = [unit for unit in data if self._is_new(unit)]
        # A fleet compares sick nodes with healthy ones, so rollups leave a node without any incident too; one that
        # grows all day does so only now and then.
        rollups = [unit for unit in found.rollups if self._is_new(unit) and (not unit.growing or self._is_due(unit))]
        return [
            unit for unit in (*new, *rollups, *self._ordinary(found)) if self._redactor is None or is_sendable(unit)
        ]

    def _ordinary(self, found: Contents) -> list[Unit]:
        if self._policy.what == "everything" or not self._policy.sample:
            return []
        day = ordinary.ordinary_due(self._node_dir.name, self._now_us(), self._policy.sample, self.ledger.books.sampled)
        unit = ordinary.newest_ordinary(found.segments) if day is not None else None
        if day is None or unit is None:
            return []
        self.ledger.books.sampled = day
        return [unit] if self._is_new(unit) else []

    def _is_new(self, unit: Unit) -> bool:
        return self.ledger.sent_bytes(unit.name) < unit.size_bytes

    def _is_due(self, unit: Unit) -> bool:
        now_us = self._now_us()
        due = now_us - self._rolled_us.get(unit.name, 0) >= ROLLUP_EVERY_US
        if due:
            self._rolled_us = {unit.name: now_us}
        return due

    def _queue(self, outside: list[Unit]) -> list[Unit]:
        waiting = [*(unit for unit in self._spool.waiting() if self._is_new(unit)), *outside]
        replaced = {f"{layout.LOG_FOLDER}{name}" for unit in waiting for name in self._replaces(unit)}
        for unit in waiting:
            if unit.name in replaced:  # its rows are in a part that waits too
                self._spool.remove(unit)
        kept = [unit for unit in waiting if unit.name not in replaced]
        return sorted(kept, key=lambda unit: (not unit.urgent, -unit.from_us if unit.urgent else unit.from_us))

    def _replaces(self, unit: Unit) -> tuple[str, ...]:
        if not unit.is_part:
            return ()
        try:
            manifest = layout.Manifest.from_json((self._spool.place(unit) / unit.name).read_bytes())
        except (OSError, ValueError):
            return ()
        return tuple(Path(name).name for name in manifest.segments)

    # --- one unit ----------------------------------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """Where this node's files are over there."""
        name = self._node_dir.name.removeprefix(layout.NODE_FOLDER) if self._redactor is None else self._redactor.node
        return f"{layout.NODE_FOLDER}{name}/"

    def _send(self, unit: Unit, done: Round) -> None:
        place = self._spool.place(unit)
        segments = self._replaces(unit)
        if self._is_there(unit, place):
            done.known += 1
            sent = unit.size_bytes
        elif self._redactor is not None:
            with self._redactor.rewritten(unit, place) as (rewritten, folder):
                sent = self._put(rewritten, folder)
            sent = max(sent, unit.size_bytes)  # the ledger is about what was rewritten, whatever that weighs
        else:
            sent = self._put(unit, place)
            done.bytes += sent
        done.units += 1
        already = [name for name in segments if self.ledger.sent_bytes(f"{layout.LOG_FOLDER}{name}") >= 0]
        self.ledger.books.superseded += [f"{layout.LOG_FOLDER}{name}" for name in already]
        self._write_down(unit, sent, done)
        self._spool.remove(unit)

    def _is_there(self, unit: Unit, place: Path) -> bool:
        """Asked once, of what waited before this process began."""
        if self._unsure is None or unit.name not in self._unsure or self._redactor is not None:
            return False
        self._unsure.discard(unit.name)
        receipt = read_receipt(self._target.read(f"{self.prefix}{RECEIPTS}{unit.key}.json", RECEIPT_BYTES))
        own = [(name, *_digest(place / name)) for name in unit.files]
        return bool(receipt) and receipt == own

    def _put(self, unit: Unit, place: Path) -> int:
        files = []
        for name in unit.files:
            files.append(self._put_file(name, place / name))
        document = {"unit": unit.name, "at": self._now_us() / 1e6, "files": [asdict(file) for file in files]}
        self._target.put(f"{self.prefix}{RECEIPTS}{unit.key}.json", [json.dumps(document).encode()])
        return sum(file.bytes for file in files)

    def _put_file(self, name: str, path: Path) -> SentFile:
        source = _Source(path)
        self._target.put(self.prefix + name, source.pieces())
        sent = SentFile(name, source.bytes, source.digest.hexdigest())
        self._verify(sent)
        return sent

    def _verify(self, sent: SentFile) -> None:
        name = self.prefix + sent.name
        if self._policy.verify == "size":
            size = self._target.size(name)
            if size is not None and size != sent.bytes:
                raise TargetError(f"{name} has {size} bytes over there instead of {sent.bytes}", "it is sent again")
        elif self._policy.verify == "read":
            data = self._target.read(name, sent.bytes + 1)
            if data is None or hashlib.sha256(data).hexdigest() != sent.sha256:
                raise TargetError(f"{name} is not over there as it was sent", "it is sent again")

    def _write_down(self, unit: Unit, sent: int, done: Round) -> None:
        try:
            self.ledger.record(unit.name, sent)
        except OSError as error:
            done.notes.append(f"the ledger cannot be written ({error.strerror}): make room in {self._folder}")

    # --- documents ---------------------------------------------------------------------------------------------------

    def _send_documents(self, found: Contents, names: tuple[str, ...] | list[str]) -> None:
        for name in names:
            data = self._document(name)
            digest = hashlib.sha256(data or b"").hexdigest()
            if data is not None and name in found.documents and self.ledger.books.documents.get(name) != digest:
                self._target.put(self.prefix + name, [data])
                self.ledger.books.documents[name] = digest

    def _document(self, name: str) -> bytes | None:
        if self._redactor is not None:
            return self._redactor.about if name == layout.NODE_FILE else None
        try:
            return Directory(self._node_dir).read(name)
        except FileNotFoundError:
            return None

    # --- what is over there ------------------------------------------------------------------------------------------

    def _clean_up(self, done: Round) -> None:
        """Segments that a part has replaced, and what is older than the policy keeps."""
        for name in list(self.ledger.books.superseded):
            # The receipt goes too; a target that lets nobody delete keeps both, and readers pass over the segment.
            self._target.remove(self.prefix + name)
            self._target.remove(f"{self.prefix}{RECEIPTS}{name.replace('/', '~')}.json")
            self.ledger.books.superseded.remove(name)
        now_us = self._now_us()
        if self._policy.keep_days and now_us - self.ledger.books.cleaned_us > DAY_US:
            before_us = now_us - round(self._policy.keep_days * DAY_US)
            done.deleted = sum(self._delete(name) for name in self._outdated(before_us))
            self.ledger.books.cleaned_us = now_us

    def _outdated(self, before_us: int) -> Iterator[str]:
        for name in self._target.names(f"{self.prefix}{RECEIPTS}"):
            times = _TIMES.findall(name)
            if times and int(times[-1]) < before_us:
                yield name

    def _delete(self, receipt: str) -> int:
        """The file that makes the unit exist goes first, the receipt last."""
        files = read_receipt(self._target.read(receipt, RECEIPT_BYTES))
        for name, _, _ in reversed(files):
            if not self._target.remove(self.prefix + name):
                return 0
        return int(self._target.remove(receipt))

    def _keep_books(self, found: Contents, done: Round) -> None:
        units = {unit.name for unit in (*found.parts, *found.segments, *found.rollups)}
        self.ledger.forget_but(units | {unit.name for unit in self._spool.waiting()}, found.documents)
        try:
            self.ledger.save()
        except OSError as error:
            done.notes.append(f"the ledger cannot be written ({error.strerror}): make room in {self._folder}")

    def going_on(self) -> bool:
        """Whether more is to come soon: an incident is open, or a frozen window is not over."""
        now_us = self._now_us()
        if any(window.to_us > now_us for window in contents(self._node_dir).frozen):
            return True
        return bool(incident_file.open_ones(self._node_dir))


@dataclass(frozen=True, slots=True)
class SentFile:
    name: str
    bytes: int
    sha256: str


class _Source:
    """A file in pieces, with the digest of exactly the bytes that were handed out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.bytes = 0
        self.digest = hashlib.sha256()

    def pieces(self) -> Iterator[bytes]:
        with os.fdopen(safe_files.open_to_read(self._path), "rb") as file:
            while piece := file.read(PIECE_BYTES):
                self.digest.update(piece)
                self.bytes += len(piece)
                yield piece


def _digest(path: Path) -> tuple[int, str]:
    source = _Source(path)
    for _ in source.pieces():
        pass
    return source.bytes, source.digest.hexdigest()


def read_receipt(data: bytes | None) -> list[tuple[str, int, str]]:
    """Names, sizes and digests; none where this is no receipt, or names what is no file of a recording."""
    try:
        said: Any = _json.loads(data or b"")
        files = [(str(file["name"]), int(file["bytes"]), str(file["sha256"])) for file in said["files"]]
        return files if all(_FILE.fullmatch(name) for name, _, _ in files) else []
    except (ValueError, TypeError, KeyError):
        return []
