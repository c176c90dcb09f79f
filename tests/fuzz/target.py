"""One parser under fuzzing: how it is fed, with what it starts, and which answers are no defect."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOUND = Path(__file__).parent / "found"
"""Inputs that were defects once, by target: replayed by test_table.py, and where a campaign starts from."""
MOST_MEMORY_MB = 100
MOST_CPU_S = 2.0
"""For an input below 64 kB; instrumented code is two to five times slower than that of users."""


@functools.cache
def _folder(_process: int) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="zombiescope-fuzz-")


def scratch() -> Path:
    """A directory of this process, for parsers that want a path; it goes with the process, or with its worker."""
    return Path(_folder(os.getpid()).name)


@dataclass(frozen=True, slots=True)
class Target:
    """`feed` calls the product as the product calls itself. What it raises is a defect unless it is one of `refusals`,
    which are errors that the product's own callers of that parser catch."""

    name: str
    parse: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]]
    refusals: tuple[type[Exception], ...] = ()
    native: bool = False
    """It reaches the compiled module: it is run under the sanitizers."""
    most_bytes: int = 4096
    memory_mb: int = MOST_MEMORY_MB
    cost: int = 1
    """A whole recording takes as long as so many texts: it gets so many times fewer executions."""
    words: tuple[bytes, ...] = ()
    """What the format is made of, for inputs that chance would not find."""

    def starts(self) -> list[bytes]:
        """Seeds, and what was found before."""
        return [*self.seeds(), *(path.read_bytes() for path in sorted((FOUND / self.name).glob("*")))]

    def feed(self, data: bytes) -> None:
        with suppress(*self.refusals):
            self.parse(data)
