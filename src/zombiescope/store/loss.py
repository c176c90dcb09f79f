"""Records that did not fit into a core's ring, as a row of `gaps` says it and as it is read back."""

from __future__ import annotations

import re

SAMPLES = "stack samples"
"""The source of stacks, as gaps and missing sources name it."""
_LOST = re.compile(r"(\d{1,18}) records of cpu (\d{1,6}) did not fit into its ring$")


def loss(lost: int, cpu: int) -> str:
    """Why the stacks of a core are not whole."""
    return f"{lost} records of cpu {cpu} did not fit into its ring"


def lost_records(source: str, why: str) -> tuple[int, int] | None:
    """How many records of which core, where a gap is such a loss."""
    match = _LOST.match(why) if source == SAMPLES else None
    return (int(match[1]), int(match[2])) if match else None
