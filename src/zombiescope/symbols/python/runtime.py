"""The interpreter in a process: where its state is, and which version it is.

Of /proc/PID/maps the files are looked at that are called python3.N or libpython3.N.so: the program itself, or the
library. In the first of them that exports `_PyRuntime` that is the interpreter; where the symbol is hidden, the
writable memory of the file is searched for the cookie that 3.13 and later begin it with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from zombiescope.symbols.python import offsets
from zombiescope.symbols.python.elf_memory import LoadedElf
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
