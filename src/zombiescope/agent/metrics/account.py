"""Counts what the recorder writes, frame by frame, as it is written: a scrape every minute misses no second.

It follows the recording as `top` does, without numpy and pyarrow. The segment that is there when it begins is read from
its start, because ids and totals mean nothing without what came before; frames that were counted already, by whoever
counted before this process, are taken for that and not counted again. How far it has counted is told to the supervisor,
which tells the next one.
"""

from __future__ import annotations

import importlib.metadata
import platform
import threading
import time
from typing import Any

from zombiescope.agent.metrics import families
from zombiescope.agent.metrics.cgroups_account import CgroupsAccount
from zombiescope.agent.metrics.cores_account import CoresAccount
from zombiescope.agent.metrics.cost_account import CostAccount
from zombiescope.agent.metrics.events_account import EventsAccount
from zombiescope.agent.metrics.gpu_seconds_account import TABLES as GPU_TABLES
from zombiescope.agent.metrics.gpu_seconds_account import GpuSecondsAccount
from zombiescope.agent.metrics.gpus_account import GpusAccount
from zombiescope.agent.metrics.incident_account import IncidentAccount
from zombiescope.agent.metrics.missing_sources import MissingSources
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.base.missing import Missing
from zombiescope.store import schema
from zombiescope.store.log import LogFrame
from zombiescope.store.tail import Tail

POLL_S = 5.0
"""Every frame counts however late it is read; this is how old a scrape may be."""


class NodeAccount:
    """`newest_s` is asked from the door's thread."""

    name = "account"

    def __init__(self) -> None:
        self._newest_us: int | None = None
        self.missing: tuple[Missing, ...] = ()
        """Sources that cannot be read now, as the recorder reports them."""

    def newest_s(self) -> float | None:
        return None if self._newest_us is None else self._newest_us / 1e6

    def run(self, context: Context, stop: threading.Event) -> None:
        """After a failure it goes on behind what it has counted."""
        counted_us = context.progress.counted_us
        since_us = counted_us if counted_us is not None else int(time.time() * 1e6)
        books = Books(context, since_us)
        context.beat(POLL_S)
        with Tail(context.node_dir) as tail:
            while not stop.wait(POLL_S):
                for frame in tail.poll():
                    context.beat(POLL_S)
                    context.worked()
                    books.take(frame, tail.header)
                    self._newest_us = frame.wall_us
                    context.progress.counted_us = max(frame.wall_us, context.progress.counted_us or 0)
                books.publish()
                self.missing = books.missing.read()
                context.say("ok")
                context.beat(POLL_S)


class Books:
    """All accounts of the node."""

    def __init__(self, context: Context, since_us: int) -> None:
        tally = context.tally
        self._tally: Tally = tally
        self.missing = MissingSources(context.node_dir)
        self._since_us = since_us
        self._run: object = None
        self._newest_us = 0
        self.cores = CoresAccount(tally)
        self.cgroups = CgroupsAccount(tally)
        self.events = EventsAccount(tally, since_us)
        self.gpus = GpusAccount(tally)
        self.gpu_seconds = GpuSecondsAccount(tally)
        self.cost = CostAccount(tally, context.node_dir)
        self.incidents = IncidentAccount(tally, context.node_dir, since_us / 1e6)
        tally.set(families.BUILD, 1, importlib.metadata.version("zombiescope"), platform.python_version())

    def take(self, frame: LogFrame, header: dict[str, Any]) -> None:
        if header.get("recorder_started_us") != self._run:
            self._begin_run(header)
        counted = frame.wall_us > self._since_us
        for block in frame.blocks:
            if block.table.name in GPU_TABLES:
                self.gpu_seconds.update(block, counted)
            if block.table is schema.CORES:
                self.cores.update(block, counted)
            elif block.table is schema.COST:
                self.cost.update(block, counted)
            elif block.table in (schema.GPU_SECONDS, schema.GPUS):
                self.gpus.update(block, counted)
            else:
                self.cgroups.update(block, counted)
        self.events.update(frame, counted)
        if frame.closes:
            self.cgroups.end_segment()
            self.gpu_seconds.end_segment()
        self._newest_us = frame.wall_us
        self._tally.set(families.NEWEST, frame.wall_us / 1e6)

    def _begin_run(self, header: dict[str, Any]) -> None:
        self._run = header.get("recorder_started_us")
        self.cgroups.begin_run()
        if isinstance(self._run, int):
            self._tally.set(families.STARTED, self._run / 1e6)
        self._take_missing()

    def _take_missing(self) -> None:
        """A source that fails later is missing from then on: the recorder replaces node.json when one does."""
        sources = sorted({one.source for one in self.missing.read()})
        self.cgroups.kernel = self.missing.kernel
        self._tally.replace(families.MISSING, (((source,), 1.0) for source in sources))
        if self._newest_us > self._since_us:
            self.events.miss(sources, self._newest_us)

    def publish(self) -> None:
        self._take_missing()
        for account in (self.cores, self.cgroups, self.cost):
            account.publish()
        self.gpus.publish(self._newest_us)
        self.gpu_seconds.publish()
        self.incidents.poll()
