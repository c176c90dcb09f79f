"""An ordinary segment now and then, so that a fleet knows what healthy nodes do when nothing happens.

Frozen windows come from nodes that had incidents. Their stacks mean little beside nothing: the differential flame graph
of a fleet needs some of healthy nodes. One closed segment (two minutes) of one node in ten a day is enough. Which node,
and in which hour, is drawn from its name and the day, so that a thousand nodes do so at different hours.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import UTC, datetime

from zombiescope.store.shipping.units import Unit

_DRAWS = 10_000


def due(node: str, now_us: int, share: float, sampled: str) -> str | None:
    """The day for which a segment is to be sent now; `sampled` is the last one for which that was done."""
    now = datetime.fromtimestamp(now_us / 1e6, UTC)
    day = now.date().isoformat()
    drawn = zlib.crc32(f"{node} {day}".encode())
    is_chosen = drawn % _DRAWS < share * _DRAWS
    return day if is_chosen and day != sampled and now.hour >= drawn // _DRAWS % 24 else None


def newest(segments: Sequence[Unit]) -> Unit | None:
    """The newest segment that is closed. Once it is compacted its part is not sent in its place."""
    closed = [unit for unit in segments if not unit.growing]
    return max(closed, key=lambda unit: unit.from_us) if closed else None
