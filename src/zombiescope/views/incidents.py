"""The incidents that the doctor found while the recorder ran, from a recording that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zombiescope.recording.incident_file import NAME, parse

if TYPE_CHECKING:
    from zombiescope.recording.reader import Recording


def incidents(recording: Recording) -> list[dict[str, Any]]:
    """Every incident that is known, the newest last; none where there is no file or it cannot be read."""
    try:
        return parse(recording.store.read(f"{recording.prefix}{NAME}"))
    except (OSError, KeyError, ValueError):
        return []
