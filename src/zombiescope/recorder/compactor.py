"""The compaction helper: a niced process of its own that turns closed segments into Parquet."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from zombiescope.base import python as _python
from zombiescope.recorder.piped_process import MEGABYTE, PipedProcess

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


# --- child ------------------------------------------------------------------------------------------------------------
# A child process of the recorder: another Python, so that what it loads (pyarrow, numpy) never belongs to us.
#
# At most one of a kind runs at a time. It reads nothing, and says how far it has got. Its CPU time is counted as ours.
# One that runs too long is killed, and so is one that does not get on (piped_process.py).

READ_BYTES = 65536
END_S = 5.0


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int
    """Negative: the signal that ended it. 0 also for a child that somebody else reaped, of which nothing is known."""
    cpu_us: int
    max_rss_bytes: int


class ChildProcess(PipedProcess):
    """`python -m module arguments`, started again and again."""

    MEMORY_BYTES: ClassVar = 2048 * MEGABYTE
    STARVED_RATIO: ClassVar = 0.4
    """It has the lowest priority: with less than this of a core it is late, and does not hang."""

    def __init__(self, module: str, max_run_us: int, name: str = "compaction") -> None:
        super().__init__(name)
        self._module = module
        self._max_run_us = max_run_us
        self._started_us = 0
        self.blocked_s = 30.0
        self._ended: Ended | None = None

    def start(self, now_us: int, *arguments: str) -> None:
        """Only when none is running. Raises OSError."""
        assert self._pid is None
        self._spawn(_python.module(self._module, *arguments))
        os.close(self._to)
        self._to = -1
        self._started_us = now_us

    def reap(self, now_us: int) -> Ended | None:
        """How it ended, once, if it has."""
        if self._pid is None:
            return None
        self.listen()
        self._reaped()
        if self._pid is not None and now_us - self._started_us > self._max_run_us:
            self._hangs(f"has not ended within {self._max_run_us / 6e7:.0f} minutes")
            self._kill()
        ended, self._ended = self._ended, None
        return ended

    def listen(self) -> None:
        """What it says is how far it has got, and at its end what it did."""
        if self._pid is not None:
            self._hear(READ_BYTES)
            for line in self._lines():
                self._message(line)

    def watch(self) -> None:
        self.listen()
        super().watch()

    def stop(self) -> None:
        """Ends it and waits for its end."""
        if self._pid is None:
            return
        self._signal(signal.SIGTERM)
        if not self._gone_within(END_S):
            self._signal(signal.SIGKILL)
            self._gone_within(END_S)
        self._close()

    def _died(self, exit_code: int | None) -> None:
        self.listen()
        if exit_code == 0 and not self._is_killed:
            self.pulse.works()
        else:
            super()._died(exit_code)

    def _ends(self, exit_code: int | None, cpu_us: int) -> None:
        super()._ends(exit_code, cpu_us)
        self._ended = Ended(exit_code or 0, cpu_us if exit_code is not None else 0, self.peak_rss_bytes)
