"""A day of rollups of a node: 1,440 minutes, and the CPU of its units six times an hour.

Bodies come from a pool: nodes of a fleet share the day, so what differs between two healthy nodes is noise, and the
header (who, labels, kernel, boot), which stands before the body and is each node's own. That makes ten thousand nodes
cheap, and leaves a reader as much to do as ten thousand different days.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.fleets.faults import UNITS, Fault
from zombiescope.store import schema
from zombiescope.store.log import SegmentEncoder, encode_rows

MINUTE_US, HOUR_US = 60_000_000, 3_600_000_000
CORES = 96


@dataclass(frozen=True, slots=True)
class Sickness:
    """What a node has, and from when on: minutes after the start of its day."""

    fault: Fault
    since_min: int
    minutes: tuple[int, ...] = ()
    """In which a core was lost."""


def header(start_us: int, boot: str, labels: dict[str, str] | None, kernel: str | None) -> bytes:
    """What stands before the body. Labels and kernel None: as versions before them wrote it."""
    said: dict[str, Any] = {"format": schema.FORMAT, "boot": boot, "started_us": start_us}
    said |= {} if labels is None else {"labels": labels}
    said |= {} if kernel is None else {"kernel": kernel}
    return SegmentEncoder(said).preamble


@cache
def body(
    start_us: int,
    minutes: int,
    seed: int,
    boot: str,
    sickness: Sickness | None,
    extra: str | None = None,
    dying: int = 80,
    booted_us: int | None = None,
) -> bytes:
    """The frames of a segment: one a minute, as the recorder writes them. `extra`: one more unit; `booted_us`: None as
    in rollups of versions that did not write how long the node was up."""
    rng = random.Random(seed)
    encoder = SegmentEncoder({})
    zombies = float(dying)
    units = [*UNITS, *([extra] if extra else [])]
    pieces = []
    for minute in range(minutes):
        wall_us = start_us + (minute + 1) * MINUTE_US
        is_sick = sickness is not None and minute >= sickness.since_min
        zombies += sickness.fault.zombies_per_hour / 60 if sickness and is_sick else 0
        blocks = [encode_rows(schema.MINUTES, [_minute(rng, wall_us, boot, minute, zombies, sickness)], wall_us)]
        if (minute + 1) % 10 == 0:
            hour_us = (wall_us - MINUTE_US) // HOUR_US * HOUR_US
            rows = [_unit(rng, hour_us, boot, unit, sickness if is_sick else None) for unit in units]
            blocks.append(encode_rows(schema.UNIT_HOURS, rows, wall_us))
        pieces.append(encoder.frame(wall_us, 0 if booted_us is None else (wall_us - booted_us) * 1000, blocks))
    pieces.append(encoder.frame(start_us + minutes * MINUTE_US, 0, [], closes=True))
    return b"".join(pieces)


def _minute(
    rng: random.Random, wall_us: int, boot: str, minute: int, zombies: float, sickness: Sickness | None
) -> tuple[Any, ...]:
    lost = sickness is not None and minute in sickness.minutes
    saturated = rng.randrange(4000, 9000) if lost else rng.choice((0,) * 40 + (500, 1000))
    busy = rng.gauss(0.4, 0.05) * CORES * 60_000
    restarts = int(
        sickness is not None
        and minute >= sickness.since_min
        and sickness.fault.zombies_per_hour > 0
        and rng.random() < 0.6
    )
    return (
        wall_us - MINUTE_US, boot, 60, saturated, min(saturated, 7000), rng.randrange(CORES) if saturated else None,
        round(busy), round(busy * 0.12), CORES, round(zombies) + 260, round(zombies), restarts, int(lost), int(lost), 0,
    )  # fmt: skip


def _unit(rng: random.Random, hour_us: int, boot: str, unit: str, sickness: Sickness | None) -> tuple[Any, ...]:
    cpu_ms = rng.randrange(200, 4000) if unit != "ray-worker.service" else rng.randrange(10_000_000, 14_000_000)
    if sickness is not None and unit == sickness.fault.culprit:
        cpu_ms += 60_000
    return hour_us, boot, unit, cpu_ms, cpu_ms // 5, cpu_ms // 8
