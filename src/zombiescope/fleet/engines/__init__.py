"""Who reads the items: processes of this machine (local.py), or the tasks of a Ray cluster (cluster.py).

The interface is one method. An engine is given batches and hands each back with its rows, in any order; whoever asked
writes them down. Only these rows travel. The statistics themselves are the same for both: DuckDB over what was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from zombiescope.fleet import plan, reading
from zombiescope.fleet.reading import ItemRows
from zombiescope.fleet.results import Batch


@dataclass(frozen=True, slots=True)
class BatchRows:
    batch: Batch
    rows: list[ItemRows]


class Engine(Protocol):
    name: str

    def read(self, place: str, batches: Sequence[Batch]) -> Iterator[BatchRows]:
        """Every batch once, as it is done. Raises UserError where the engine cannot run."""


def read_batch(place: str, batch: Batch) -> list[ItemRows]:
    """What a worker does, of whichever engine."""
    store = plan.store_of(place)
    return [reading.read(store, item) for item in batch.items]
