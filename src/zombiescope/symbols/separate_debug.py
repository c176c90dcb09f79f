"""Symbols that are not in the binary's own tables: a separate debug file, or .gnu_debugdata.

Asked for only where a binary has no .symtab: one with less in it is never looked up elsewhere. Order:

    1. <debug root>/.build-id/ab/cdef....debug, then by .gnu_debuglink; in our root, and in the process's own
    2. .gnu_debugdata, unpacked once into the store; where there is none, into memory, if it is small

A separate file is used only if its build id is the binary's, and if it is root's, ours or of the binary's own user: the
places where it is looked for, beside the binary above all, may be anybody's. One that was found is opened again for
each name that its table does not hold, and compared again.

What is unpacked is stored under a digest of what it was unpacked from. The build id would not do: two files may carry
the same, and whoever came first would give names to the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from zombiescope._native import ElfError, SymbolTable, elf_build_id
from zombiescope.symbols import build_id_paths
from zombiescope.symbols.elf import open_elf
from zombiescope.symbols.store import SymbolStore

# --- .gnu_debugdata ---------------------------------------------------------------------------------------------------
# .gnu_debugdata: the symbols that stripping would have removed, packed into the binary itself (Fedora and its kin).
#
# The section is an xz stream of an ELF file that holds a .symtab and nothing else of use. It is unpacked in pieces
# into a file, never into memory as a whole: the recorder has little of that. The stream is not believed: the length of
# what comes out, its ratio to what went in and the memory that unpacking takes are bounded.

MAX_UNPACKED_BYTES = 64 << 20
MAX_RATIO = 200  # real tables come to 3 to 8; only made ones to thousands
MAX_MEMORY_BYTES = 80 << 20  # xz -9 needs 65 MB; its default, which everybody uses, 9 MB
PIECE_BYTES = 1 << 16


def unpack_debugdata(
    fd: int,
    section: tuple[int, int],
    out_fd: int,
    *,
    max_bytes: int = MAX_UNPACKED_BYTES,
    max_memory_bytes: int = MAX_MEMORY_BYTES,
) -> int:
    """Write what the section (offset, size) holds to out_fd; its length. ElfError when it is damaged or too much."""
    import lzma

    stream = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=max_memory_bytes)
    at, left = section
    most = min(max_bytes, MAX_RATIO * left + PIECE_BYTES)
    total = 0
    try:
        while not stream.eof:
            packed = b""
            if stream.needs_input:
                packed = os.pread(fd, min(PIECE_BYTES, left), at)
                if not packed:
                    raise ElfError("its .gnu_debugdata ends early")
                at += len(packed)
                left -= len(packed)
            piece = stream.decompress(packed, PIECE_BYTES)
            total += len(piece)
            if total > most:
                raise ElfError("its .gnu_debugdata unpacks to more than can be real")
            _write(out_fd, piece)
    except lzma.LZMAError:
        raise ElfError("its .gnu_debugdata is damaged") from None
    return total


def _write(fd: int, piece: bytes) -> None:
    while piece:
        piece = piece[os.write(fd, piece) :]


# --- separate debug ---------------------------------------------------------------------------------------------------

MAX_LINK_BYTES = 4096
MAX_IN_MEMORY_BYTES = 4 << 20
UNPACKED = "debugdata"
DIGEST_BYTES = 20

Reopen = Callable[[], int | None]


class BinaryPlace(NamedTuple):
    """Where a binary was found: its path below a root, which for a process in a container is not ours."""

    path: str
    root: str = "/"
    ours: bool = True
    """Whether that root is the machine's."""


class FunctionLookup(Protocol):
    """Functions of one binary, by their offset in its file."""

    @property
    def nbytes(self) -> int: ...
    @property
    def names_kept(self) -> bool: ...
    def vaddr(self, offset: int) -> int | None: ...
    def find_offset(self, offset: int) -> int: ...
    def name(self, index: int, fd: int = ...) -> bytes | None: ...
    def __len__(self) -> int: ...


class LayeredTable:
    """A binary's own symbols over those kept apart from it; the function that starts last before an address has it."""

    __slots__ = ("_apart", "_program", "_reopen")

    def __init__(self, program: SymbolTable, apart: SymbolTable, reopen: Reopen) -> None:
        self._program = program
        self._apart = apart
        self._reopen = reopen

    def __len__(self) -> int:
        return len(self._program) + len(self._apart)

    @property
    def nbytes(self) -> int:
        return self._program.nbytes + self._apart.nbytes

    @property
    def names_kept(self) -> bool:
        return self._program.names_kept

    def vaddr(self, offset: int) -> int | None:
        """The address the linker gave to the code at this offset of the binary."""
        return self._program.vaddr(offset)

    def find_offset(self, offset: int) -> int:
        """The number of the innermost function there, for name(); -1 when none is."""
        own, other = self._program.find_offset(offset), self._apart.find_offset(offset)
        if other < 0 or (own >= 0 and self._program.start(own) >= self._apart.start(other)):
            return own
        return len(self._program) + other

    def name(self, index: int, fd: int = -1) -> bytes | None:
        """The name of a function; `fd` is a descriptor of the binary."""
        if index < len(self._program):
            return self._program.name(index, fd)
        index -= len(self._program)
        if self._apart.names_kept:
            return self._apart.name(index)
        other = self._reopen()
        if other is None:
            return None
        try:
            return self._apart.name(index, other)
        finally:
            os.close(other)


