"""Tables of call frames (.eh_frame) of the files that are mapped in processes, kept within a budget; for one thread.

A table belongs to the file it was read from, as tables of symbols do (elf.py): whoever makes a file makes its table
only. Building one takes 50 ns a row: 23 ms for libarrow (49 MB, 556,000 rows, 4.5 MB here), 0.12 s for libtorch_cpu
(434 MB, 2.6 million rows, 21 MB here).
"""

from __future__ import annotations

import os
import time
from collections import Counter, OrderedDict

from zombiescope._native import CallFrames, ElfError, ProcessUnwinder
from zombiescope.symbols import maps
from zombiescope.symbols.elf import FileIdentity, identity
from zombiescope.symbols.maps import Mapping, Mappings
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


# --- unwinding --------------------------------------------------------------------------------------------------------
# Whole stacks of one living process, from copies of them: which code is where, and how its callers are found.
#
# Mappings are read when a walk meets an address that is in none of them, at most once a second. The table of a file is
# built when a walk first comes through it, a few for each copy, so a process with a thousand libraries costs what its
# hot threads use.

READ_AGAIN_S = 1.0
MOST_TABLES_A_WALK = 16
NO_TABLE, NO_CODE = "no table", "no code"


class CopiedStacks:
    """ProcessLookupError from any method when the process is gone."""

    def __init__(self, pid: int, tables: FrameTables) -> None:
        self._process = LiveProcess(pid)
        self._tables = tables
        self._known: dict[Mapping, CallFrames | None] = {}
        self._mappings = Mappings()
        self._read_s = 0.0
        self._unwinder = ProcessUnwinder([])

    def close(self) -> None:
        self._process.close()

    def unwind(self, ip: int, sp: int, bp: int, stack: bytes) -> tuple[list[int], str]:
        """Addresses, the innermost first, and why it ended (UNWOUND)."""
        chain, why = self._unwinder.unwind(ip, sp, bp, stack)
        for _ in range(MOST_TABLES_A_WALK):
            if why == NO_CODE and self._reads_again():
                pass
            elif why != NO_TABLE or not self._learns(chain):
                break
            chain, why = self._unwinder.unwind(ip, sp, bp, stack)
        return chain, why

    def _reads_again(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._read_s < READ_AGAIN_S or not self._process.still_there():
            return False
        self._read_s = now_s
        self._mappings = maps.read(self._process.fd)
        mapped = set(self._mappings)
        self._known = {mapping: table for mapping, table in self._known.items() if mapping in mapped}
        self._lay_out()
        return True

    def _learns(self, chain: list[int]) -> bool:
        """Whether the file in which the walk ended was not asked for its table yet."""
        mapping = self._mappings.find(max(chain[-1] - (len(chain) > 1), 0)) if chain else None
        if mapping is None or mapping in self._known:
            return False
        self._known[mapping] = self._tables.of(self._process, mapping)
        self._lay_out()
        return True

    def _lay_out(self) -> None:
        known = self._known
        regions = [(one.start, one.end, one.pgoff, known.get(one), one in known) for one in self._mappings]
        self._unwinder = ProcessUnwinder(regions)
