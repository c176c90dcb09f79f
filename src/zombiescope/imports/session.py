"""One import from beginning to end: all files are looked at first, so that one clock is found for all of them, then
they are read one after the other and written as segments.

What a file's clock is may be known only after its last sample (a pipe, a packed text without header): its rows are
held in memory until then. All others are written as they are read.

A file that cannot be used is named in `skipped`, and the others are imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from zombiescope.base import json as _json
from zombiescope.base.errors import UserError
from zombiescope.imports import clock, proc_cgroups
from zombiescope.imports import inputs as formats
from zombiescope.imports.clock import FileClock
from zombiescope.imports.inputs import FileFormat, Input, UnusableError, expand, look, script_clock
from zombiescope.imports.perf_script import PerfScriptImport
from zombiescope.imports.rows import ImportReport, SampleRows
from zombiescope.imports.stream import Stream, text_of
from zombiescope.imports.writer import ImportWriter
from zombiescope.store import layout, locate, schema
from zombiescope.store.node_directory import AlreadyRecordingError, Lock

if TYPE_CHECKING:
    from zombiescope.imports.perf_data import PerfDataImport

DEFAULT_NODE = "imported"
_MOST_SIDE_BYTES = 256 << 20


class NotImportedError(UserError):
    """Nothing can be imported."""


class Progress(Protocol):
    """Who shows how far an import is."""

    def expect(self, size: int | None) -> None: ...
    def begin(self, name: str) -> None: ...
    def advance(self, size: int) -> None: ...


class Silence:
    """Nothing is shown: for an import of a second, and for callers without a terminal."""

    def expect(self, size: int | None) -> None: ...
    def begin(self, name: str) -> None: ...
    def advance(self, size: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Options:
    kallsyms: Path | None = None
    symbol_dirs: tuple[Path, ...] = ()
    inline: bool = False
    start_us: int | None = None
    node: str | None = None
    format: FileFormat | None = None


@dataclass(slots=True)
class ImportedFile:
    """What one file gave."""

    file: str
    format: str
    samples: int = 0
    rows: int = 0
    """Of other tables: events, core loads, a census."""


@dataclass(slots=True)
class ImportResult:
    node: str
    path: Path
    outcome: ImportReport
    files: list[ImportedFile] = field(default_factory=list)
    from_us: int | None = None
    to_us: int | None = None
    perf_events: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Held:
    clock: FileClock
    rows: list[SampleRows]


class Session:
    """Imports files into a directory."""

    def __init__(self, directory: Path, options: Options, progress: Progress) -> None:
        self._directory = directory
        self._options = options
        self._progress = progress
        self._outcome = ImportReport()
        self._files: list[ImportedFile] = []
        self._held: list[_Held] = []
        self._perf_events: Counter[str] = Counter()
        self._perf_data: PerfDataImport | None = None

    def run(self, names: Sequence[str]) -> ImportResult:
        """Raises NotImportedError, WriteError, and OSError when the directory cannot be written."""
        inputs = self._look(expand(names))
        sizes = [given.size for given in inputs]
        self._progress.expect(None if None in sizes else sum(size or 0 for size in sizes))
        node = self._node(inputs)
        path = self._directory / f"{layout.NODE_FOLDER}{node}"
        self._refuse_recordings(path)
        store = ImportWriter(self._directory, node)
        try:
            lock = Lock(store.path, 0)
        except AlreadyRecordingError as error:
            raise NotImportedError(error.what, error.fix) from error
        try:
            boot_offset_us = self._profiles([given for given in inputs if given.is_profile], store)
            self._side_files([given for given in inputs if not given.is_profile], store, boot_offset_us)
            if store.span_us is not None:
                store.finish(self._outcome, [each.file for each in self._files])
        finally:
            lock.release()
            for given in inputs:
                given.close()
            if not (path / layout.NODE_FILE).exists():
                self._leave_nothing(path)
        from_us, to_us = store.span_us or (None, None)
        return ImportResult(node, path, self._outcome, self._files, from_us, to_us, self._perf_events)

    def _leave_nothing(self, path: Path) -> None:
        """Nothing was imported, and nothing was here before: an empty recording would only confuse."""
        with suppress(OSError):
            (path / locate.LOCK_FILE).unlink()
            (path / locate.HELD_FILE).unlink(missing_ok=True)
            for folder in (path / layout.LOG_FOLDER.rstrip("/"), path, self._directory):
                folder.rmdir()

    # --- before anything is decoded ----------------------------------------------------------------------------------

    def _look(self, names: Sequence[str]) -> list[Input]:
        inputs = []
        unusable: UnusableError | None = None
        for name in names:
            try:
                inputs.append(look(name, self._options.format))
            except UnusableError as error:
                unusable = error
                self._outcome.skipped[str(error)] += 1
        if inputs:
            return inputs
        if unusable is None:
            raise NotImportedError("nothing to import")
        more = f" (and {len(names) - 1} more like it)" if len(names) > 1 else ""
        raise NotImportedError(f"nothing to import: {unusable.what}{more}", unusable.fix)

    def _node(self, inputs: Sequence[Input]) -> str:
        if self._options.node is not None:
            return self._options.node
        hosts = Counter(given.host for given in inputs if given.host and given.is_profile)
        if len(hosts) > 1:
            found = ", ".join(f"{host} ({count} files)" for host, count in hosts.most_common(5))
            raise NotImportedError(
                f"the files are of {len(hosts)} nodes: {found}",
                "import those of each node by themselves (the same DIR will do), or give --node NAME when they are one",
            )
        for given in inputs:
            if given.clock is not None and given.clock.host is None and hosts:
                given.clock = replace(given.clock, host=next(iter(hosts)))
        beside = (given.host for given in inputs if given.host)
        name = next(iter(hosts), next(beside, DEFAULT_NODE))
        name = name.encode("utf-8", "backslashreplace").decode().replace("/", "_").replace("\0", "_").lstrip(".")
        return name[:200] or DEFAULT_NODE

    def _refuse_recordings(self, path: Path) -> None:
        for node in locate.nodes_in(self._directory) if self._directory.is_dir() else ():
            other = self._directory / f"{layout.NODE_FOLDER}{node}"
            if locate.is_locked(other):
                raise NotImportedError(
                    f"{other} is being recorded into", "stop the recorder, or choose another directory"
                )
        try:
            before = _json.loads((path / layout.NODE_FILE).read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(before, dict) and "imported" not in before:
            raise NotImportedError(f"{path} is a recording that was made by the recorder", "choose another directory")

    # --- profiles ----------------------------------------------------------------------------------------------------

    def _profiles(self, inputs: Sequence[Input], store: ImportWriter) -> int | None:
        """Answers Unix time minus the clock that starts at boot, if that is known."""
        known = [given.clock for given in inputs if given.clock is not None]
        offsets = self._offsets(known)
        for given in inputs:
            self._progress.begin(given.name)
            try:
                self._profile(given, None if given.clock is None else offsets[id(given.clock)], store)
            except OSError as error:
                self._outcome.skipped[f"{given.name}: {error.strerror or error}"] += 1
            finally:
                given.close()
        held = [each.clock for each in self._held]
        offsets |= self._offsets(held)
        for each in self._held:
            for rows in each.rows:
                self._add(rows, offsets[id(each.clock)], store)
        return next((offsets[id(each)] for each in (*known, *held) if each.last_us and offsets[id(each)]), None)

    def _offsets(self, clocks: Sequence[FileClock]) -> dict[int, int]:
        """Unix time minus file clock, by the id of the clock. What carries no times is on no common axis."""
        timed = [each for each in clocks if each.last_us != 0]
        groups = [timed, *([each] for each in clocks if each.last_us == 0)]
        start_us = self._options.start_us
        for group in groups:
            for sentence in clock.sentences(group, start_us):
                self._outcome.note(sentence)
        return {
            id(each): offset_us
            for group in groups
            for each, offset_us in zip(group, clock.offset_us(group, start_us), strict=True)
        }

    def _profile(self, given: Input, offset_us: int | None, store: ImportWriter) -> None:
        entry = ImportedFile(given.name, formats.NAMES[given.format])
        self._files.append(entry)
        held: list[SampleRows] = []
        for rows in self._rows(given):
            entry.samples += len(rows)
            if offset_us is None:
                held.append(rows)
            else:
                self._add(rows, offset_us, store)
        damage = given.damage or (given.stream.damage if given.stream is not None else None)
        if damage is not None:
            self._outcome.skipped[f"the rest of {given.name}: {damage}"] += 1
        if not entry.samples:
            self._outcome.note(f"{given.name} holds no samples")
        if held and given.clock is not None:
            self._held.append(_Held(given.clock, held))

    def _rows(self, given: Input) -> Iterator[SampleRows]:
        """The rows of a file; `given.clock` is set at the end where it was not known before."""
        if given.format == "perf-data":
            yield from self._read_perf_data(given)
        elif given.format == "perf-script":
            yield from self._read_perf_script(given)
        else:
            yield from self._read_collapsed(given)

    def _read_perf_data(self, given: Input) -> Iterator[SampleRows]:
        from zombiescope.imports.perf_data import PerfDataImport

        options = self._options
        if self._perf_data is None:
            self._perf_data = PerfDataImport(
                kallsyms=options.kallsyms, symbol_dirs=options.symbol_dirs, inline=options.inline, outcome=self._outcome
            )
        yield from self._perf_data.read(given.open(), given.name, given.size, self._progress.advance)
        if given.clock is None:
            given.clock = replace(self._perf_data.clock, modified_wall_us=given.modified_us)

    def _read_perf_script(self, given: Input) -> Iterator[SampleRows]:
        reader = PerfScriptImport(self._outcome)
        stream = given.open_stream(self._progress.advance)
        yield from reader.read(stream, _if_damaged(stream))
        for key, value in reader.header.facts().items():
            self._outcome.facts.setdefault(key, value)
        if given.clock is None:
            given.clock = script_clock(given.name, reader.header, reader.span_us, given.modified_us)

    def _read_collapsed(self, given: Input) -> Iterator[SampleRows]:
        from zombiescope.imports.collapsed import CollapsedImport

        reader = CollapsedImport(self._outcome)
        given.clock = FileClock(given.name, 0, 0, modified_wall_us=given.modified_us)
        yield from reader.read(given.open_stream(self._progress.advance))
        self._outcome.note("collapsed stacks carry no times: all are at one moment, that of the file or of --start")

    def _add(self, rows: SampleRows, offset_us: int, store: ImportWriter) -> None:
        rows.shift(offset_us)
        store.add(rows)
        outcome = self._outcome
        outcome.samples += len(rows)
        outcome.idle_samples += rows.idle_samples
        outcome.stacks += len(rows.stack_lengths)
        for event in rows.events:
            self._perf_events[event.name] += len(rows) if rows.event is None else 0
        if rows.event is not None:
            for number, count in Counter(rows.event).items():
                self._perf_events[rows.events[number].name] += count

    # --- side files --------------------------------------------------------------------------------------------------

    def _side_files(self, inputs: Sequence[Input], store: ImportWriter, boot_offset_us: int | None) -> None:
        live: int | None = None
        for given in sorted(inputs, key=lambda each: each.format != "cgroup-list"):
            entry = ImportedFile(given.name, formats.NAMES[given.format])
            self._files.append(entry)
            self._progress.begin(given.name)
            stream = given.open_stream(self._progress.advance)
            text = text_of(stream, _MOST_SIDE_BYTES)
            if stream.damage is not None:
                self._outcome.skipped[f"the rest of {given.name}: {stream.damage}"] += 1
            if given.format == "cgroup-list":
                live = proc_cgroups.live_directories(text)
                entry.rows = live
                continue
            table, rows = self._side_rows(given, text, boot_offset_us, live)
            entry.rows = len(rows)
            self._outcome.events += len(rows) if table is schema.EVENTS else 0
            store.add_table(table, rows)
        if live is not None and not any(given.format == "proc-cgroups" for given in inputs):
            self._outcome.note("the list of cgroup directories is used only together with a copy of /proc/cgroups")

    def _side_rows(
        self, given: Input, text: str, boot_offset_us: int | None, live: int | None
    ) -> tuple[schema.Table, Sequence[tuple[Any, ...]]]:
        from zombiescope.imports import docker_events, kernel_log, mpstat

        if given.format == "docker-events":
            return schema.CONTAINERS, docker_events.read(text, self._outcome)
        if given.format == "mpstat":
            rows = mpstat.read(text, given.modified_us, self._outcome)
            return schema.CORES, rows
        if given.format == "proc-cgroups":
            return schema.CENSUS, proc_cgroups.read(text, given.modified_us or 0, live, self._outcome)
        events = kernel_log.read(text, given.modified_us, boot_offset_us, self._outcome)
        return schema.EVENTS, [event.masked().row() for event in events]


def _if_damaged(stream: Stream) -> Iterable[object]:
    """Not empty, when asked after the stream was read, if it was not whole."""
    if stream.damage is not None:
        yield stream.damage
