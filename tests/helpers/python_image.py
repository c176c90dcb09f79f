"""A stand-in for the memory of a process that runs Python: built by hand, so that it can be forged in every way.

Layout of 3.12, whose offsets are a table. Real interpreters are read by tests/unit/recorder/test_python_target.py.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from zombiescope.symbols.python.offsets import TABLES
from zombiescope.symbols.python.runtime import Runtime
from zombiescope.symbols.python.walk import Interpreter

OFFSETS = TABLES[12]
RUNTIME, INTERPRETER, CODE_TYPE = 0x10_0000, 0x20_0000, 0x30_0000
THREADS, CHUNKS, CODES, TEXTS, C_FRAMES = 0x40_0000, 0x50_0000, 0x60_0000, 0x70_0000, 0x80_0000
CHUNK_BYTES = 16 << 10
FRAME_BYTES = 128
SHIM = 3


class FakeMemory:
    """Regions of bytes; what is in none of them is not mapped."""

    def __init__(self) -> None:
        self.regions: dict[int, bytearray] = {}
        self.reads = 0
        self.bytes = 0

    def map(self, start: int, size: int) -> None:
        self.regions[start] = bytearray(size)

    def _region(self, address: int, size: int) -> tuple[bytearray, int]:
        for start, content in self.regions.items():
            if start <= address and address + size <= start + len(content):
                return content, address - start
        raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))

    def read(self, address: int, size: int) -> bytes:
        self.reads += 1
        self.bytes += size
        content, at = self._region(address, size)
        return bytes(content[at : at + size])

    def gather(self, places: Sequence[tuple[int, int]]) -> bytes:
        return b"".join(self.read(*place) for place in places)

    def put(self, address: int, form: str, *values: int) -> None:
        content, at = self._region(address, struct.calcsize(form))
        struct.pack_into(form, content, at, *values)


@dataclass
class FakePython:
    """One interpreter; threads, code objects and frames are added to it."""

    memory: FakeMemory = field(default_factory=FakeMemory)
    threads: list[int] = field(default_factory=list)
    _texts: int = TEXTS
    _codes: int = CODES

    def __post_init__(self) -> None:
        for start, size in ((RUNTIME, 4096), (INTERPRETER, 4096), (THREADS, 1 << 16), (CHUNKS, 1 << 18),
                            (CODES, 1 << 18), (TEXTS, 1 << 18), (C_FRAMES, 1 << 16)):  # fmt: skip
            self.memory.map(start, size)
        self.memory.put(RUNTIME + OFFSETS.interpreters_head, "<Q", INTERPRETER)

    def interpreter(self) -> Interpreter:
        return Interpreter(self.memory, Runtime(RUNTIME, OFFSETS, CODE_TYPE))

    def text(self, text: str, state: int = 1 << 2 | 1 << 5 | 1 << 6) -> int:
        at = self._texts
        data = text.encode("ascii")
        self.memory.put(at + OFFSETS.text_length, "<q", len(data))
        self.memory.put(at + OFFSETS.text_state, "<I", state)
        self.memory.put(at + OFFSETS.text_ascii, f"<{len(data)}B", *data)
        self._texts += (OFFSETS.text_ascii + len(data) + 16) // 16 * 16 + 16
        return at

    def table(self, data: bytes) -> int:
        at = self._texts
        self.memory.put(at + OFFSETS.bytes_size, "<q", len(data))
        self.memory.put(at + OFFSETS.bytes_data, f"<{len(data)}B", *data)
        self._texts += (OFFSETS.bytes_data + len(data)) // 16 * 16 + 32
        return at

    def code(self, name: str, file: str = "/srv/job/train.py", first_line: int = 10, lines: int = 4) -> int:
        """Each of its lines is one entry of two code units."""
        at = self._codes
        self._codes += 512
        entries = b"".join(bytes([0x80 | (10 if not line else 11) << 3 | 1, 0, 0]) for line in range(lines))
        self.memory.put(at + 8, "<Q", CODE_TYPE)
        self.memory.put(at + OFFSETS.code_name, "<Q", self.text(name))
        self.memory.put(at + OFFSETS.code_file, "<Q", self.text(file))
        self.memory.put(at + OFFSETS.code_lines, "<Q", self.table(entries))
        self.memory.put(at + OFFSETS.code_first_line, "<i", first_line)
        return at

    def thread(self, tid: int, calls: Sequence[tuple[int, int]]) -> int:
        """Code and line (from 0) of each call, outermost first. Gives the address of its innermost frame."""
        number = len(self.threads)
        state, chunk, c_frame = THREADS + 1024 * number, CHUNKS + CHUNK_BYTES * number, C_FRAMES + 64 * number
        put = self.memory.put
        link = self.threads[-1] + OFFSETS.thread_next if self.threads else INTERPRETER + OFFSETS.threads_head
        put(link, "<Q", state)
        self.threads.append(state)
        put(state + OFFSETS.native_thread_id, "<Q", tid)
        put(state + OFFSETS.current_frame, "<Q", c_frame)
        put(state + OFFSETS.data_stack, "<Q", chunk)
        previous = 0
        for depth, (code, line) in enumerate(calls):
            previous = self.frame(chunk + 24 + FRAME_BYTES * depth, code, line, previous)
        put(c_frame + (OFFSETS.c_frame or 0), "<Q", previous)
        return previous

    def frame(self, at: int, code: int, line: int, previous: int, owner: int = 0) -> int:
        put = self.memory.put
        put(at + OFFSETS.frame_code, "<Q", code)
        put(at + OFFSETS.frame_previous, "<Q", previous)
        put(at + OFFSETS.frame_instruction, "<Q", code + OFFSETS.code_bytes + 4 * line)
        put(at + OFFSETS.frame_owner, "<B", owner)
        return at
