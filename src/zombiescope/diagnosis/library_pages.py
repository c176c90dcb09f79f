"""Pages of programs and libraries that a process has read once and does not need now: unmapped, so that they are not
resident. The page cache keeps them for as long as there is room, and whoever touches one has it back without a read.

For a process that loads much and then waits (standby.py). A fork of it loses nothing: the kernel does not copy
the tables of pages that a file has, so its children fault them in by themselves either way.

/proc/self/smaps says which mappings hold nothing but what their file holds ("Anonymous: 0"). Only those are given back,
and only those that cannot be written to: a page that was relocated is no page of the file any more. Without smaps, or
where the kernel refuses, nothing is given back, and nothing is lost.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import suppress

_DONTNEED = 4
_MAPPING = re.compile(rb"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+) *(.*)")
_READ_ONLY = (b"r--p", b"r-xp")
_MOST_SMAPS = 16 << 20


def give_back() -> int:
    """How many bytes were resident and are not any more."""
    try:
        with open("/proc/self/smaps", "rb") as file:
            text = file.read(_MOST_SMAPS)
    except OSError:
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return sum(
        resident for start, end, resident in clean(text) if resident and advise(start, end - start, _DONTNEED) == 0
    )


def clean(smaps: bytes) -> Iterator[tuple[int, int, int]]:
    """(start, end, resident bytes) of mappings of files that hold nothing of our own."""
    found: tuple[int, int] | None = None
    resident = 0
    for line in smaps.splitlines():
        name, _, rest = line.partition(b":")
        if name == b"Rss":
            resident = _kilobytes(rest)
        elif name == b"Anonymous":
            if found is not None and _kilobytes(rest) == 0:
                yield *found, resident
            found = None
        elif (match := _MAPPING.fullmatch(line)) is not None:
            of_a_file = match[3] in _READ_ONLY and match[4] != b"0" and match[5].startswith(b"/")
            found = (int(match[1], 16), int(match[2], 16)) if of_a_file else None


def _kilobytes(rest: bytes) -> int:
    """-1 for what is no number: then it is not 0."""
    with suppress(ValueError, IndexError):
        return int(rest.split()[0]) * 1024
    return -1
