"""Tables of call frames (.eh_frame) of the files that are mapped in processes, kept within a budget; for one thread.

A table belongs to the file it was read from, as tables of symbols do (elf.py): whoever makes a file makes its table
only. Building one takes 50 ns a row: 23 ms for libarrow (49 MB, 556,000 rows, 4.5 MB here), 0.12 s for libtorch_cpu
(434 MB, 2.6 million rows, 21 MB here).
"""

from __future__ import annotations

import os
from collections import Counter, OrderedDict

from zombiescope._native import CallFrames, ElfError
from zombiescope.symbols.elf import FileIdentity, identity
from zombiescope.symbols.maps import Mapping
from zombiescope.symbols.process import LiveProcess, Tally
from zombiescope.symbols.vdso import Vdso

MAX_BYTES = 96 << 20
MAX_TABLE_BYTES = 64 << 20
MAX_REFUSED = 1024


class FrameTables:
    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.nbytes = 0
        self.built = 0
        self.refused: Counter[str] = Counter()
        """Files without a table, by the reason."""
        self._max_bytes = max_bytes
        self._tables: OrderedDict[FileIdentity, CallFrames] = OrderedDict()
        self._without: OrderedDict[FileIdentity, None] = OrderedDict()
        self._tally = Tally()
        self._vdso = Vdso()
        self._vdso_table = _of_image(self._vdso.image)

    def of(self, process: LiveProcess, mapping: Mapping) -> CallFrames | None:
        """The table of the file behind a mapping; None where it has none, or it cannot be opened."""
        if mapping.kind == "vdso":
            return self._vdso_table if self._vdso.is_own(mapping) else None
        if mapping.kind != "file":
            return None
        fd = process.open_mapped(mapping, self._tally)
        if fd is None:
            return None
        try:
            return self._of_file(fd)
        finally:
            os.close(fd)

    def _of_file(self, fd: int) -> CallFrames | None:
        file = identity(fd)
        table = self._tables.get(file)
        if table is not None:
            self._tables.move_to_end(file)
            return table
        if file in self._without:
            return None
        try:
            table = self._tables[file] = CallFrames(fd, MAX_TABLE_BYTES)
        except ElfError as fault:
            self.refused[str(fault)] += 1
            self._without[file] = None
            if len(self._without) > MAX_REFUSED:
                self._without.popitem(last=False)
            return None
        self.built += 1
        self.nbytes += table.nbytes
        while self.nbytes > self._max_bytes and len(self._tables) > 1:
            self.nbytes -= self._tables.popitem(last=False)[1].nbytes
        return table


def _of_image(image: bytes | None) -> CallFrames | None:
    if image is None:
        return None
    try:
        return CallFrames(image)
    except ElfError:
        return None
