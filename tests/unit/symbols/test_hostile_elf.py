"""Files whose headers ask for hours of reading: what is read of a file is bounded by its size, whatever it says."""

from __future__ import annotations

import contextlib
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope._native import ElfError, SymbolTable, elf_build_id

MB = 1 << 20
EHDR = "<4sBBBBQHHIQQQIHHHHHH"
PHDR = "<IIQQQQQQ"
SHDR = "<IIQQQQIIQQ"
LOAD, NOTE_SEGMENT, EXECUTE, WRITE, READ = 1, 4, 1, 2, 4
RELA, NOTE, PROGBITS = 4, 7, 1
GO_MAGIC = struct.pack("<IHBB", 0xFFFFFFF1, 0, 1, 8)


def header(segments: int, sections: int = 0, sections_at: int = 0) -> bytes:
    ident = (b"\x7fELF", 2, 1, 1, 0, 0)
    return struct.pack(EHDR, *ident, 3, 62, 1, 0x1000, 64, sections_at, 0, 64, 56, segments, 64, sections, 0)


def segment(flags: int, offset: int, vaddr: int, size: int, kind: int = LOAD) -> bytes:
    return struct.pack(PHDR, kind, flags, offset, vaddr, vaddr, size, size, 4096)


def section(kind: int, offset: int, size: int, entry: int = 0) -> bytes:
    return struct.pack(SHDR, 0, kind, 0, 0, offset, size, 0, 0, 1, entry)


def code() -> bytes:
    return segment(READ | EXECUTE, 0, 0x400000, 4096)


def fake_go_headers(size: int) -> bytes:
    """Every eighth byte looks like the beginning of Go's table; all of it is mapped sixteen times."""
    loads = [segment(READ, 4096, 0x10000000 * number, size) for number in range(1, 17)]
    head = header(1 + len(loads)) + code() + b"".join(loads)
    return head.ljust(4096, b"\0") + GO_MAGIC * (size // 8)


def fake_moduledata(size: int) -> bytes:
    """One good header of a table of functions, and data in which every word points at it."""
    table_at, where = 4096, 0x20000000
    words = [1, 0, 0, 0, 0, 0, 0, 8 * 9]
    table = GO_MAGIC + struct.pack("<8Q", *words) + struct.pack("<4I", 0x10, 0, 0x20, 0)
    loads = [segment(READ, table_at, where, 4096)]
    loads += [segment(READ | WRITE, 8192, 0x30000000 * number, size) for number in range(1, 16)]
    head = header(1 + len(loads)) + code() + b"".join(loads)
    return (head.ljust(table_at, b"\0") + table).ljust(8192, b"\0") + struct.pack("<Q", where) * (size // 8)


def many_notes(size: int) -> bytes:
    """Sixty thousand sections of notes, each of them all of the file."""
    count = 60_000
    at = 4096
    table = section(NOTE, at, 65_000) * count
    return (header(1, count, at) + code()).ljust(at, b"\0") + table.ljust(size, b"\0")


def relocations_again(size: int) -> bytes:
    """Go's code starts nowhere, so that all relocations are looked at, and looked at again."""
    at = 8192
    table = GO_MAGIC + struct.pack("<8Q", 1, 0, 0, 0, 0, 0, 0, 72) + struct.pack("<4I", 0x10, 0, 0x20, 0)
    body = struct.pack("<QQq", 0x30000000, 8, 0x20000000) * (size // 24)
    sections_at = at + len(body)
    loads = segment(READ, 4096, 0x20000000, 4096) + segment(READ | WRITE, at, 0x30000000, len(body))
    head = (header(3, 5, sections_at) + code() + loads).ljust(4096, b"\0") + table
    return head.ljust(at, b"\0") + body + section(0, 0, 0) + section(RELA, at, len(body), 24) * 4


HOSTILE = {
    "headers of Go": fake_go_headers,
    "moduledata of Go": fake_moduledata,
    "notes": many_notes,
    "relocations": relocations_again,
}


class Counted:
    """The system calls and bytes of reading, as the kernel counts them for this thread."""

    def __enter__(self) -> Counted:
        self._before = self._io()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._io()
        self.calls, self.bytes = (after[key] - self._before[key] for key in ("syscr", "rchar"))

    def _io(self) -> dict[str, int]:
        with open("/proc/thread-self/io") as file:
            return {name: int(value) for name, value in (line.split(": ") for line in file)}


@pytest.fixture(params=sorted(HOSTILE))
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[int, int]]:
    path = tmp_path / "hostile"
    path.write_bytes(HOSTILE[request.param](16 * MB))
    fd = os.open(path, os.O_RDONLY)
    yield fd, path.stat().st_size
    os.close(fd)


def test_reading_is_bounded_by_the_size_of_the_file(hostile: tuple[int, int]) -> None:
    fd, size = hostile
    with Counted() as counted, contextlib.suppress(ElfError):
        SymbolTable(fd)
    assert counted.bytes <= 4 * size + 2 * MB
    assert counted.calls <= (4 * size + MB) // 4096 + 50


def test_the_build_id_of_such_a_file_is_as_cheap(hostile: tuple[int, int]) -> None:
    fd, size = hostile
    with Counted() as counted, contextlib.suppress(ElfError):
        elf_build_id(fd)
    assert counted.bytes <= 4 * size + 2 * MB


def test_looking_takes_as_long_as_the_file_is_large(tmp_path: Path) -> None:
    """A file that is full of candidates against one that has none: the same order of time, in one run."""
    times = {}
    for name, body in (("plain", bytes(8)), ("hostile", GO_MAGIC)):
        data = fake_go_headers(16 * MB).replace(GO_MAGIC, body)
        path = tmp_path / name
        path.write_bytes(data)
        fd = os.open(path, os.O_RDONLY)
        begun = time.thread_time()
        with contextlib.suppress(ElfError):
            SymbolTable(fd)
        times[name] = time.thread_time() - begun
        os.close(fd)
    assert times["hostile"] < 10 * times["plain"] + 0.05


def test_names_are_read_for_ever(program: Path) -> None:
    """The bound is on making a table; names come one by one afterwards, as often as somebody asks."""
    fd = os.open(program, os.O_RDONLY)
    try:
        table = SymbolTable(fd, keep_names_bytes=0)
        start, _ = table.starts()[0]
        index = table.find(start)
        assert {table.name(index, fd) for _ in range(2_000)} == {table.name(index, fd)}
    finally:
        os.close(fd)
