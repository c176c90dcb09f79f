"""Reads with the tasks of a Ray cluster: one that runs (its address), or one that is started on this machine.

A task is one batch. It returns rows of statistics and nothing else, so workers have to reach the root (an object store,
or a directory that all of them mount) and have this package installed. A task whose worker or node dies is run again by
Ray; one that cannot be run becomes damage of its items. As many tasks are under way as the cluster has cores, twice:
more would only wait in its memory.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from typing import Any

from zombiescope.base.errors import UserError
from zombiescope.base.packages import install
from zombiescope.fleet.engines import BatchRows, read_batch
from zombiescope.fleet.engines.local import given_up
from zombiescope.fleet.results import Batch

RETRIES = 3
CONNECT_S = 5
MEMORY_BYTES = 512 << 20
"""What a task may need, told to the scheduler: a node that has less runs fewer at a time."""


class NoRayError(UserError):
    """Ray is an optional part, or its cluster is not there."""


class RayEngine:
    name = "ray"

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        """`address`: of a running cluster, "auto" for the one that this machine is part of; None: one is started here,
        with so many workers, and ended."""
        self._address, self._workers = address, workers

    def read(self, place: str, batches: Sequence[Batch]) -> Iterator[BatchRows]:
        if not batches:
            return
        ray = _ray()
        self._join(ray)
        try:
            yield from _tasks(ray, place, batches)
        finally:
            ray.shutdown()

    def _join(self, ray: Any) -> None:
        self._look_for_it()
        settings: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False, "ignore_reinit_error": True}
        if self._address is None:
            settings |= (
                {"include_dashboard": False, "num_cpus": self._workers}
                if self._workers
                else {"include_dashboard": False}
            )
        else:
            settings["address"] = self._address
        try:
            ray.init(**settings)
        except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise self._absent(error) from error

    def _look_for_it(self) -> None:
        """Ray itself waits for five minutes for a cluster that is not there."""
        host, colon, port = (self._address or "").rpartition("://")[2].rpartition(":")
        if not colon or not port.isdecimal():
            return
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise self._absent(error) from error

    def _absent(self, error: BaseException) -> NoRayError:
        why = " ".join(str(error).split())[:200]
        where = self._address or "this machine"
        return NoRayError(f"there is no Ray cluster at {where}: {why}", "name one with --ray-address, or leave it out")


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise NoRayError("Ray is not installed", f"{install('ray')}; or use --engine duckdb") from error
    return ray


def _tasks(ray: Any, place: str, batches: Sequence[Batch]) -> Iterator[BatchRows]:
    task = ray.remote(num_cpus=1, max_retries=RETRIES, memory=MEMORY_BYTES)(read_batch)
    at_once = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
    waiting = list(reversed(batches))
    pending: dict[Any, Batch] = {}
    while waiting or pending:
        while waiting and len(pending) < at_once:
            batch = waiting.pop()
            pending[task.remote(place, batch)] = batch
        done, _ = ray.wait(list(pending), num_returns=1)
        for reference in done:
            batch = pending.pop(reference)
            try:
                rows = ray.get(reference)
            except ray.exceptions.RayError:
                rows = [given_up(item.node, item.day) for item in batch.items]
            yield BatchRows(batch, rows)
