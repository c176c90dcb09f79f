"""Whole stacks of one living process, from copies of them: which code is where, and how its callers are found.

Mappings are read when a walk meets an address that is in none of them, at most once a second. The table of a file is
built when a walk first comes through it, a few for each copy, so a process with a thousand libraries costs what its hot
threads use.
"""

from __future__ import annotations

import time

from zombiescope._native import CallFrames, ProcessUnwinder
from zombiescope.symbols import maps
from zombiescope.symbols.frame_tables import FrameTables
from zombiescope.symbols.maps import Mapping, Mappings
from zombiescope.symbols.process import LiveProcess

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
