"""How much may come out of a file before it is no recording but a bomb.

Both forms of a part are compressed, and rows that repeat take next to nothing: thirteen kilobytes can stand for more
memory than a laptop has. A reader therefore counts what it is about to allocate, before it does: so many bytes for each
byte of the file, and a sum for all small files of a recording together. What a recorder writes stays far below
(docs/recording.md has figures); more is damage, and is reported as such.
"""

from __future__ import annotations

TOTAL_FLOOR_BYTES = 128 << 20
"""Shared by the parts of a recording, however small they are."""
LOG_RATIO = 4096
"""Of a segment: decoded bytes for a byte of the file."""
PARQUET_RATIO = 4096
"""Of Parquet, in which a column that stands still takes some bytes for a hundred thousand rows."""


class TooMuchError(ValueError):
    """More would come out of a file than a file of its size can hold."""


class Allowance:
    """Bytes that may still be allocated for what is in a file."""

    __slots__ = ("left_bytes",)

    def __init__(self, floor_bytes: int = TOTAL_FLOOR_BYTES) -> None:
        self.left_bytes = floor_bytes

    def earn(self, stored_bytes: int, ratio: int) -> None:
        """Some more of the file was read."""
        self.left_bytes += stored_bytes * ratio

    def spend(self, wanted_bytes: int) -> None:
        """Raises TooMuchError, before anything is allocated."""
        if wanted_bytes > self.left_bytes:
            raise TooMuchError("more would come out of it than a file of its size can hold")
        self.left_bytes -= wanted_bytes


def share(parts: int) -> int:
    """The part of the floor that each of so many files has."""
    return TOTAL_FLOOR_BYTES // max(1, parts)
