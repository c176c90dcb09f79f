"""Parts of a recording with other words in them, for a target that is not to know names.

A segment is not rewritten: with redaction only parts are sent, so a window leaves the node when its segments are
compacted. The words are keyed by what the ledger holds, so that one node's parts can be joined with each other, and
with nobody else's.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

from zombiescope.store.layout import REVISION, Manifest
from zombiescope.store.merge import PartMerger
from zombiescope.store.parquet_part import ParquetPart
from zombiescope.store.reader import open_recording
from zombiescope.store.redaction import RedactedPart, Redaction
from zombiescope.store.shipping.units import OPEN_US, Unit
from zombiescope.store.store import Directory


class Redactor:
    def __init__(self, node_dir: Path, key: bytes, folder: Path) -> None:
        """`folder`: where parts are written anew. Raises NotARecordingError, OSError."""
        self._folder = folder
        with open_recording(node_dir) as recording:
            self._redaction = Redaction(recording, OPEN_US, key=key)
            about = self._redaction.about(recording.node)
        self.node = self._redaction.node
        self.about = json.dumps(about).encode()

    @contextmanager
    def rewritten(self, unit: Unit, place: Path) -> Iterator[tuple[Unit, Path]]:
        """The part with other words, while it is sent. Raises OSError, ValueError."""
        folder = Path(mkdtemp(prefix="redacted-", dir=self._folder))
        try:
            yield self._write(unit, place, folder), folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _write(self, unit: Unit, place: Path, folder: Path) -> Unit:
        manifest = Manifest.from_json((place / unit.name).read_bytes())
        (folder / manifest.folder).mkdir()
        part = RedactedPart(ParquetPart(Directory(place), "", manifest), self._redaction)
        name = f"{self.node}-{manifest.from_us}"
        merger = PartMerger(name, lambda table: folder / manifest.file(table))
        merger.add(part)
        facts, ids = merger.finish()
        damage = tuple(entry.what for entry in part.damage)
        boot = self._redaction.boot(manifest.boot)
        spans = tuple(map(self._redaction.span, manifest.spans))
        written = replace(
            manifest, part=name, boot=boot, spans=spans, tables=facts, ids=ids, damage=damage, revision=REVISION
        )
        (folder / manifest.name).write_bytes(written.to_json())
        files = (*(manifest.file(table) for table in facts), manifest.name)
        return replace(unit, files=files, size_bytes=sum((folder / file).stat().st_size for file in files))
