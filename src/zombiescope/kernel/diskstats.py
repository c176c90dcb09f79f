"""/proc/diskstats: what each block device did since boot, and what it has not finished.

Fields of a device: reads and writes completed, discards and flushes completed (newer kernels), sectors of 512 bytes
read and written, requests in flight now, milliseconds in which any was (busy), and those of all requests together
(weighted). A device with requests in flight that completes none stands still.

Cost: one read, about a microsecond a device; nothing on the device's own path is asked, so it answers while a disk
hangs. Absence: without block devices the file is empty, and in some containers it is not there. A device without any
request ever is left out: a node has eight loop devices that nobody uses. Partitions are lines of their own here.
"""

from __future__ import annotations

from typing import NamedTuple

from zombiescope.kernel.procfile import at, number, read_file

SECTOR_BYTES = 512
_LEAST_FIELDS = 14


class DiskStat(NamedTuple):
    """A tuple: one is made for every device of every tick."""

    device: str
    """As "254:0"."""
    reads: int
    writes: int
    others: int
    """Discards and flushes."""
    read_bytes: int
    written_bytes: int
    in_flight: int
    busy_ms: int
    weighted_ms: int

    @property
    def completed(self) -> int:
        return self.reads + self.writes + self.others


def parse(data: bytes) -> dict[str, DiskStat]:
    """By name; a line that is cut off or malformed counts as absent."""
    found = {}
    for line in data[: data.rfind(b"\n") + 1].split(b"\n"):
        fields = line.split()
        if len(fields) < _LEAST_FIELDS:
            continue
        stat = _stat(fields)
        if stat is not None and (stat.completed or stat.in_flight):
            found[fields[2].decode("ascii", "backslashreplace")] = stat
    return found


def _stat(fields: list[bytes]) -> DiskStat | None:
    numbers = [number(field) for field in fields[3:]]
    if any(value is None for value in numbers[:11]):
        return None
    known = [value or 0 for value in numbers]
    discards = known[11] if len(known) > 11 else 0
    flushes = known[15] if len(known) > 15 else 0
    return DiskStat(
        b":".join(fields[:2]).decode("ascii", "backslashreplace"),
        reads=known[0],
        writes=known[4],
        others=discards + flushes,
        read_bytes=known[2] * SECTOR_BYTES,
        written_bytes=known[6] * SECTOR_BYTES,
        in_flight=known[8],
        busy_ms=known[9],
        weighted_ms=known[10],
    )


def read(root: str = "/") -> dict[str, DiskStat] | None:
    data = read_file(at(root, "proc/diskstats"))
    return None if data is None else parse(data)
