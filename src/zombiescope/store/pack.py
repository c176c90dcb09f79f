"""A window of a recording as one file that every reader takes in place of the directory.

A pack is a zip of stored members with the layout of layout.py below node=NAME/. Parts that are in the
window are copied as they are; those at its edges, and log segments, are cut to it and written as Parquet.
Reading a table in the window from the pack gives the rows that the recording gives.

What holds at the start of the window but was written before it (the ledger's lines, containers, the NIC queues, GPUs
and the processes on them, gauges, a gap that has not ended) goes into a part of its own with its own times, so that
"the last line at or before" is still right. All rollups before the end come along: what is normal is known from the
weeks before.

For strangers (redaction.py) every part is written anew with other words, and rollups stay behind.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.base.time import HOUR_US
from zombiescope.store import columns, layout, schema
from zombiescope.store.compact import PART_US
from zombiescope.store.layout import Manifest, Span
from zombiescope.store.merge import PartMerger
from zombiescope.store.parquet_part import ParquetPart
from zombiescope.store.part import Part
from zombiescope.store.reader import Recording
from zombiescope.store.redaction import Redaction, redacted
from zombiescope.store.segment_part import SegmentPart


class EmptyWindowError(UserError, ValueError):
    """Nothing was recorded in the window."""


def pack(recording: Recording, start_us: int, end_us: int, out_path: Path | str, *, redact: bool = False) -> int:
    """Writes a window to out_path and returns the file's size; `redact`: for strangers. Raises EmptyWindowError."""
    out = Path(out_path)
    with safe_files.output(out, 0o640) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        redaction = Redaction(recording, end_us) if redact else None
        packing = _Packing(recording, start_us, end_us, archive, redaction)
        if not packing.add_parts():
            raise EmptyWindowError("nothing was recorded in this window", "`zombiescope info` shows what there is")
        packing.add_what_holds()
        if redaction is None:
            packing.add_rollups()
        packing.add_node()
    return out.stat().st_size


