"""User addresses to names without the process: by build id, for recordings that were made elsewhere or long ago.

A file is used only if it is the build that ran: its build id equals the recorded one, whatever its path. A recording
without build ids is believed to be of the files here only if the caller says that it is of this very machine.
Looked for in this order:

    1. the recorded path, here and below each directory in `search` (a copy of another machine's files)
    2. perf's cache layout below each directory in `search` (a `perf archive` unpacked), then ~/.debug
    3. symbols apart from their binary, in `debug_roots` (/usr/lib/debug)

A binary without .symtab is completed with its separate symbols (separate_debug.py), a Go program by its own table.

What no file explains is shown as module+0xoffset and counted by reason in `failures`. Names stay as the linker
knows them (demangle.py makes them readable). Everything kept is bounded. One thread uses one OfflineSymbols.
"""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from zombiescope._native import CallFrames, ElfError, SymbolTable, elf_build_id
from zombiescope.symbols import build_id_paths
from zombiescope.symbols.frame import Frame, FrameKind, printable
from zombiescope.symbols.maps import Mapping, recorded
from zombiescope.symbols.separate_debug import BinaryPlace, FunctionLookup, SeparateDebug
from zombiescope.symbols.store import SymbolStore
from zombiescope.symbols.vdso import Vdso

if TYPE_CHECKING:
    from zombiescope.symbols.inlined import Inlined, InlinedFunctions

MAX_TABLE_BYTES = 256 << 20
MAX_NAMES = 65536
MAX_SYMBOLS = 1 << 23
KEEP_NAMES_BYTES = 1 << 20

NO_BUILD_ID = "no build id recorded"
NOT_FOUND = "no file with this build id"
ANOTHER_BUILD = "another build"
NO_FUNCTION = "no function at this offset"
NO_FILE = "not backed by a file"

OWN_VDSO = Path("[vdso]")

Binary = tuple[bytes, bytes | None]


class _Loaded(NamedTuple):
    table: FunctionLookup
    path: Path


