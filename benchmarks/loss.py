"""Records lost when the machine is at its worst: all cores taken, an exec storm, and 20,000 zombies freed at once."""

from __future__ import annotations

import time

from benchmarks.loads import ONE_BUSY_CORE, exec_storm, free, running, zombies
from benchmarks.mount import memory_mount
from benchmarks.recorder import Recording, recorder
from benchmarks.table import Row

PURGED = 20_000


def measure(seconds: float) -> list[Row]:
    rows = []
    with running(ONE_BUSY_CORE, 50), recorder() as hogs:
        time.sleep(seconds)
    rows.append(_row("50 runnable hogs", hogs))
    with exec_storm(1000), recorder() as storm:
        time.sleep(seconds)
    rows.append(_row("exec storm", storm))
    with recorder() as purge, zombies(PURGED, memory_mount()) as pins:
        time.sleep(2)
        free(pins)
        time.sleep(4)
    rows.append(_row(f"purge of {PURGED:,} zombies", purge))
    return rows


def _row(name: str, recording: Recording) -> Row:
    result = recording.result
    taken = sum(row["ring_records"] for row in result["scratch"]["cost"])
    share = 100 * result["lost"] / max(1, taken + result["lost"])
    late = f"{result['ticks_late']} of {result['ticks']} ticks late"
    return Row(name, f"{share:.3f} % lost", f"{result['lost']} of {taken} records; {late}")
