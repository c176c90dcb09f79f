"""The compaction helper: a niced process of its own that turns closed segments into Parquet."""

from __future__ import annotations

from pathlib import Path

from zombiescope.recorder.child import ChildProcess

MODULE = "zombiescope.store.compact"
MAX_RUN_US = 600_000_000


class Compactor:
    """Runs at most every `every_us`. One that is stopped leaves nothing: what it had not renamed into place is as if it
    had never run."""

    def __init__(self, node_dir: Path, every_us: int) -> None:
        self.process = ChildProcess(MODULE, MAX_RUN_US)
        self._node_dir = node_dir
        self._every_us = every_us
        self._next_us: int | None = None

    def start_if_due(self, now_us: int, segments: list[str]) -> None:
        """Starts on these closed segments when it is time. Raises OSError."""
        if self._next_us is None:
            self._next_us = now_us + self._every_us
        if self.process.running or not segments or now_us < self._next_us:
            return
        self.process.start(now_us, str(self._node_dir), *segments)
        self._next_us = now_us + self._every_us
