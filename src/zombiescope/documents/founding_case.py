"""The founding case as a recording: its files written anew and imported, as anybody's files are."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from zombiescope.importing.session import Options, Session, Silence
from zombiescope.lab import founding_case

PROFILE_US = founding_case.SECONDS * 1_000_000
"""The journal goes back for an hour; the profile is the last half minute."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    files: int
    bytes: int
    samples: int
    cpus: int


def rebuild(place: Path, raw: Path | None = None) -> Rebuilt:
    """Writes the recording into `place`, and leaves the raw files in `raw` if it is named. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="zombiescope-demo-") as temporary:
        files = founding_case.CASE.write(raw or Path(temporary))
        size = sum(file.stat().st_size for file in files)
        result = Session(place, Options(), Silence()).run([str(file) for file in files])
    return Rebuilt(len(files), size, result.outcome.samples, founding_case.CPUS)