class _Packing:
    def __init__(
        self,
        recording: Recording,
        start_us: int,
        end_us: int,
        archive: zipfile.ZipFile,
        redaction: Redaction | None = None,
    ) -> None:
        self._recording = recording
        self._redaction = redaction
        self._parts = recording.parts if redaction is None else redacted(recording.parts, redaction)
        self._name = recording.name if redaction is None else redaction.node
        self._start_us = start_us
        self._end_us = end_us
        self._behind_us = end_us + 1  # a tick that ends with the window is about it
        self._archive = archive
        self._prefix = f"{layout.NODE_FOLDER}{self._name}/"
        self._written: set[tuple[int, int]] = set()

    # --- parts ----------------------------------------------------------------------------------------------

    def add_parts(self) -> int:
        """How many parts were added."""
        added = 0
        for group in self._groups():
            first = group[0]
            if isinstance(first, ParquetPart) and self._holds(first.manifest):
                self._copy(first.manifest)
                added += 1
            else:
                added += self._cut(group)
        return added

    def _groups(self) -> Iterator[list[Part]]:
        """What becomes one part: a Parquet part for itself, segments of a boot by the quarter of an hour."""
        group: list[Part] = []
        for part in self._parts:
            if not any(part.touches(table, self._start_us, self._behind_us) for table in schema.DATA):
                continue
            if group and not _belongs(part, group[0]):
                yield group
                group = []
            group.append(part)
        if group:
            yield group

    def _holds(self, manifest: Manifest) -> bool:
        times = [
            (facts.from_us, facts.to_us)
            for name, facts in manifest.tables.items()
            if facts.from_us is not None and schema.BY_NAME.get(name) not in schema.SUMMARIES
        ]
        rows_inside = all(
            self._start_us <= first and last is not None and last <= self._end_us for first, last in times
        )
        return rows_inside and self._start_us <= manifest.from_us and manifest.to_us <= self._end_us

    def _copy(self, manifest: Manifest) -> None:
        self._written.add((manifest.from_us, manifest.to_us))
        names = [manifest.name, *(manifest.file(table) for table in manifest.tables)]
        for name in names:
            self._copy_file(name)

    def _copy_file(self, name: str) -> None:
        member = zipfile.ZipInfo(self._prefix + name)
        source = self._recording.store.open(self._recording.prefix + name)
        with source, self._archive.open(member, "w", force_zip64=True) as target:
            while piece := source.read(1 << 20):
                target.write(piece)

    def _cut(self, group: Sequence[Part]) -> bool:
        """Whether anything of these parts is in the window."""
        first = group[0]
        from_us = max(first.start_us, self._start_us)
        with tempfile.TemporaryDirectory(prefix="zombiescope-pack-") as folder:
            merger = PartMerger(f"{self._name}-{from_us}", lambda table: Path(folder) / table)
            for part in group:
                merger.add(part, self._start_us, self._behind_us)
            spans = [span for part in group for span in part.spans()]
            damage = [f"{entry.file}: {entry.what}" for part in group for entry in part.damage]
            return self._write(merger, Path(folder), from_us, first.boot, self._clipped(spans), damage)

    def _clipped(self, spans: Sequence[Span]) -> list[Span]:
        found = []
        for span in spans:
            front_us = max(0, self._start_us - span.from_us)
            back_us = max(0, span.to_us - self._end_us)
            if front_us + back_us < span.to_us - span.from_us:
                clipped = replace(
                    span,
                    from_us=span.from_us + front_us,
                    to_us=span.to_us - back_us,
                    from_monotonic_ns=span.from_monotonic_ns + front_us * 1000,
                    to_monotonic_ns=span.to_monotonic_ns - back_us * 1000,
                )
                found.append(clipped)
        return found

    def _write(
        self,
        merger: PartMerger,
        folder: Path,
        from_us: int,
        boot: str,
        spans: Sequence[Span],
        damage: Sequence[str],
    ) -> bool:
        facts, ids = merger.finish()
        if not facts:
            return False
        to_us = max([from_us, *(span.to_us for span in spans)])
        while (from_us, to_us) in self._written:  # a part of which a single moment is left is named as what holds then
            to_us += 1
        self._written.add((from_us, to_us))
        manifest = Manifest(merger.part, from_us, to_us, boot, (), facts, ids, tuple(spans), tuple(damage))
        for table in facts:
            self._archive.write(folder / table, self._prefix + manifest.file(table))
        self._archive.writestr(self._prefix + manifest.name, manifest.to_json())
        return True

    # --- what holds when the window starts ------------------------------------------------------------------

    def add_what_holds(self) -> None:
        boot = self._recording.boot_at(self._start_us)
        if boot is None:
            return
        shown = boot if self._redaction is None else self._redaction.boot(boot)
        with tempfile.TemporaryDirectory(prefix="zombiescope-pack-") as folder:
            merger = PartMerger(f"{self._name}-{self._start_us}-before", lambda table: Path(folder) / table)
            states = [(table, self._state(table, boot)) for table in schema.DATA if table.holds_by]
            for table, rows in (*states, (schema.GAPS, self._open_gaps())):
                merger.add_rows(table, rows if self._redaction is None else self._redaction.rows(table, rows))
            earlier = [part for part in self._parts if part.start_us < self._start_us and part.boot == shown]
            if earlier:
                merger.add_gauges(earlier[-1], self._start_us)
            self._write(merger, Path(folder), self._start_us, shown, (), ())

    def _state(self, table: schema.Table, boot: str) -> pa.Table:
        """What of a table holds when the window starts. Within an hour each container is said again."""
        since_us = self._start_us - HOUR_US if table is schema.CONTAINERS else None
        last = _last_by(self._recording.table(table.name, since_us, self._start_us, boot=boot), *table.holds_by)
        if table is schema.CONTAINERS:
            return self._not_exited(last)
        return self._not_ended(last) if table in (schema.GPU_PROCESSES, schema.RANKS) else last

    def _not_exited(self, last: pa.Table) -> pa.Table:
        started, exited = (columns.numbers(last.column(name)) for name in ("started", "exited"))
        gone = columns.present(last.column("exited"))
        again = columns.present(last.column("started")) & (started > exited)
        return columns.take(last, np.flatnonzero(~gone | again))

    def _not_ended(self, last: pa.Table) -> pa.Table:
        return columns.take(last, np.flatnonzero(columns.numbers(last.column("ended")) == 0))

    def _open_gaps(self) -> pa.Table:
        gaps = [gap for gap in self._recording.gaps(self._start_us, self._end_us) if gap.from_us < self._start_us]
        rows = [(gap.from_us, gap.to_us, gap.source, gap.why) for gap in gaps]
        pieces = list(zip(*rows, strict=True)) or [()] * len(schema.GAPS.columns)
        arrays = [
            columns.arrow_array(column.kind, columns.arrow_type(column), [(list(values), len(rows))])
            for column, values in zip(schema.GAPS.columns, pieces, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=columns.arrow_schema(schema.GAPS))

    # --- the rest -------------------------------------------------------------------------------------------

    def add_rollups(self) -> None:
        folder = f"{self._recording.prefix}{layout.ROLLUP_FOLDER}"
        for file in layout.segment_files(self._recording.store.entries(folder), self._recording.prefix):
            if file.start_us < self._end_us:
                self._copy_file(file.name)

    def add_node(self) -> None:
        about = self._recording.node if self._redaction is None else self._redaction.about(self._recording.node)
        node = {**about, "packed": {"from_us": self._start_us, "to_us": self._end_us}}
        self._archive.writestr(f"{self._prefix}{layout.NODE_FILE}", json.dumps(node))


def _belongs(part: Part, first: Part) -> bool:
    together = isinstance(part, SegmentPart) and isinstance(first, SegmentPart) and part.boot == first.boot
    return together and part.start_us - first.start_us < PART_US


def _last_by(rows: pa.Table, *keys: str) -> pa.Table:
    """The last row for each value of some columns."""
    values = zip(*(rows.column(key).to_pylist() for key in keys), strict=True)
    last = {value: row for row, value in enumerate(values)}
    return columns.take(rows, np.array(sorted(last.values()), np.int64))