class OfflineSymbols:
    """Names of functions by path, build id and offset in the file."""

    def __init__(
        self,
        search: Sequence[str | Path] = (),
        debug_roots: Sequence[str | Path] = build_id_paths.DEBUG_ROOTS,
        *,
        trust_paths: bool = False,
        store: SymbolStore | None = None,
    ) -> None:
        self.failures: Counter[str] = Counter()
        self._search = [Path(directory) for directory in search]
        self._caches = [*self._search, build_id_paths.perf_cache()]
        self._debug_roots = list(debug_roots)
        self._store = SymbolStore() if store is None else store
        self._apart = SeparateDebug(self._store, self._debug_roots, caches=self._caches)
        self._inlined: InlinedFunctions | None = None
        self._vdso: Vdso | None = None
        self._trust_paths = trust_paths
        self._loaded: OrderedDict[Binary, _Loaded] = OrderedDict()
        self._failed: dict[Binary, str] = {}
        self._table_bytes = 0
        self._frames: OrderedDict[tuple[Binary, int], tuple[Frame, str | None]] = OrderedDict()
        self._described: dict[Binary, tuple[Mapping, str]] = {}
        self._functions: dict[tuple[Binary, int], Frame] = {}

    def resolve(self, path: bytes, build_id: bytes | None, file_offset: int) -> Frame:
        """The frame at an offset of a file: address - start of its mapping + the mapping's pgoff."""
        place = ((path, build_id or None), file_offset)
        known = self._frames.get(place)
        if known is None:
            known = self._frames[place] = self._resolve(*place)
            if len(self._frames) > MAX_NAMES:
                self._frames.popitem(last=False)
        frame, failure = known
        if failure is not None:
            self.failures[failure] += 1
        return frame

    def call_frames(self, path: bytes, build_id: bytes | None) -> CallFrames | None:
        """How the callers of this file's functions are found; None where it cannot be had, or does not say."""
        binary = (path, build_id or None)
        loaded = self._load(binary, recorded(0, 1, 0, path, build_id=build_id))
        if loaded is None:
            return None
        try:
            if loaded.path == OWN_VDSO and self._vdso is not None and self._vdso.image is not None:
                return CallFrames(self._vdso.image)
            fd = os.open(loaded.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                return CallFrames(fd, MAX_TABLE_BYTES // 4)
            finally:
                os.close(fd)
        except (ElfError, OSError):
            return None

    def inlined(self, path: bytes, build_id: bytes | None, file_offset: int) -> list[Inlined]:
        """The functions at an offset of a file, innermost first, as its DWARF knows them; none where there is none.

        InlineError when the package for it is missing.
        """
        # Loaded only where asked for: names, DWARF and the package for it cost a tenth of a second.
        from zombiescope.symbols.inlined import InlinedFunctions

        if self._inlined is None:
            self._inlined = InlinedFunctions(self._search, self._debug_roots, self._store)
        binary = (path, build_id or None)
        loaded = self._load(binary, recorded(0, 1, 0, path, build_id=build_id))
        address = loaded.table.vaddr(file_offset) if loaded is not None and 0 <= file_offset < 1 << 64 else None
        if loaded is None or address is None:
            return []
        return self._inlined.at(loaded.path, address)

    def _resolve(self, binary: Binary, offset: int) -> tuple[Frame, str | None]:
        mapping, module = self._describe(binary)
        if mapping.kind not in ("file", "memfd", "vdso"):
            return Frame("[jit]", module, "jit"), NO_FILE
        kind: FrameKind = "vdso" if mapping.kind == "vdso" else "user"
        loaded = self._load(binary, mapping)
        index = loaded.table.find_offset(offset) if loaded is not None and 0 <= offset < 1 << 64 else -1
        if loaded is None or index < 0:
            failure = self._failed.get(binary, NOT_FOUND) if loaded is None else NO_FUNCTION
            return Frame(f"{module}+0x{offset:x}", module, kind), failure
        frame = self._functions.get((binary, index))
        if frame is not None:
            return frame, None
        name, unread = self._name(loaded, index)
        if name is None:
            return Frame(f"{module}+0x{offset:x}", module, kind), unread
        frame = Frame(printable(name.decode("utf-8", "replace")), module, kind)
        if len(self._functions) >= MAX_NAMES:
            self._functions.clear()
        self._functions[binary, index] = frame
        return frame, None

    def _describe(self, binary: Binary) -> tuple[Mapping, str]:
        known = self._described.get(binary)
        if known is None:
            mapping = recorded(0, 1, 0, binary[0], build_id=binary[1])
            if len(self._described) >= MAX_NAMES:
                self._described.clear()
            known = self._described[binary] = mapping, printable(mapping.module)
        return known

    def _name(self, loaded: _Loaded, index: int) -> tuple[bytes | None, str | None]:
        if loaded.table.names_kept:
            return loaded.table.name(index), None
        try:
            fd = os.open(loaded.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as fault:
            return None, fault.strerror
        try:
            return loaded.table.name(index, fd), None
        finally:
            os.close(fd)

    def _load(self, binary: Binary, mapping: Mapping) -> _Loaded | None:
        loaded = self._loaded.get(binary)
        if loaded is not None:
            self._loaded.move_to_end(binary)
            return loaded
        if binary in self._failed:
            return None
        loaded = self._find(binary, mapping)
        if loaded is None:
            return None
        self._loaded[binary] = loaded
        self._table_bytes += loaded.table.nbytes
        while self._table_bytes > MAX_TABLE_BYTES and len(self._loaded) > 1:
            _, dropped = self._loaded.popitem(last=False)
            self._table_bytes -= dropped.table.nbytes
        return loaded

    def _find(self, binary: Binary, mapping: Mapping) -> _Loaded | None:
        build_id = binary[1]
        if mapping.path == "[vdso]" and (own := self._own_vdso(build_id)) is not None:
            return own
        why = NO_BUILD_ID if build_id is None and not self._trust_paths else NOT_FOUND
        for path in self._candidates(build_id, mapping):
            if not os.path.isfile(path):  # noqa: PTH113  Path.is_file raises where a folder may not be entered
                continue
            try:
                return _Loaded(self._read(path, build_id), path)
            except ElfError as fault:
                why = str(fault)
            except OSError:
                continue
        self._failed[binary] = why
        return None

    def _own_vdso(self, build_id: bytes | None) -> _Loaded | None:
        if self._vdso is None:
            self._vdso = Vdso()
        table = self._vdso.table
        if table is None or table.build_id is None:
            return None
        is_ours = self._trust_paths if build_id is None else build_id_paths.same_build(build_id, table.build_id)
        return _Loaded(table, OWN_VDSO) if is_ours else None

    def _candidates(self, build_id: bytes | None, mapping: Mapping) -> Iterator[Path]:
        if mapping.kind == "file" and (build_id is not None or self._trust_paths):
            yield Path(mapping.path)
            yield from (directory / mapping.path.lstrip("/") for directory in self._search)
        if build_id is not None:
            for name in ("elf", "vdso", "debug"):
                yield from build_id_paths.cached_by_perf(build_id, self._caches, name)
            yield from build_id_paths.separate(build_id, self._debug_roots)

    def _read(self, path: Path, build_id: bytes | None) -> FunctionLookup:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            if build_id is not None and not build_id_paths.same_build(build_id, elf_build_id(fd)):
                raise ElfError(ANOTHER_BUILD)
            program = SymbolTable(fd, MAX_SYMBOLS, KEEP_NAMES_BYTES)
            try:
                return self._apart.table(fd, program, BinaryPlace(str(path)), MAX_SYMBOLS, KEEP_NAMES_BYTES)
            except (ElfError, OSError):
                return program
        finally:
            os.close(fd)
