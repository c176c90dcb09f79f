"""A documented case as a recording: its files written anew and imported, as anybody's files are."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from zombiescope.imports.session import Options, Session, Silence
from zombiescope.lab.raw_case import RawCase


@dataclass(frozen=True, slots=True)
class Replay:
    files: int
    bytes: int
    samples: int
    cpus: int


def rebuild(case: RawCase, place: Path, raw: Path | None = None) -> Replay:
    """Writes the recording into `place`, and leaves the raw files in `raw` if it is named. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-demo-") as temporary:
        files = case.write(raw or Path(temporary))
        size = sum(file.stat().st_size for file in files)
        result = Session(place, Options(), Silence()).run([str(file) for file in files])
    return Replay(len(files), size, result.outcome.samples, case.cpus)


def rebuild_founding_case(place: Path, raw: Path | None = None) -> Replay:
    """Raises OSError."""
    from zombiescope.lab.founding_case import CASE

    return rebuild(CASE, place, raw)
