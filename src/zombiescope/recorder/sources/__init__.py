"""What is being recorded and what is not: every source that is missing is reported with the line that grants it.

The modules of this folder are sources that are read alike (source.py); a file that is here is used.

Blind is not healthy: a source that failed is in this list for as long as it fails, it is in node.json and in the
result, and the span it was blind for is a row of the table `gaps`."""

from __future__ import annotations

from collections import deque

from zombiescope.base.missing import Missing

MAX_ENDED = 1000


class Sources:
    """The sources that are missing now, and those that were for a while."""

    def __init__(self) -> None:
        self._missing: dict[str, Missing] = {}
        self._since_us: dict[str, int] = {}
        self._ended: deque[tuple[int, int, str, str]] = deque(maxlen=MAX_ENDED)

    def lacks(self, source: str, why: str, grant: str, now_us: int) -> bool:
        """Notes a source as missing. True when that is news."""
        news = source not in self._missing
        self._missing[source] = Missing(source, why, grant)
        self._since_us.setdefault(source, now_us)
        return news

    def has(self, source: str, now_us: int) -> bool:
        """Notes a source as there. True when it had been missing."""
        gone = self._missing.pop(source, None)
        if gone is None:
            return False
        self._ended.append((self._since_us.pop(source), now_us, source, gone.why))
        return True

    def why(self, source: str) -> str | None:
        """Why it is missing; None while it is there."""
        missing = self._missing.get(source)
        return None if missing is None else missing.why

    @property
    def missing(self) -> list[Missing]:
        return sorted(self._missing.values(), key=lambda one: one.source)

    def open_gaps(self, since_us: int, now_us: int) -> list[tuple[int, int, str, str]]:
        """Spans still open, cut at the start of the segment; written once per segment so that each segment has its
        own."""
        return [
            (max(self._since_us[source], since_us), now_us, source, missing.why)
            for source, missing in self._missing.items()
        ]

    def take_ended(self) -> list[tuple[int, int, str, str]]:
        ended = list(self._ended)
        self._ended.clear()
        return ended
