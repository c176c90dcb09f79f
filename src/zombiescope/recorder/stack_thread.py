"""One thread whose stack is copied: its event and ring, how large the copies are, and whether they are needed."""

from __future__ import annotations

import mmap

from zombiescope._native import StackCopies
from zombiescope.kernel.perf_event import open_stack_copies

MOST_THREADS = 8
MOST_ROWS = 512
"""Of all of them together, in a second."""
HZ = 11
"""For each second that the thread runs; not a divisor of the sampler's 99."""
SIZES = (16 << 10, 32 << 10, 60 << 10)
"""A record holds at most 64 kB."""
BYTES_PER_S = HZ * SIZES[0]
RING_PAGES = 64
"""256 kB: at the largest copies more than the second that the reader may be late."""
ENOUGH = 12
"""Copies after which a thread is judged."""


class CopiedThread:
    """Raises OSError where the thread is gone, or following it is not allowed."""

    def __init__(self, pid: int, tid: int, slot: int, copies: StackCopies) -> None:
        self.pid, self.tid, self.slot = pid, tid, slot
        self._copies = copies
        self._size = 0
        self._seen = self._cut = self._deeper = 0
        self._open()

    def _open(self) -> None:
        stack_bytes = SIZES[self._size]
        self._ring = open_stack_copies(self.tid, max(1, BYTES_PER_S // stack_bytes), stack_bytes, RING_PAGES)
        self._copies.add_ring(self.slot, self._ring.memory, mmap.PAGESIZE)

    def close(self) -> None:
        self._copies.remove_ring(self.slot)
        self._ring.close()

    def saw(self, depth: int, by_frame_pointer: int, why: str) -> None:
        """What a copy was good for."""
        self._seen += 1
        self._cut += why == "copy ended"
        self._deeper += depth > by_frame_pointer

    @property
    def is_whole(self) -> bool:
        """Whether frame pointers lead as far as copies do."""
        return self._seen >= ENOUGH and self._deeper * 5 < self._seen

    def adapt(self) -> None:
        """Larger and rarer copies where most of them ended too early."""
        if self._seen < ENOUGH:
            return
        if self._cut * 2 > self._seen and self._size + 1 < len(SIZES):
            self.close()
            self._size += 1
            self._open()
        self._seen = self._cut = self._deeper = 0
