"""The kinds of events that there are: whoever asks for one that does not exist has mistyped it."""

from __future__ import annotations

from zombiescope.kernel.log_formats import FORMATS
from zombiescope.store.event import KINDS


def known() -> frozenset[str]:
    """All that a recorder of this version can write."""
    return KINDS | {line.kind for line in FORMATS}
