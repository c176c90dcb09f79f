"""One perf.data file while it is decoded: what its header says, and the answers that the decoder asks for.

Files are named by the mappings in the recording; what is under a name is read here only if it is the same build, or,
where no build id was recorded, if the recording is of this very host and the file still has the inode that was mapped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from zombiescope._native import CallFrames, PerfData, PerfStream
from zombiescope.imports import perf_header
from zombiescope.imports.kernel_names import KernelNames, RecordedKernel, ShiftedKernel, module_name
from zombiescope.imports.perf_header import Attr, PerfHeader
from zombiescope.imports.rows import FrameRow, ImportReport, SampleRows, TaskRow
from zombiescope.imports.writer import MAX_ROWS
from zombiescope.store.sample_event import SampleEvent
from zombiescope.symbols.jit_files import FinishedCodeFile
from zombiescope.symbols.offline import OfflineSymbols

_RECORD_ATTR, _RECORD_BUILD_ID, _RECORD_EVENT_UPDATE, _RECORD_FEATURE = 64, 67, 78, 80
_UPDATE_NAME = 2
_SAMPLE_READ, _SAMPLE_PERIOD = 1 << 4, 1 << 8
_SLICE_BYTES = 4096
_PERF_MAPS = Path("/tmp")  # noqa: S108  where they are by agreement; FinishedCodeFile looks whose they are
MAX_CALL_FRAMES_BYTES = 512 << 20
MAX_INFLATED_BYTES = 256 << 20
"""One compressed record holds at most 64 kB; what makes more than this of it is no recording."""

MappedFile = tuple[bytes, bytes | None, int, int, int]


class HeaderRecords:
    """Takes what stands among the samples of a pipe and in the header of a file alike."""

    stream: PerfStream

    def __init__(self, header: PerfHeader, outcome: ImportReport) -> None:
        self.header = header
        self.outcome = outcome
        self.attrs: list[tuple[Attr, Sequence[int]]] = []
        self.build_ids: dict[bytes, bytes] = {}
        self.kernel_build_id: bytes | None = None
        self._names: dict[int, str] = {}
        self._inflater: Any = None

    def begin(self) -> None:
        """Gives the decoder what the header of a file says."""
        for attr, ids in self.header.attrs:
            self._add_event(attr, ids)
        for entry in self.header.build_ids():
            self._add_build_id(entry)

    def event_name(self, number: int) -> str:
        attr, ids = self.attrs[number]
        names = self.header.event_names() | self._names
        return next((names[one] for one in ids if names.get(one)), attr.name)

    @property
    def has_period(self) -> bool:
        return any(attr.sample_type & (_SAMPLE_PERIOD | _SAMPLE_READ) or attr.period for attr, _ in self.attrs)

    # --- asked by the decoder ----------------------------------------------------------------------------------------

    def header_record(self, kind: int, misc: int, record: bytes) -> None:
        if kind == _RECORD_ATTR:
            entry = perf_header.attr_record(record)
            if entry is not None and len(self.attrs) < perf_header.MAX_EVENTS:
                self._add_event(*entry)
        elif kind == _RECORD_FEATURE and len(record) >= 16:
            self.header.features.setdefault(int.from_bytes(record[8:16], "little"), record[16:])
        elif kind == _RECORD_EVENT_UPDATE and len(record) > 24 and record[8:16] == _UPDATE_NAME.to_bytes(8, "little"):
            name = record[24:].split(b"\0", 1)[0].decode("utf-8", "replace")
            self._names[int.from_bytes(record[16:24], "little")] = name
        elif kind == _RECORD_BUILD_ID:
            build_id = perf_header.build_id_record(record, misc)
            if build_id is not None:
                self._add_build_id(build_id)

    def decompress(self, data: bytes) -> bytes:
        import zstandard

        if self._inflater is None:
            self._inflater = zstandard.ZstdDecompressor().decompressobj()
        parts: list[bytes] = []
        inflated = 0
        try:
            for at in range(0, len(data), _SLICE_BYTES):
                parts.append(self._inflater.decompress(data[at : at + _SLICE_BYTES]))
                inflated += len(parts[-1])
                if inflated > MAX_INFLATED_BYTES:
                    raise zstandard.ZstdError("too large")
        except zstandard.ZstdError:
            self._inflater = None
            self.outcome.skipped["compressed records that cannot be unpacked"] += 1
            return b""
        return b"".join(parts)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _add_event(self, attr: Attr, ids: Sequence[int]) -> None:
        self.stream.add_event(
            attr.sample_type, attr.read_format, attr.sample_id_all, attr.branch_type, attr.regs_user, attr.regs_intr,
            attr.period, len(self.attrs), ids, attr.build_ids,
        )  # fmt: skip
        self.attrs.append((attr, ids))

    def _add_build_id(self, entry: perf_header.BuildId) -> None:
        if entry.path.startswith(b"[kernel.") or (entry.is_kernel and not entry.path.endswith((b"]", b".ko"))):
            self.kernel_build_id = entry.build_id
        else:
            self.build_ids[entry.path] = entry.build_id


class PerfSession(HeaderRecords):
    """Answers the decoder of one file."""

    def __init__(
        self,
        header: PerfHeader,
        outcome: ImportReport,
        kernels: KernelNames,
        symbols: dict[bool, OfflineSymbols],
        *,
        inline: bool = False,
        symbol_dirs: Sequence[Path] = (),
    ) -> None:
        super().__init__(header, outcome)
        self.decoder = self.stream = PerfData(self, MAX_ROWS)
        self.unnamed_kernel = 0
        """Distinct kernel addresses without a name."""
        self._kernels = kernels
        self._symbols = symbols
        self._inline = inline
        self._symbol_dirs = symbol_dirs
        self._perf_maps: dict[int, FinishedCodeFile | None] = {}
        self._call_frames_bytes = 0
        self._is_here = False
        self._kernel: ShiftedKernel | None = None
        self._recorded = RecordedKernel()
        self._modules: list[tuple[int, int, str]] = []
        self._same_inode: dict[MappedFile, bool] = {}

    def take(self) -> SampleRows:
        """The samples decoded since the last call."""
        (times, cpus, tasks, stacks, periods, events, lengths, flat, frames, who, idle, span, seen, numbers) = (
            self.decoder.take()
        )
        return SampleRows(
            times, cpus, tasks, stacks,
            periods if self.has_period else None,
            events if len(numbers) > 1 else None,
            lengths, flat,
            [FrameRow(*frame) for frame in frames],
            [TaskRow(*task) for task in who],
            [SampleEvent(self.event_name(number)) for number in numbers],
            idle, span, seen,
        )  # fmt: skip

    @property
    def has_kernel(self) -> bool:
        return self._kernel is not None

    # --- asked by the decoder ----------------------------------------------------------------------------------------

    def first_sample(self) -> None:
        recorded = self._recorded
        recorded.host = self.header.text(perf_header.HOSTNAME)
        recorded.release = self.header.text(perf_header.OS_RELEASE)
        recorded.build_id = recorded.build_id or self.kernel_build_id
        kernel = self._kernel = self._kernels.find(recorded)
        if kernel is not None:
            self.decoder.use_kernel(kernel.symbols, kernel.shift, *kernel.span)
        here = os.uname()
        same_host = (recorded.host, recorded.release) == (here.nodename, here.release)
        self._is_here = same_host and self._kernels.is_here(recorded)

    def kernel_map(self, start: int, length: int, pgoff: int, path: bytes, build_id: bytes | None) -> None:
        name = os.fsdecode(path)
        if name.startswith("[kernel"):
            self._recorded.text_start, self._recorded.text_bytes = start, length
            self._recorded.reference, self._recorded.reference_at = name.partition("]")[2], pgoff
            self._recorded.build_id = build_id or self._recorded.build_id
        elif not name.startswith("[guest"):
            self._modules.append((start, start + length, module_name(name)))

    def kernel_frame(self, address: int) -> FrameRow:
        """Asked for what is not a function of the kernel's own text."""
        recorded = next((name for start, end, name in self._modules if start <= address < end), None)
        kernel = self._kernel
        found = kernel.symbols.lookup(address) if kernel is not None and kernel.shift == 0 else None
        if found is not None and recorded in (None, found[1]):
            name, module = found
            return FrameRow(name, module, "kernel" if not module else "bpf" if module == "bpf" else "module")
        self.unnamed_kernel += 1
        return FrameRow(f"0x{address:x}", recorded or "", "module" if recorded else "kernel")

    def user_frames(self, file: MappedFile, offset: int) -> list[FrameRow]:
        path, build_id, _, _, _ = file
        build_id = build_id or self.build_ids.get(path)
        symbols = self._symbols[build_id is None and self._is_here and self._has_same_inode(file)]
        frame = FrameRow(*symbols.resolve(path, build_id, offset))
        if not self._inline or frame.kind != "user":
            return [frame]
        from zombiescope.symbols.inlined import InlineError

        try:
            inlined = symbols.inlined(path, build_id, offset)
        except InlineError as error:
            self._inline = False
            self.outcome.note(f"inlined functions are not shown: {error}")
            return [frame]
        # The outermost is the function that the symbol table knows, under the name it has there.
        return [*(FrameRow(one.name, frame.module, frame.kind) for one in inlined[:-1]), frame]

    def call_frames(self, file: MappedFile) -> CallFrames | None:
        """How stacks go on in this file, for recordings with copies of stacks."""
        build_id = file[1] or self.build_ids.get(file[0])
        symbols = self._symbols[build_id is None and self._is_here and self._has_same_inode(file)]
        found = symbols.call_frames(file[0], build_id)
        if found is not None:
            self._call_frames_bytes += found.nbytes
        return found if self._call_frames_bytes <= MAX_CALL_FRAMES_BYTES else None

    def made_code(self, pid: int, address: int) -> str | None:
        """The name of code that a process made, if the process wrote it down."""
        if pid not in self._perf_maps:
            folders = [*self._symbol_dirs, *([_PERF_MAPS] if self._is_here else [])]
            self._perf_maps[pid] = _perf_map(folders, pid)
        map_ = self._perf_maps[pid]
        name = None if map_ is None else map_.name(address)
        return None if name is None else name.decode("utf-8", "backslashreplace")

    def close(self) -> None:
        for map_ in self._perf_maps.values():
            if map_ is not None:
                map_.close()
        self._perf_maps.clear()

    def _has_same_inode(self, file: MappedFile) -> bool:
        """Whether the file of that name is still the one that was mapped; MMAP records of old kernels do not say."""
        known = self._same_inode.get(file)
        if known is None:
            path, _, _, _, inode = file
            try:
                known = not inode or Path(os.fsdecode(path)).stat().st_ino == inode
            except (OSError, ValueError):
                known = False
            self._same_inode[file] = known
        return known


def _perf_map(folders: Sequence[Path], pid: int) -> FinishedCodeFile | None:
    for folder in folders:
        try:
            return FinishedCodeFile(folder / f"perf-{pid}.map")
        except OSError:
            continue
    return None


def symbols_for(directories: Sequence[Path]) -> dict[bool, OfflineSymbols]:
    """Whether the recorded path may be believed -> the names."""
    return {trust: OfflineSymbols(search=directories, trust_paths=trust) for trust in (False, True)}
