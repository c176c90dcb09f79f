"""The incidents that the doctor found while the recorder ran, from a recording that is open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from zombiescope.base.severity import rank
from zombiescope.store.incident_file import NAME, parse

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording


def incidents(recording: Recording) -> list[dict[str, Any]]:
    """Every incident that is known, the newest last; none where there is no file or it cannot be read."""
    try:
        return parse(recording.store.read(f"{recording.prefix}{NAME}"))
    except (OSError, KeyError, ValueError):
        return []


def blaming(known: Iterable[dict[str, Any]], pattern: str, from_s: float, to_s: float) -> str | None:
    """What the worst incident of a span says whose first cause is of this pattern; None where there is none. Who counts
    a thing must not call it harmless while an incident beside it calls it the cause."""
    found: list[tuple[int, float, str]] = []
    for entry in known:
        causes = [cause for cause in entry.get("causes") or () if isinstance(cause, dict)]
        severity = entry.get("severity")
        if not causes or causes[0].get("pattern") != pattern or severity not in ("warning", "critical"):
            continue
        began, ended = (float(entry.get(name) or 0) for name in ("from", "to"))
        if began < to_s and ended >= from_s:
            found.append((rank(severity), began, str(causes[0].get("summary") or "an incident")))
    return max(found)[2] if found else None
