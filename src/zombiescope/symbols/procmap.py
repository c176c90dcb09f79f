"""The executable mappings of a living process, asked for by address.

Since kernel 6.11 (commit ed5d583a88a9) the ioctl PROCMAP_QUERY on /proc/PID/maps answers for one address in a
few microseconds, whatever the process has mapped. Before that the whole file is read, half a millisecond for
a process with a few hundred mappings, and read again only when an address is in none of them. Frame-pointer
chains end in addresses that are nowhere, so each time that found nothing doubles the wait.

What was found is kept for a minute, or until somebody says that it changed.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Sequence
from typing import ClassVar

from zombiescope._native import query_map
from zombiescope.symbols import maps
from zombiescope.symbols.maps import Mapping, Mappings

KEPT_FOR_S = 60.0
CHANGED_AFTER_S = 0.1
FIRST_WAIT_S = 1.0
LAST_WAIT_S = 60.0


class ProcessMaps:
    """Mappings of one process, whose open directory /proc/PID stays its owner's."""

    __slots__ = ("_changed", "_kept", "_process_fd", "_read_at_s", "_since_s", "_wait_s")

    queries: ClassVar[bool] = True  # until the kernel says that it has no PROCMAP_QUERY

    def __init__(self, process_fd: int) -> None:
        self._process_fd = process_fd
        self._wait_s = FIRST_WAIT_S
        self.forget()

    def __len__(self) -> int:
        return len(self._kept)

    def forget(self) -> None:
        """The process has executed another program."""
        self._kept = Mappings()
        self._changed = False
        self._since_s = time.monotonic()
        self._read_at_s: float | None = None

    def changed(self) -> None:
        """The process has mapped something; what is kept is dropped, but not ten times in a second."""
        self._changed = True

    def locate(self, addresses: Sequence[int]) -> list[Mapping | None]:
        """The mapping of each address; ProcessLookupError when the process has none at all, being gone."""
        age_s = time.monotonic() - self._since_s
        if age_s > KEPT_FOR_S or (self._changed and age_s > CHANGED_AFTER_S):
            self.forget()
        found = [self._kept.find(address) for address in addresses]
        if None not in found:
            return found
        if ProcessMaps.queries:
            try:
                return self._query(addresses, found)
            except OSError as fault:
                if fault.errno != errno.ENOTTY:
                    raise
                ProcessMaps.queries = False
        return self._read(addresses, found)

    def _query(self, addresses: Sequence[int], found: list[Mapping | None]) -> list[Mapping | None]:
        fd = maps.open_maps(self._process_fd)
        try:
            for at, address in enumerate(addresses):
                if found[at] is None:
                    # One before it in the chain may have brought its mapping.
                    found[at] = self._kept.find(address) or self._query_one(fd, address)
        finally:
            os.close(fd)
        return found

    def _query_one(self, fd: int, address: int) -> Mapping | None:
        answer = query_map(fd, address)
        if answer is None:
            return None
        start, end, pgoff, inode, major, minor, name = answer
        mapping = maps.recorded(start, end - start, pgoff, name, dev=os.makedev(major, minor), inode=inode)
        self._kept.add(mapping)
        return mapping

    def _read(self, addresses: Sequence[int], found: list[Mapping | None]) -> list[Mapping | None]:
        now_s = time.monotonic()
        if self._read_at_s is not None and now_s - self._read_at_s < self._wait_s:
            return found
        fresh = maps.read(self._process_fd)
        in_vain = fresh == self._kept
        self._wait_s = min(2 * self._wait_s, LAST_WAIT_S) if in_vain else FIRST_WAIT_S
        self._kept, self._read_at_s = fresh, now_s
        return [fresh.find(address) for address in addresses]
