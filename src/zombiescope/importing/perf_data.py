"""perf.data: what `perf record` writes, as a file or through a pipe.

The caller finds the clock before the rows are written where the file's head tells it (`file_clock`); of a pipe it is
known only behind the last record (`PerfDataImport.clock`), so its rows are held until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from zombiescope.importing.clock import Clock
from zombiescope.importing.rows import Outcome, Rows

_MAGICS = (b"PERFILE2", b"2ELIFREP")
HEAD_BYTES = 16
"""is_perf_data needs no more than this of a file."""


def is_perf_data(head: bytes) -> bool:
    """Whether a file that starts so is perf.data, of either byte order, file or pipe."""
    return head.startswith(_MAGICS)


def file_clock(file: BinaryIO, name: str) -> Clock | None:
    """The clock of a file that can seek, without decoding its samples; None: only reading it to the end tells."""
    return None


class PerfDataImport:
    """Decodes any number of perf.data files with one set of symbols. What it cannot take stands in outcome.skipped; it
    raises nothing for what is in a file."""

    def __init__(self, *, kallsyms: Path | None, symbol_dirs: Sequence[Path], inline: bool, outcome: Outcome) -> None:
        self._outcome = outcome
        self.clock = Clock("")
        """Of the file read last, once its iterator has ended."""

    def read(self, file: BinaryIO, name: str, size: int | None, progress: Callable[[int], None]) -> Iterator[Rows]:
        """Rows of at most store.MAX_ROWS samples, `time_us` in the file's own clock. `file` stands at its beginning;
        `progress` is told how many bytes were read."""
        yield from ()
