"""perf.data: what `perf record` writes, as a file or through a pipe.

The caller finds the clock before the rows are written where the file can seek (`file_clock`); of a pipe it is known
only after the last record (`PerfDataImport.clock`), so its rows are held until then.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from zombiescope._native import UNWOUND, PerfStream
from zombiescope.imports import perf_header
from zombiescope.imports.clock import Clock
from zombiescope.imports.inputs import PERF_DATA
from zombiescope.imports.kernel_names import KernelNames
from zombiescope.imports.perf_header import HeaderError, PerfHeader
from zombiescope.imports.perf_session import HeaderRecords, PerfSession, symbols_for
from zombiescope.imports.rows import ImportReport, SampleRows

HEAD_BYTES = 16
"""is_perf_data needs no more than this of a file."""
CHUNK_BYTES = 1 << 20

_LBR_CALL_STACK = 1 << 11


def is_perf_data(head: bytes) -> bool:
    """Whether a file that starts so is perf.data, of either byte order, file or pipe."""
    return head.startswith(PERF_DATA)


def file_clock(file: BinaryIO, name: str) -> Clock | None:
    """The clock of a file that can seek, without decoding its samples; None: it cannot be read. Costs a look at the
    header, or, where perf left the times out of it, at the head of every record. Leaves the file at its beginning."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        header = perf_header.read(file, size)
        span_ns = header.sample_time_ns() or _scan_times(file, header)
    except (HeaderError, OSError, ValueError):
        return None
    finally:
        file.seek(0)
    return _clock(file, name, header, span_ns)


def _scan_times(file: BinaryIO, header: PerfHeader) -> tuple[int | None, int | None]:
    records = HeaderRecords(header, ImportReport())
    records.stream = PerfStream(records)
    records.begin()
    for _ in _data(file, header, records.stream, lambda _: None):
        records.stream.pump()
    return records.stream.span_ns()


