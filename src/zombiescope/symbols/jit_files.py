"""perf maps and jitdumps: files in which a running program writes the names of the code it made.

perf map, /tmp/perf-PID.map: lines "START SIZE NAME", hexadecimal, appended as code is made (python -X perf, node
--perf-basic-prof, jcmd PID Compiler.perfmap). jitdump, jit-PID.dump: binary records (node --perf-prof, the JVM's and
LLVM's agents, python -X perf_jit); JIT_CODE_LOAD has address, size and name, JIT_CODE_MOVE a new address,
JIT_CODE_CLOSE ends it; the code itself and its lines are skipped.

Both only grow, so reading goes on where it ended, at most MAX_READ_BYTES at once. Both may be written by anybody who
may write the file: every length is checked, and what makes no sense is counted and skipped (a line) or ends the file
(a record). Names are read from the file when asked for.
"""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path
from typing import Literal

from zombiescope._native import JitMap

MAX_FILE_BYTES = 1 << 30
MAX_READ_BYTES = 16 << 20
PIECE_BYTES = 1 << 18
MAX_RECORDS = 1 << 16

JITDUMP_MAGIC = 0x4A695444
LOAD, MOVE, DEBUG_INFO, CLOSE, UNWINDING_INFO = range(5)
HEADER_BYTES = 40
PREFIX_BYTES = 16
LOAD_BYTES = 56
MAX_NAME_BYTES = 1024


class CodeFile:
    """What one perf map or jitdump has named so far; the descriptor of the file is the caller's at each call."""

    def __init__(self, kind: Literal["perf map", "jitdump"], max_entries: int) -> None:
        self.kind = kind
        self.code = JitMap(max_entries)
        self.ended = False
        self.advanced = False  # by the last read_on
        self._at = 0
        self._order: Literal["<", ">"] = "<"

    @property
    def nbytes(self) -> int:
        """Bytes of memory this holds."""
        return self.code.nbytes

    def read_on(self, fd: int) -> bool:
        """Read what was appended; false when the file is another one by now, being shorter than what was read."""
        size = os.fstat(fd).st_size
        if size < self._at:
            return False
        end = min(size, self._at + MAX_READ_BYTES, MAX_FILE_BYTES)
        before = self._at
        if self.kind == "perf map":
            self._read_lines(fd, end)
        else:
            self._read_records(fd, end)
        self.advanced = self._at > before
        return True

    def behind(self, fd: int) -> bool:
        """Whether the file has more than was read."""
        return not self.ended and os.fstat(fd).st_size > self._at

    def name(self, address: int, fd: int, limit: int | None = None) -> bytes | None:
        """The name of the code at an address; `limit`: if it stands in that much of the file."""
        found = self.code.find(address)
        if found is None:
            return None
        _, _, offset, length = found
        if limit is not None and offset + length > limit:
            return None
        return os.pread(fd, length, offset).split(b"\n", 1)[0] or None

    def _read_lines(self, fd: int, end: int) -> None:
        while self._at < end:
            text = os.pread(fd, min(PIECE_BYTES, end - self._at), self._at)
            taken = self.code.feed(text, self._at)
            if taken == 0:
                # The last line is not whole yet; one longer than a piece never is, and is no line.
                if len(text) == PIECE_BYTES:
                    self.ended = True
                return
            self._at += taken

    def _read_records(self, fd: int, end: int) -> None:
        if self._at == 0 and not self._read_header(fd, end):
            return
        for _ in range(MAX_RECORDS):
            if self.ended or end - self._at < PREFIX_BYTES:
                return
            head = os.pread(fd, LOAD_BYTES + MAX_NAME_BYTES, self._at)
            if len(head) < PREFIX_BYTES:
                return
            kind, size = struct.unpack_from(f"{self._order}II", head)
            if size < PREFIX_BYTES or kind > UNWINDING_INFO:
                self.ended = True  # no later record can be found
                return
            if size > end - self._at:
                return
            self._take(kind, head[:size])
            self._at += size

    def _read_header(self, fd: int, end: int) -> bool:
        if end < HEADER_BYTES:
            return False
        head = os.pread(fd, HEADER_BYTES, 0)
        for order in ("<", ">"):
            magic, version, size = struct.unpack_from(f"{order}III", head)
            if magic == JITDUMP_MAGIC and version == 1 and HEADER_BYTES <= size <= 1 << 16:
                self._order, self._at = order, size
                return True
        self.ended = True
        return False

    def _take(self, kind: int, record: bytes) -> None:
        if kind == CLOSE:
            self.ended = True
        elif kind == LOAD and len(record) > LOAD_BYTES:
            _, _, _, start, size, _ = struct.unpack_from(f"{self._order}IIQQQQ", record, PREFIX_BYTES)
            name_bytes = record.find(b"\0", LOAD_BYTES) - LOAD_BYTES
            if name_bytes < 0:
                name_bytes = len(record) - LOAD_BYTES
            self.code.add(start, size, self._at + LOAD_BYTES, name_bytes)
        elif kind == MOVE and len(record) >= PREFIX_BYTES + 48:
            _, _, _, old, new, size, _ = struct.unpack_from(f"{self._order}IIQQQQQ", record, PREFIX_BYTES)
            found = self.code.find(old)
            if found is not None and found[0] == old:
                self.code.add(new, size, found[2], found[3])


class FinishedCodeFile:
    """A perf map or jitdump of a process that may be gone, for recordings that are read later.

    OSError when it cannot be opened; PermissionError when it is neither the reader's own file nor root's, which perf
    refuses as well.
    """

    MAX_ENTRIES = 1 << 21

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (os.geteuid(), 0):
            os.close(self._fd)
            raise PermissionError(f"{path} is not a regular file of yours or of root")
        kind: Literal["perf map", "jitdump"] = "jitdump" if path.suffix == ".dump" else "perf map"
        self._file = CodeFile(kind, self.MAX_ENTRIES)
        while self._file.read_on(self._fd) and self._file.advanced:
            pass

    def __enter__(self) -> FinishedCodeFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._fd)

    def name(self, address: int) -> bytes | None:
        """The name of the code at an address, the latest if several were there one after the other."""
        return self._file.name(address, self._fd)
