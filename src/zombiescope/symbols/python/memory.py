"""What the walkers ask of a process's memory; kernel/process_memory.py is the real one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

_WORD = struct.Struct("<Q")


class Memory(Protocol):
    def read(self, address: int, size: int) -> bytes: ...

    def gather(self, places: Sequence[tuple[int, int]]) -> bytes: ...


class StrangeError(Exception):
    """Memory that cannot be what it should be: torn, forged, or of another build."""


class UnsupportedError(Exception):
    """An interpreter that is left alone, and why."""


def word(memory: Memory, address: int) -> int:
    found: int = _WORD.unpack(memory.read(address, 8))[0]
    return found