def _clock(file: BinaryIO, name: str, header: PerfHeader, span_ns: tuple[int | None, int | None]) -> Clock:
    first_us, last_us = (None if at is None else at // 1000 for at in span_ns)
    offset_ns = header.wall_offset_ns()
    return Clock(
        name, first_us, last_us, None if offset_ns is None else offset_ns // 1000, _modified_us(file),
        header.text(perf_header.HOSTNAME),
    )  # fmt: skip


def _modified_us(file: BinaryIO) -> int:
    """When the last byte was written; of a pipe, now."""
    try:
        if file.seekable():
            return os.fstat(file.fileno()).st_mtime_ns // 1000
    except (OSError, ValueError, AttributeError):
        pass
    return time.time_ns() // 1000


def _data(file: BinaryIO, header: PerfHeader, stream: PerfStream, progress: Callable[[int], None]) -> Iterator[int]:
    """Feeds the stream with the section of records, piece by piece; gives how many bytes are in by now."""
    if not header.is_pipe:
        file.seek(header.data_offset)
    done = 0
    while header.data_bytes is None or done < header.data_bytes:
        room = CHUNK_BYTES if header.data_bytes is None else min(CHUNK_BYTES, header.data_bytes - done)
        if hasattr(file, "readinto"):
            got = stream.fill(file, room)
        else:
            piece = file.read(room)
            stream.feed(piece)
            got = len(piece)
        if not got:
            return
        done += got
        progress(got)
        yield done


class PerfDataImport:
    """Decodes any number of perf.data files with one set of symbols. What it cannot take stands in outcome.skipped; it
    raises nothing for what is in a file."""

    def __init__(
        self, *, kallsyms: Path | None, symbol_dirs: Sequence[Path], inline: bool, outcome: ImportReport
    ) -> None:
        self._outcome = outcome
        self._kernels = KernelNames(kallsyms, symbol_dirs)
        self._symbols = symbols_for(symbol_dirs)
        self._symbol_dirs = symbol_dirs
        self._inline = inline
        self.clock = Clock("")
        """Of the file read last, once its iterator has ended."""

    def read(
        self, file: BinaryIO, name: str, size: int | None, progress: Callable[[int], None]
    ) -> Iterator[SampleRows]:
        """Rows of at most writer.MAX_ROWS samples, `time_us` in the file's own clock. `file` stands at its beginning;
        `progress` is called with how many more bytes were read."""
        self.clock = Clock(name)
        aside: BinaryIO | None = None
        session: PerfSession | None = None
        try:
            header, aside = _open(file, size)
            session = PerfSession(
                header, self._outcome, self._kernels, self._symbols, inline=self._inline, symbol_dirs=self._symbol_dirs
            )
            session.begin()
            yield from self._decode(session, aside or file, progress)
            self.clock = _clock(file, name, header, session.decoder.span_ns())
        except (HeaderError, OSError) as error:
            why = str(error) if isinstance(error, HeaderError) else error.strerror or str(error)
            self._outcome.skipped[f"files that cannot be read: {why}"] += 1
        finally:
            if session is not None:
                session.close()
            if aside is not None:
                aside.close()

    def _decode(self, session: PerfSession, file: BinaryIO, progress: Callable[[int], None]) -> Iterator[SampleRows]:
        # Thousands of names are made and all of them are kept: looking for garbage among them finds none.
        collects = gc.isenabled()
        gc.disable()
        try:
            yield from self._decode_all(session, file, progress)
        finally:
            if collects:
                gc.enable()

    def _decode_all(
        self, session: PerfSession, file: BinaryIO, progress: Callable[[int], None]
    ) -> Iterator[SampleRows]:
        decoder = session.decoder
        done = 0
        for so_far in _data(file, session.header, decoder, progress):
            done = so_far
            while decoder.pump():
                yield session.take()
        cut = decoder.finish()
        while decoder.pump():
            yield session.take()
        if decoder.waiting_rows:
            yield session.take()
        self._account(session, done, cut)

    # --- what must be said -------------------------------------------------------------------------------------------

    def _account(self, session: PerfSession, done: int, cut: tuple[int, int]) -> None:
        header, decoder, skipped = session.header, session.decoder, self._outcome.skipped
        missing = max((header.data_bytes or 0) - done, cut[1])
        counts = {
            "bytes that are missing at the end: the file was cut off": missing,
            "records cut off at the end": int(cut[0] > 0),
            "damaged places": decoder.damaged,
            "bytes in damaged places": decoder.damaged_bytes,
            "records that contradict themselves": decoder.malformed,
            "samples of an event that the file does not describe": decoder.unknown_events,
            "records of a kind that is not known": decoder.unknown_records,
            "records that perf lost while it recorded": decoder.lost,
            "tasks and mappings that were not followed: too many": decoder.refused,
        }
        skipped.update({why: count for why, count in counts.items() if count})
        self._note(session)
        self._tell_facts(header)

    def _note(self, session: PerfSession) -> None:
        note, header, decoder = self._outcome.note, session.header, session.decoder
        if header.data_bytes is None and not header.is_pipe:
            note("perf did not finish the file (was it killed?): it was read to its end, without what perf writes last")
        if perf_header.DIR_FORMAT in header.features:
            note("the file is the head of a directory of perf record --threads: its samples are in the other files")
        if self._kernels.complaint:
            note(f"kernel functions: {self._kernels.complaint}")
        elif session.unnamed_kernel and not session.has_kernel:
            note(
                "kernel functions are shown as addresses: perf.data holds no names, and no kallsyms of that kernel is "
                "here (give --kallsyms with a copy of /proc/kallsyms of the recorded host, taken as root)"
            )
        if decoder.user_stacks:
            note(_unwound(decoder.unwound))
        if any(attr.branch_type & _LBR_CALL_STACK for attr, _ in session.attrs):
            note("stacks of --call-graph lbr were not unwound: only what the kernel walked is there")
        if decoder.timeless:
            note("some samples have no time (perf record without -T): they get the time of the record before them")
        if decoder.throttled:
            note("the kernel throttled the event while perf recorded: some stretches have fewer samples")

    def _tell_facts(self, header: PerfHeader) -> None:
        facts = {
            "hostname": perf_header.HOSTNAME,
            "kernel": perf_header.OS_RELEASE,
            "machine": perf_header.ARCH,
            "perf": perf_header.VERSION,
        }
        for key, feature in facts.items():
            text = header.text(feature)
            if text is not None:
                self._outcome.facts.setdefault(key, text)


def _open(file: BinaryIO, size: int | None) -> tuple[PerfHeader, BinaryIO | None]:
    """The header, and a copy of the file if it came through a pipe in the form of a file: that form begins with what
    stands at its end."""
    if _can_seek(file):
        return perf_header.read(file, size), None
    head = file.read(HEAD_BYTES)
    if not is_perf_data(head) or head[:8] != PERF_DATA[0] or head[8:] == HEAD_BYTES.to_bytes(8, "little"):
        import io

        return perf_header.read(io.BytesIO(head), len(head)), None
    import tempfile

    aside = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    aside.write(head)
    while piece := file.read(CHUNK_BYTES):
        aside.write(piece)
    written = aside.tell()
    aside.seek(0)
    return perf_header.read(aside, written), aside


def _can_seek(file: BinaryIO) -> bool:
    try:
        return file.seekable()
    except (AttributeError, ValueError):
        return False


def _unwound(ended: tuple[int, ...]) -> str:
    """How far copies of stacks led (perf record --call-graph dwarf)."""
    walks, whole = sum(ended), ended[0]
    if not walks:
        return "copies of stacks (--call-graph dwarf) were not unwound: none has registers of a 64-bit program of x86"
    others = [f"{count:,} {why}" for why, count in zip(UNWOUND[1:], ended[1:], strict=True) if count]
    return f"stacks were unwound from their copies: {whole:,} of {walks:,} to their outermost function" + (
        f"; {', '.join(others)}" if others else ""
    )
