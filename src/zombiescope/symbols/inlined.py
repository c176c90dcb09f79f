"""Functions that the compiler inlined, by DWARF: for profiles that are read later, where somebody asks for it.

DWARF is read by the package `symbolic` (the extra `inline`), which turns it once into a table by address, a symcache;
that is kept in the store. The recorder never does this: a table takes seconds to make for a large binary, and as much
memory as the DWARF.

An address here is the one that the linker gave; SymbolTable.vaddr() makes it of an offset in the file.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from zombiescope._native import ElfError, elf_build_id, elf_load_address
from zombiescope.base.errors import UserError
from zombiescope.base.packages import install
from zombiescope.symbols import build_id_paths
from zombiescope.symbols.demangle import demangle
from zombiescope.symbols.elf import FileIdentity
from zombiescope.symbols.store import SymbolStore, content_bytes

if TYPE_CHECKING:
    from types import ModuleType

MAX_DWARF_BYTES = 2 << 30
MAX_SYMCACHE_BYTES = 256 << 20
MAX_OPEN = 16
MAX_DEPTH = 64


class InlineError(UserError, RuntimeError):
    """Inlined functions cannot be shown at all."""


class Inlined(NamedTuple):
    """One function at an address; file and line are where it goes on inside."""

    name: str
    file: str | None
    line: int | None


class _Dwarf(NamedTuple):
    symcache: Any
    load_address: int


class InlinedFunctions:
    """Inlined functions of binaries; one thread uses one. InlineError when the package is missing."""

    def __init__(
        self,
        search: Sequence[str | Path] = (),
        debug_roots: Sequence[str | Path] = build_id_paths.DEBUG_ROOTS,
        store: SymbolStore | None = None,
    ) -> None:
        self._symbolic = _package()
        self._caches = [*map(Path, search), build_id_paths.perf_cache()]
        self._debug_roots = debug_roots
        self._store = SymbolStore() if store is None else store
        self._known: OrderedDict[tuple[bytes, FileIdentity | None], _Dwarf | None] = OrderedDict()

    def at(self, binary: Path | bytes, address: int) -> list[Inlined]:
        """The functions at an address, innermost first; the last is the one that the others were inlined into.

        `binary` is a file, or a build id. Nothing when no DWARF is at hand or it does not know the address.
        """
        build_id = binary if isinstance(binary, bytes) else _build_id(binary)
        if not build_id:
            return []
        known = (build_id, None if isinstance(binary, bytes) else FileIdentity.of(binary.stat()))
        if known not in self._known:
            self._known[known] = self._load(build_id, binary if isinstance(binary, Path) else None)
            if len(self._known) > MAX_OPEN:
                self._known.popitem(last=False)
        self._known.move_to_end(known)
        dwarf = self._known[known]
        if dwarf is None or address < dwarf.load_address:
            return []
        found = dwarf.symcache.lookup(address - dwarf.load_address)[:MAX_DEPTH]
        return [Inlined(demangle(one.symbol), one.full_path or None, one.line or None) for one in found]

    def _load(self, build_id: bytes, binary: Path | None) -> _Dwarf | None:
        for path in self._candidates(build_id, binary):
            # Path.is_file raises where a folder may not be entered.
            if not os.path.isfile(path) or path.stat().st_size > MAX_DWARF_BYTES:  # noqa: PTH113
                continue
            try:
                if build_id_paths.same_build(build_id, _build_id(path)) and (dwarf := self._read(path, build_id)):
                    return dwarf
            except (OSError, ElfError):
                continue
        return None

    def _candidates(self, build_id: bytes, binary: Path | None) -> Iterator[Path]:
        if binary is not None:
            yield binary
        yield from build_id_paths.separate(build_id, self._debug_roots)
        yield from build_id_paths.cached_by_perf(build_id, self._caches, "debug")
        yield from build_id_paths.cached_by_perf(build_id, self._caches, "elf")

    def _read(self, path: Path, build_id: bytes) -> _Dwarf | None:
        symbolic = self._symbolic
        # A symcache is of one version of the package; another one makes its own.
        kind = f"symcache{symbolic.SYMCACHE_LATEST_VERSION}"
        base = _load_address(path)
        key = _key(build_id, path)
        fd = self._store.open(kind, key)
        if fd is not None:
            try:
                content = os.pread(fd, min(content_bytes(fd), MAX_SYMCACHE_BYTES), 0)
            finally:
                os.close(fd)
            return _Dwarf(symbolic.SymCache.from_bytes(content), base)
        try:
            objects = [
                one for one in symbolic.Archive.open(os.fsencode(path)).iter_objects() if "debug" in one.features
            ]
            if not objects:
                return None
            made = objects[0].make_symcache()
        except symbolic.SymbolicError:
            return None
        content = made.open_stream().read()
        if len(content) <= MAX_SYMCACHE_BYTES:
            kept = self._store.make(kind, key, lambda out: _write(out, content))
            if kept is not None:
                os.close(kept)
        return _Dwarf(made, base)


def inlined(path_or_build_id: Path | bytes, address: int) -> list[Inlined]:
    """InlinedFunctions().at() for one address."""
    return InlinedFunctions().at(path_or_build_id, address)


def _package() -> ModuleType:
    try:
        import symbolic
    except ImportError:
        raise InlineError("the package symbolic is not installed", f"{install('inline')}") from None
    else:
        return symbolic


def _key(build_id: bytes, path: Path) -> bytes:
    """Two files may carry one build id: an entry is of the file that it was made of."""
    file = repr((build_id, *FileIdentity.of(path.stat()))).encode()
    return hashlib.blake2b(file, digest_size=20).digest()


def _build_id(path: Path) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return elf_build_id(fd)
    except ElfError:
        return None
    finally:
        os.close(fd)


def _load_address(path: Path) -> int:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return elf_load_address(fd)
    finally:
        os.close(fd)


def _write(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
