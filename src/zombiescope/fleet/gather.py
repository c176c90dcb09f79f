"""From a root to its statistics: listed, compared with what is known already, the rest read and written down.

What is written stays written: an interruption loses only the batches that are being read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from math import ceil
from pathlib import Path

from zombiescope.base.time import DAY_US
from zombiescope.fleet import plan, results
from zombiescope.fleet.engines import Engine
from zombiescope.fleet.plan import NODE_DAY, Listing
from zombiescope.fleet.results import Results
from zombiescope.fleet.statistics import SHARE_AT_THE_END, Statistics, connection

Progress = Callable[[int, int], None]
"""Called with items that are read, and all that are to be read."""


@dataclass(frozen=True, slots=True)
class Gathered:
    listing: Listing
    """Of the days that are looked at."""
    statistics: Statistics
    fresh: int
    """Items that were read now; the others were known."""
    newest: dict[str, plan.Newest]
    """Of every node under the root, whatever window is looked at."""


def gather(
    place: str,
    directory: Path,
    engine: Engine,
    last_us: int | None,
    until_us: int | None = None,
    progress: Progress | None = None,
) -> Gathered:
    """Raises UserError and OSError."""
    connection().close()  # what is missing is said before anything is read
    found = plan.listing(place)
    newest = plan.newest(found)
    found = plan.chosen(found, _days(found, last_us, until_us))
    kept = Results(directory)
    known = kept.known(found)
    missing = results.taken(found.items, known)
    done = 0
    for read in engine.read(place, results.batches(missing)):
        name = kept.write(read.batch, read.rows)
        known.update({(item.node, item.day): name for item in read.batch.items})
        done += len(read.batch.items)
        if progress is not None:
            progress(done, len(missing))
    return Gathered(found, Statistics(kept, known, last_us, until_us), len(missing), newest)


def _days(found: Listing, last_us: int | None, until_us: int | None) -> list[str]:
    """The days that a window may touch. It ends with the last day that enough nodes have, whatever one clock says."""
    if last_us is None and until_us is None:
        return found.days
    counted = Counter(item.day for item in found.items if item.day != NODE_DAY)
    nodes = max(counted.values(), default=0)
    common = [day for day in found.days if counted[day] >= max(1, SHARE_AT_THE_END * nodes)]
    if not common:
        return []
    end = date.fromisoformat(plan.day_of(until_us) if until_us is not None else common[-1])
    first = date.min if last_us is None else end - timedelta(days=ceil(last_us / DAY_US))
    # What a minute before midnight brought is in the next day's file.
    return [day for day in found.days if str(first) <= day <= str(end + timedelta(days=1))]
