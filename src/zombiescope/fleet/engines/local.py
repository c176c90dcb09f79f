"""Reads with processes of this machine: as many as it has cores, or as many as are asked for.

They are started anew, not forked: Arrow has threads. Each dies with whoever started it (PR_SET_PDEATHSIG): a report
that is interrupted leaves nobody behind. One that dies (killed for its memory, most likely) takes its batch
with it; the batch is tried once more, alone, and then given up as damage of its items.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from zombiescope.fleet import tables
from zombiescope.fleet.engines import BatchRows, read_batch
from zombiescope.fleet.reading import ItemRows
from zombiescope.fleet.results import Batch

_PR_SET_PDEATHSIG = 1
ALONE = 8
"""So few batches are read here: starting a process takes half a second."""


class LocalEngine:
    name = "duckdb"

    def __init__(self, workers: int | None = None) -> None:
        self._workers = workers or len(os.sched_getaffinity(0))

    def read(self, place: str, batches: Sequence[Batch]) -> Iterator[BatchRows]:
        if self._workers == 1 or sum(batch.size_bytes for batch in batches) < ALONE << 20:
            for batch in batches:
                yield BatchRows(batch, read_batch(place, batch))
            return
        lost = list(batches)
        for workers in (self._workers, 1):
            waiting, lost = lost, []
            for batch, rows in _side_by_side(place, waiting, workers):
                if rows is None:
                    lost.append(batch)
                else:
                    yield BatchRows(batch, rows)
        for batch in lost:
            yield BatchRows(batch, [given_up(item.node, item.day) for item in batch.items])


def _side_by_side(place: str, batches: Sequence[Batch], workers: int) -> Iterator[tuple[Batch, list[ItemRows] | None]]:
    """Each batch with its rows; None where its worker died, or may have."""
    if not batches:
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(batches)), context, _begin, (os.getpid(),)) as pool:
        pending: dict[Future[list[ItemRows]], Batch] = {}
        waiting = list(reversed(batches))
        try:
            while waiting or pending:
                while waiting and len(pending) < 2 * workers:
                    pending[pool.submit(read_batch, place, waiting[-1])] = waiting[-1]
                    waiting.pop()
                for done in wait(pending, return_when=FIRST_COMPLETED).done:
                    rows = done.result()
                    yield pending.pop(done), rows
        except BrokenProcessPool:
            for batch in (*pending.values(), *waiting):
                yield batch, None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(parent: int) -> None:
    """In a worker, before anything else."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command, which then ends us
    if os.getppid() != parent:
        os._exit(1)


def given_up(node: str, day: str) -> ItemRows:
    """What is written for an item whose reader died: that nothing of it was read. The fingerprint is no item's, so the
    next report tries again."""
    rows: tables.Rows = {name: [] for name in tables.TABLES}
    known = {"fingerprint": "", "damaged": 1, "damage": "its reader died; it may need more memory than there is"}
    rows["items"] = [tables.row("items", known)]
    return ItemRows(node, day, rows)
