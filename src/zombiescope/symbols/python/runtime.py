"""The interpreter in a process: where its state is, and which version it is.

Of /proc/PID/maps the files are looked at that are called python3.N or libpython3.N.so: the program itself, or the
library. In the first of them that exports `_PyRuntime` that is the interpreter; where the symbol is hidden, the
writable memory of the file is searched for the cookie that 3.13 and later begin it with.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from zombiescope.symbols.python import offsets
from zombiescope.symbols.python.memory import Memory, StrangeError, UnsupportedError, word
from zombiescope.symbols.python.offsets import Offsets

MOST_FILES = 8
MOST_SEARCHED = 8 << 20
MOST_COOKIES = 32
"""Where an interpreter may be. A real one has the cookie once or twice; a file full of them is somebody's joke."""
_PIECE = 1 << 18
_LINE = re.compile(
    rb"^([0-9a-f]{1,16})-([0-9a-f]{1,16}) (\S{4}) ([0-9a-f]{1,16}) \S+ \d+ +"
    rb"(/[^\n]*?(?:lib)?python3(?:\.\d{1,2})?[a-z]{0,3}(?:\.so[.\d]*)?(?: \(deleted\))?)$",
    re.MULTILINE,
)
_NAME = re.compile(rb"(?:.*/)?(?:lib)?python3(?:\.\d{1,2})?[a-z]{0,3}(?:\.so[.\d]*)?(?: \(deleted\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Mapped:
    start: int
    end: int
    writable: bool
    offset: int
    path: bytes


@dataclass(frozen=True, slots=True)
class Runtime:
    address: int
    offsets: Offsets
    code_type: int | None
    """Where PyCode_Type is: what a frame runs must be one of it."""


def python_files(maps: bytes) -> list[Mapped]:
    """The mappings of /proc/PID/maps whose file is a Python, by its name."""
    found = []
    for match in _LINE.finditer(maps):
        start, end, mode, offset, path = match.groups()
        if _NAME.fullmatch(path):
            found.append(Mapped(int(start, 16), int(end, 16), mode[1:2] == b"w", int(offset, 16), path))
    return found


def find(memory: Memory, mapped: list[Mapped]) -> Runtime:
    """Raises UnsupportedError where there is none that can be read, OSError where memory cannot be."""
    why = "a Python before 3.11, or one whose symbols are hidden"
    for each in [one for one in mapped if one.offset == 0][:MOST_FILES]:
        try:
            elf = LoadedElf(memory, each.start)
            address = elf.symbol(b"_PyRuntime")
            version = elf.symbol(b"Py_Version")  # which 3.10 and earlier do not have
            if address is None or version is None:
                continue
            return Runtime(address, _offsets(memory, address, word(memory, version)), elf.symbol(b"PyCode_Type"))
        except StrangeError as error:
            why = f"a Python whose memory makes no sense ({error})"
    for address in islice(_cookies(memory, mapped), MOST_COOKIES):
        try:
            return Runtime(address, offsets.parse(memory.read(address, 8 * offsets.MOST_WORDS)), None)
        except StrangeError:
            continue
    raise UnsupportedError(why)


def _offsets(memory: Memory, runtime: int, version_hex: int) -> Offsets:
    minor = offsets.version(version_hex)
    if minor < offsets.FIRST_WITH_OFFSETS:
        return offsets.TABLES[minor]
    return offsets.parse(memory.read(runtime, 8 * offsets.MOST_WORDS))


def _cookies(memory: Memory, mapped: list[Mapped]) -> Iterator[int]:
    left = MOST_SEARCHED
    for each in mapped:
        at = each.start
        while each.writable and at < each.end and left > 0:
            size = min(_PIECE, each.end - at)
            piece = memory.read(at, size)
            found = piece.find(offsets.COOKIE)
            while found >= 0:
                yield at + found
                found = piece.find(offsets.COOKIE, found + 1)
            at += size
            left -= size


# --- its ELF file in memory -------------------------------------------------------------------------------------------
# Exported symbols of a loaded ELF file, by its own hash table in memory: no file is opened.
#
# A file may be gone, replaced, on a mount that hangs, or another one than its path says; what is loaded is what runs.
# Read: the program headers, the dynamic section and, for each name, a handful of words of DT_GNU_HASH or DT_HASH.
# Everything is bounded; what makes no sense is StrangeError.

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_PROGRAM = struct.Struct("<IIQQQQQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_LOAD, _DYNAMIC = 1, 2
_STRTAB, _SYMTAB, _HASH, _GNU_HASH = 5, 6, 4, 0x6FFFFEF5
_MOST_HEADERS = 64
_MOST_DYNAMIC = 512
_MOST_CHAIN = 4096
_READ_AT_ONCE = 64
_PAGE = 4096


class LoadedElf:
    """An ELF file whose first byte is at `start`. Raises StrangeError, OSError."""

    def __init__(self, memory: Memory, start: int) -> None:
        self._memory = memory
        header = _HEADER.unpack(memory.read(start, _HEADER.size))
        if header[0][:6] != b"\x7fELF\x02\x01" or header[9] != _PROGRAM.size or not 0 < header[10] <= _MOST_HEADERS:
            raise StrangeError("no 64-bit ELF header")
        programs = list(_PROGRAM.iter_unpack(memory.read(start + header[5], header[10] * _PROGRAM.size)))
        first = min((each[3] for each in programs if each[0] == _LOAD), default=0)
        self.bias = start - first // _PAGE * _PAGE
        self._dynamic = self._read_dynamic(programs)

    def _read_dynamic(self, programs: list[tuple[int, ...]]) -> dict[int, int]:
        for kind, _, _, address, _, _, size, _ in programs:
            if kind == _DYNAMIC:
                data = self._memory.read(self.bias + address, min(size, 16 * _MOST_DYNAMIC) // 16 * 16 or 16)
                found: dict[int, int] = {}
                for tag, value in struct.iter_unpack("<QQ", data):
                    if tag == 0:
                        break
                    found[tag] = value
                return found
        raise StrangeError("no dynamic section")

    def _place(self, tag: int) -> int | None:
        """glibc has added the bias to these already, musl has not."""
        value = self._dynamic.get(tag)
        return None if value is None else value + self.bias if value < self.bias else value

    def symbol(self, name: bytes) -> int | None:
        """The address of an exported symbol."""
        symbols, strings = self._place(_SYMTAB), self._place(_STRTAB)
        if symbols is None or strings is None:
            return None
        candidates = self._gnu_candidates(name) if _GNU_HASH in self._dynamic else self._candidates(name)
        for number in islice(candidates, _MOST_CHAIN):
            text, _, _, section, value, _ = _SYMBOL.unpack(self._memory.read(symbols + _SYMBOL.size * number, 24))
            if section and value and self._memory.read(strings + text, len(name) + 1) == name + b"\0":
                return int(self.bias + value)
        return None

    def _gnu_candidates(self, name: bytes) -> Iterator[int]:
        table = self._place(_GNU_HASH)
        assert table is not None
        buckets, first, bloom, _ = struct.unpack("<4I", self._memory.read(table, 16))
        if not buckets:
            return
        wanted = _gnu_hash(name)
        at = table + 16 + 8 * bloom
        number = self._word(at + 4 * (wanted % buckets))
        chain = at + 4 * buckets
        while number >= first and number:
            for value in struct.unpack(
                f"<{_READ_AT_ONCE}I", self._memory.read(chain + 4 * (number - first), 4 * _READ_AT_ONCE)
            ):
                if value | 1 == wanted | 1:
                    yield number
                if value & 1:
                    return
                number += 1

    def _candidates(self, name: bytes) -> Iterator[int]:
        table = self._place(_HASH)
        if table is None:
            return
        buckets, symbols = struct.unpack("<2I", self._memory.read(table, 8))
        number = self._word(table + 8 + 4 * (_old_hash(name) % buckets)) if buckets else 0
        while 0 < number < symbols:
            yield number
            number = self._word(table + 8 + 4 * (buckets + number))

    def _word(self, address: int) -> int:
        found: int = struct.unpack("<I", self._memory.read(address, 4))[0]
        return found


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def _old_hash(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