class SeparateDebug:
    """Finds what is kept apart from binaries."""

    def __init__(
        self,
        store: SymbolStore | None = None,
        debug_roots: Sequence[str | Path] = build_id_paths.DEBUG_ROOTS,
        *,
        caches: Sequence[Path] = (),
        max_unpacked_bytes: int = MAX_UNPACKED_BYTES,
        max_memory_bytes: int = MAX_MEMORY_BYTES,
    ) -> None:
        self._store = store
        self._debug_roots = debug_roots
        self._caches = caches
        self._max_unpacked_bytes = max_unpacked_bytes
        self._max_memory_bytes = max_memory_bytes

    def table(
        self, fd: int, program: SymbolTable, place: BinaryPlace | None, max_symbols: int, keep_names_bytes: int
    ) -> FunctionLookup:
        """The program's table with what is known elsewhere laid under it; ElfError when that is damaged."""
        if program.has_symtab or program.go_functions or program.build_id is None:
            return program
        for candidate in self._separate(fd, program, place):
            reopen = _reopener(candidate, program.build_id, os.fstat(fd).st_uid)
            other = reopen()
            if other is not None:
                try:
                    apart = SymbolTable(other, max_symbols, keep_names_bytes, program)
                    return LayeredTable(program, apart, reopen)
                finally:
                    os.close(other)
        if program.debugdata is not None:
            return self._unpacked(fd, program, max_symbols, keep_names_bytes)
        return program

    def _separate(self, fd: int, program: SymbolTable, place: BinaryPlace | None) -> Iterator[BinaryPlace]:
        assert program.build_id is not None
        paths = list(build_id_paths.separate(program.build_id, self._debug_roots))
        link = _debuglink(fd, program)
        if link and place is not None:
            paths += build_id_paths.linked(place.path, link, self._debug_roots)
        roots = ["/"] if place is None or place.root == "/" else ["/", place.root]
        yield from (BinaryPlace(str(path), root) for root in roots for path in paths)
        for path in build_id_paths.cached_by_perf(program.build_id, self._caches, "debug"):
            yield BinaryPlace(str(path))

    def _unpacked(self, fd: int, program: SymbolTable, max_symbols: int, keep_names_bytes: int) -> FunctionLookup:
        store = self._store
        key = None if store is None else _digest(fd, program, self._max_unpacked_bytes)
        if store is not None and key is not None:
            other = store.open(UNPACKED, key)
            if other is None:
                other = store.make(UNPACKED, key, lambda out: self._unpack(fd, program, out, self._max_unpacked_bytes))
            if other is not None:
                try:
                    apart = SymbolTable(other, max_symbols, keep_names_bytes, program)
                    return LayeredTable(program, apart, lambda: store.open(UNPACKED, key))
                finally:
                    os.close(other)
        return self._unpacked_in_memory(fd, program, max_symbols)

    def _unpacked_in_memory(self, fd: int, program: SymbolTable, max_symbols: int) -> FunctionLookup:
        most = min(MAX_IN_MEMORY_BYTES, self._max_unpacked_bytes)
        other = os.memfd_create("debugdata", os.MFD_CLOEXEC)
        try:
            self._unpack(fd, program, other, most)
            return LayeredTable(program, SymbolTable(other, max_symbols, most, program), lambda: None)
        finally:
            os.close(other)

    def _unpack(self, fd: int, program: SymbolTable, out: int, most: int) -> None:
        assert program.debugdata is not None
        unpack_debugdata(fd, program.debugdata, out, max_bytes=most, max_memory_bytes=self._max_memory_bytes)


def _digest(fd: int, program: SymbolTable, most: int) -> bytes:
    """Of what is packed: whoever has the same bytes may have what was made of them. ElfError when they are too many."""
    import hashlib

    assert program.debugdata is not None
    offset, size = program.debugdata
    if size > most:
        raise ElfError("its .gnu_debugdata unpacks to more than can be real")
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for start in range(0, size, PIECE_BYTES):
        digest.update(os.pread(fd, min(PIECE_BYTES, size - start), offset + start))
    return digest.digest()


def _debuglink(fd: int, program: SymbolTable) -> str | None:
    if program.debuglink is None:
        return None
    offset, size = program.debuglink
    return os.fsdecode(os.pread(fd, min(size, MAX_LINK_BYTES), offset).split(b"\0", 1)[0])


def _reopener(place: BinaryPlace, build_id: bytes, owner: int) -> Reopen:
    def reopen() -> int | None:
        try:
            root_fd = os.open(place.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fd = open_elf(place.path, root_fd)
        except (OSError, ElfError):
            return None
        finally:
            os.close(root_fd)
        try:
            if _believable(os.fstat(fd), owner) and elf_build_id(fd) == build_id:
                return fd
        except ElfError:
            pass
        os.close(fd)
        return None

    return reopen


def _believable(status: os.stat_result, owner: int) -> bool:
    """Whether a file may give names to a binary of `owner`."""
    return status.st_uid in (0, os.geteuid(), owner) and not status.st_mode & 0o002
