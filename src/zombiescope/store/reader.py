"""Reading a recording: every table of any window as Arrow, pandas or numpy, from log and Parquet alike.

Opening lists files and reads manifests and segment headers; data is read when a table is asked for. A
Recording shows the files as they were when it was opened; `refresh()` looks again.

Ids (`stack`, `frame`, `task`, `series`) are made unique over all parts while a Recording is open: joining
two of its tables on the id alone is right. They are small and without large holes, so they index arrays;
they mean nothing in another Recording, nor after `refresh()`.

A window is [start_us, end_us). Tables without a time column give the rows of every part that the window
touches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import pyarrow as pa

from zombiescope.base import json as _json
from zombiescope.base.packages import install
from zombiescope.store import allowance, columns, layout, schema, shape, steps
from zombiescope.store.columns import in_order_of_time
from zombiescope.store.gaps import Gap, find_gaps
from zombiescope.store.ids import UniqueIds
from zombiescope.store.log import DamagedError, SegmentReader
from zombiescope.store.parquet_footer import Footers
from zombiescope.store.parquet_part import ParquetPart
from zombiescope.store.part import Damage, Part
from zombiescope.store.segment_part import SegmentPart, bound
from zombiescope.store.store import NotARecordingError, Store, open_store

if TYPE_CHECKING:
    import pandas
    import polars

_MOST_CHECKED = 16
MAX_HELD_SEGMENTS = 128
"""Segments kept open; compaction runs every quarter of an hour, so there are about eight."""


def open_recording(
    path: Path | str, node: str | None = None, *, temporary: bool = False, since_us: int | None = None
) -> Recording:
    """One node at `path`: a directory, a node's folder in it, or a pack; `temporary`: it is removed when this is over,
    so nobody is sent there; `since_us`: as if the parts that ended before had never been. Raises NotARecordingError."""
    return open_as(Recording, path, node, temporary=temporary, since_us=since_us)


def open_as(kind: type[AnyRecording], path: Path | str, node: str | None = None, **options: Any) -> AnyRecording:
    """The same, as a kind of its own: with more methods."""
    store = open_store(path)
    try:
        prefix, name = _find_node(store, node)
        return kind(store, prefix, name, **options)
    except BaseException:
        store.close()
        raise


def check(path: Path | str, node: str | None = None) -> None:
    """Whether what lies at a path can be read, for whoever opens it later. A directory that is empty may be one that a
    recorder is about to write. Raises NotARecordingError, OSError."""
    if "://" not in str(path) and Path(path).is_dir() and not any(Path(path).iterdir()):
        return
    store = open_store(path)
    try:
        folders = [name for name in store.folders() if name.startswith(layout.NODE_FOLDER)]
    finally:
        store.close()
    nodes: list[str | None] = [name.removeprefix(layout.NODE_FOLDER) for name in folders[:_MOST_CHECKED]]
    for name in [node] if node is not None else nodes or [None]:
        open_recording(path, name).close()


def _find_node(store: Store, wanted: str | None) -> tuple[str, str]:
    folders = store.folders()
    names = [folder.removeprefix(layout.NODE_FOLDER) for folder in folders if folder.startswith(layout.NODE_FOLDER)]
    if not names and "log" in folders:
        own = Path(store.place).resolve().name.removeprefix(layout.NODE_FOLDER)
        return "", own
    if not names:
        raise NotARecordingError(
            f"there is no recording in {store.place}", f"`zombiescope record {store.place}` starts one"
        )
    if wanted is None and len(names) > 1:
        raise NotARecordingError(f"{store.place} holds {len(names)} nodes", f"choose one of them: {', '.join(names)}")
    if wanted is not None and wanted not in names:
        raise NotARecordingError(f"{store.place} has no node {wanted}", f"it has {', '.join(names)}")
    name = wanted or names[0]
    return f"{layout.NODE_FOLDER}{name}/", name


class Recording:
    """One node's recording. Made by open_recording()."""

    def __init__(
        self, store: Store, prefix: str, name: str, *, temporary: bool = False, since_us: int | None = None
    ) -> None:
        self.store = store
        self._since_us = since_us
        self.temporary = temporary
        self.prefix = prefix
        self.name = name
        self._segments: list[SegmentPart] = []
        self._parquet: list[ParquetPart] = []
        self._footers = Footers()
        self._ids = UniqueIds()
        self.refresh()

    # --- what there is -------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Looks at the files again. What has not changed since stays decoded, and keeps its ids; ids given out before
        mean nothing afterwards."""
        self._look_again({(part.name, part.size_bytes): part for part in self._segments if not part.growing}, {})

    def reach_back(self) -> None:
        """From now on all that was recorded, where only what came after a moment was opened. What is open stays as it
        is, decoded, with its ids and its end."""
        self._since_us = None
        self._look_again({}, {part.name: part for part in self._segments})

    def _look_again(self, before: Mapping[tuple[str, int], SegmentPart], stays: Mapping[str, SegmentPart]) -> None:
        self._damage: list[Damage] = []
        self.node = self._read_node()
        # Segments first: one that compaction deletes meanwhile is named by a manifest that is read after it.
        opened = self._open_segments(before, stays)
        for part in self._segments:
            if part not in opened:
                part.close()
        self._segments = opened
        manifests, unreadable = layout.read_manifests(self.store, self.prefix)
        self._damage += [Damage(name, why) for name, why in unreadable]
        self._drop_compacted(manifests)
        if self._since_us is not None:
            manifests = [manifest for manifest in manifests if manifest.to_us >= self._since_us]
        bound(self._segments)
        known = {part.name: part for part in self._parquet}
        self._parquet = [
            known.get(manifest.part)
            or ParquetPart(
                self.store,
                self.prefix,
                manifest,
                floor_bytes=allowance.share(len(manifests)),
                footers=self._footers,
            )
            for manifest in manifests
        ]
        same = {*map(id, known.values()), *map(id, before.values()), *map(id, stays.values())}
        self._ids.keep({part.name for part in self.parts if id(part) in same})

    def _read_node(self) -> dict[str, Any]:
        try:
            node = _json.loads(self.store.read(f"{self.prefix}{layout.NODE_FILE}"))
            if isinstance(node, dict):
                return shape.node(node)
            self._damage.append(Damage(layout.NODE_FILE, "is not an object"))
        except (OSError, ValueError) as error:
            self._damage.append(Damage(layout.NODE_FILE, str(error)))
        return {}

    def _open_segments(
        self, known: Mapping[tuple[str, int], SegmentPart], stays: Mapping[str, SegmentPart]
    ) -> list[SegmentPart]:
        found = layout.segment_files(self.store.entries(f"{self.prefix}{layout.LOG_FOLDER}"), self.prefix)
        if self._since_us is not None:
            found = _since(found, self._since_us)
        opened: list[SegmentPart] = []
        for segment in found:
            if part := stays.get(segment.name) or known.get((segment.name, segment.size_bytes)):
                part.since_us, part.until_us = part.start_us, None
                opened.append(part)
                continue
            try:
                hold = len(opened) < MAX_HELD_SEGMENTS
                opened.append(
                    SegmentPart(self.store, self.prefix, segment, hold=hold, floor_bytes=allowance.share(len(found)))
                )
            except FileNotFoundError:
                continue
        return opened

    def _drop_compacted(self, manifests: list[layout.Manifest]) -> None:
        compacted = {f"{layout.LOG_FOLDER}{name}" for manifest in manifests for name in manifest.segments}
        for segment in self._segments:
            if segment.name in compacted:
                segment.close()
        self._segments = [segment for segment in self._segments if segment.name not in compacted]

    @property
    def parts(self) -> list[Part]:
        """Every part, oldest first."""
        return sorted([*self._parquet, *self._segments], key=lambda part: part.start_us)

    def boot_at(self, at_us: int) -> str | None:
        """The boot that ran at a moment; counts of the kernel start over with a boot."""
        earlier = [part.boot for part in self.parts if part.start_us <= at_us]
        return earlier[-1] if earlier else None

    @property
    def segments(self) -> list[SegmentPart]:
        """The parts that are still log segments."""
        return list(self._segments)

    @property
    def manifests(self) -> list[layout.Manifest]:
        """The parts that are Parquet."""
        return [part.manifest for part in self._parquet]

    @property
    def start_us(self) -> int:
        starts = [manifest.from_us for manifest in self.manifests]
        starts += [segment.start_us for segment in self._segments]
        return min(starts, default=self._started_us)

    @property
    def end_us(self) -> int:
        """When the last row was written. With a log this decodes its newest segment."""
        ends = [manifest.to_us for manifest in self.manifests]
        ends += [segment.start_us for segment in self._segments]
        for segment in self._segments:
            if segment.growing:
                ends += [span.to_us for span in segment.spans()]
        return max(ends, default=self._started_us)

    @property
    def _started_us(self) -> int:
        started = self.node.get("started_us")
        return started if isinstance(started, int) else 0

    @property
    def damage(self) -> list[Damage]:
        """What could not be read so far. Parts that nobody asked for yet are not in it."""
        return [*self._damage, *(entry for part in self.parts for entry in part.damage)]

    @property
    def size_bytes(self) -> int:
        return sum(entry.size_bytes for entry in self.store.entries(self.prefix))

    # --- tables --------------------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        start_us: int | None = None,
        end_us: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        boot: str | None = None,
    ) -> pa.Table:
        """The rows in the window [start_us, end_us), in the order of time; of one boot, if it is named."""
        spec = _spec(name)
        wanted = list(spec.names if columns is None else columns)
        sort_by = spec.time_column
        read = wanted if sort_by is None or sort_by in wanted else [*wanted, sort_by]
        pieces = list(self._pieces(spec, start_us, end_us, read, boot))
        if not pieces:
            return _no_rows(spec, wanted)
        rows = pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)
        if sort_by is not None:
            rows = in_order_of_time(rows, sort_by)
        return rows.select(wanted)

    def batches(
        self,
        name: str,
        start_us: int | None = None,
        end_us: int | None = None,
        columns: Sequence[str] | None = None,
        *,
        parts: Sequence[Part] | None = None,
    ) -> Iterator[pa.Table]:
        """The same rows part by part, or of some parts, for what does not fit into memory; sorted within a part."""
        spec = _spec(name)
        yield from self._pieces(spec, start_us, end_us, list(spec.names if columns is None else columns), parts=parts)

    def summary(
        self,
        part: Part,
        name: str,
        start_us: int | None = None,
        end_us: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table | None:
        """Rows of a summary of one part; None where it has none that can be read, and the samples are to be counted."""
        spec = _spec(name)
        rows = part.readable(spec, start_us, end_us, columns) if isinstance(part, ParquetPart) else None
        return None if rows is None else self._ids.apply(part, spec, rows)

    def first_id(self, part: Part, kind: str) -> int:
        """The id that a part's id 0 has in this Recording."""
        return self._ids.base(part, kind)

    def numpy(
        self,
        name: str,
        start_us: int | None = None,
        end_us: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Columns as numpy: times datetime64[us]; ints int64, or float64 with nan for what is missing."""
        spec = _spec(name)
        rows = self.table(name, start_us, end_us, columns)
        kinds = {column.name: column.kind for column in spec.columns}
        return {column: _to_numpy(kinds[column], rows.column(column)) for column in rows.column_names}

    def pandas(
        self,
        name: str,
        start_us: int | None = None,
        end_us: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> pandas.DataFrame:
        """The table as a DataFrame. Raises ImportError where pandas is not installed."""
        try:
            import pandas as _  # noqa: F401
        except ImportError as error:
            raise ImportError(f"pandas is not installed: {install('pandas')}") from error
        frame: pandas.DataFrame = self.table(name, start_us, end_us, columns).to_pandas()
        return frame

    def polars(
        self,
        name: str,
        start_us: int | None = None,
        end_us: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> polars.DataFrame:
        """The table as a DataFrame of Polars, without a copy where it can. Raises ImportError without Polars."""
        try:
            import polars as pl
        except ImportError as error:
            raise ImportError("Polars is not installed; `pip install polars` brings it") from error
        frame: polars.DataFrame = pl.from_arrow(self.table(name, start_us, end_us, columns))
        return frame

    # The names that users of pyarrow, xarray and polars expect.
    to_numpy, to_pandas, to_polars = numpy, pandas, polars

    def _pieces(
        self,
        spec: schema.Table,
        start_us: int | None,
        end_us: int | None,
        wanted: Sequence[str],
        boot: str | None = None,
        parts: Sequence[Part] | None = None,
    ) -> Iterator[pa.Table]:
        if spec in schema.ROLLUPS:
            yield from self._rollups(spec, start_us, end_us, wanted)
            return
        for part in self.parts if parts is None else parts:
            if boot in (None, part.boot) and part.touches(spec, start_us, end_us):
                steps.step(f"reading {spec.name}")
                rows = part.rows(spec, start_us, end_us, wanted)
                if len(rows):
                    yield self._ids.apply(part, spec, rows)

    def _rollups(
        self, spec: schema.Table, start_us: int | None, end_us: int | None, wanted: Sequence[str]
    ) -> Iterator[pa.Table]:
        gathering = columns.Gathering(spec, wanted, start_us, end_us)
        found = layout.segment_files(self.store.entries(f"{self.prefix}{layout.ROLLUP_FOLDER}"), self.prefix)
        for segment in found:
            try:
                with self.store.open(self.prefix + segment.name) as file:
                    reader = SegmentReader(file, allowance.share(len(found)))
                    for frame in reader.frames():
                        for block in frame.blocks:
                            if block.table is spec:
                                gathering.add(block)
            except (DamagedError, ValueError, OSError) as error:
                self._note_damage(segment.name, str(error))
                continue
            if reader.left_out:
                self._note_damage(segment.name, reader.left_out)
            if reader.damage:
                self._note_damage(segment.name, reader.damage)
            elif reader.position < segment.size_bytes and segment is not found[-1]:
                self._note_damage(segment.name, "ends inside a frame")
        if gathering.rows:
            yield gathering.table()

    def _note_damage(self, name: str, what: str) -> None:
        entry = Damage(name, what)
        if entry not in self._damage:
            self._damage.append(entry)

    # --- holes ---------------------------------------------------------------------------------------------

    def gaps(self, start_us: int | None = None, end_us: int | None = None) -> list[Gap]:
        """Where the recording is blind: what the recorder said, and the holes between what it wrote."""
        spans = [span for part in self.parts for span in part.spans()]
        found = find_gaps(self.table("gaps", None, end_us), spans)
        if isinstance(self.node.get("imported"), dict):
            found = [replace(gap, why="no imported file covers it") for gap in found if gap.source == "recorder"]
        return [
            gap
            for gap in found
            if (start_us is None or gap.to_us > start_us) and (end_us is None or gap.from_us < end_us)
        ]

    # --- closing -------------------------------------------------------------------------------------------

    def _close_segments(self) -> None:
        for segment in self._segments:
            segment.close()

    def close(self) -> None:
        self._close_segments()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


AnyRecording = TypeVar("AnyRecording", bound=Recording)


def _since(found: list[layout.SegmentFile], since_us: int) -> list[layout.SegmentFile]:
    """Without the segments that were followed by another one before that moment."""
    starts = [segment.start_us for segment in found]
    return [segment for segment in found if not any(segment.start_us < start <= since_us for start in starts)]


def _spec(name: str) -> schema.Table:
    if name not in schema.BY_NAME:
        raise KeyError(f"there is no table {name}; there are {', '.join(sorted(schema.BY_NAME))}")
    return schema.BY_NAME[name]


def _no_rows(spec: schema.Table, wanted: Sequence[str]) -> pa.Table:
    return columns.empty(spec, wanted)


def _to_numpy(kind: str, column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    if kind in ("text", "ints"):
        values = np.empty(len(column), object)
        values[:] = column.to_pylist()
        return values
    numbers, present = columns.numbers(column), columns.present(column)
    if kind == "time":
        times = numbers.astype("datetime64[us]")
        times[~present] = np.datetime64("NaT", "us")
        return times
    if present.all():
        return numbers
    return np.where(present, numbers, np.nan)
