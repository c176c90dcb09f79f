"""What was measured in a window: the only way in which detectors and patterns look at a recording.

Everything is read when it is first asked for and kept, what does not depend on the window even for other windows of the
same recording. A number that was not measured is None, and a pattern that
needs it can neither be confirmed nor ruled out by it.
"""

from __future__ import annotations

import re
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zombiescope.base.time import HOUR_US, SECOND_US
from zombiescope.diagnosis import core_grid, sample_grid
from zombiescope.diagnosis.core_grid import CoreGrid
from zombiescope.diagnosis.counter_facts import Count, CounterFacts, Three
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.diagnosis.thresholds import COUNTER_LATE_US, EARLIER_LEAST_US, GPU_PAST_US
from zombiescope.kernel.cpu import parse_list
from zombiescope.kernel.pci_address import device
from zombiescope.kernel.release import kernel_version
from zombiescope.query import gpu_use
from zombiescope.query.cgroups import CgroupHistory, CgroupsView
from zombiescope.query.containers import Container, containers
from zombiescope.query.disks import DiskHistory, disks
from zombiescope.query.events import events
from zombiescope.query.gpu_use import GpuSeries, Tenant, tenants
from zombiescope.query.python import PythonThread, threads
from zombiescope.query.waiting import Served, WaitingTask, served, waiting
from zombiescope.store import columns
from zombiescope.store.core_lists import ISOLATED, LEFT_OUT, listed
from zombiescope.store.event import Event
from zombiescope.store.gaps import Gap
from zombiescope.store.reader import Recording

__all__ = ["Count", "Facts"]


class Facts(CounterFacts):
    """One window of one recording."""

    def __init__(self, recording: Recording, start_us: int, end_us: int, beside: Facts | None = None) -> None:
        """`beside`: facts of another window of the same recording, which may know some of it already."""
        super().__init__(recording, start_us, end_us, None if beside is None else beside._always)
        self._only: tuple[int, int] | None = None
        self.asked_us = min(max(start_us, self.start_us), self.end_us - 1)
        """Windows are of whole seconds; what was asked for may begin within the first."""

    def with_history(self) -> Facts:
        """The same window, after its recording reached back (Recording.reach_back): who ran on which core is what it
        was, all else is asked anew. Names of containers may be older than what was read, so then everything is."""
        again = Facts(self.recording, self.asked_us, self.end_us)
        same = (again.start_us, again.end_us) == (self.start_us, self.end_us)
        if same and all(task.named.label or not task.container for task in self._all_samples.known.tasks.values()):
            again._kept = {what: self._kept[what] for what in ("samples", "cores") if what in self._kept}
            again._always = {"dictionaries": self.dictionaries}
        return again

    def during(self, from_us: int, to_us: int) -> Facts:
        """The same facts, but of the samples only those of a span: most questions are about one incident."""
        narrow = copy(self)
        narrow._only = (from_us, to_us)
        return narrow

    @property
    def node(self) -> dict[str, Any]:
        return self.recording.node

    @property
    def seconds(self) -> float:
        """Without the part of the first second that was not asked for."""
        return (self.end_us - self.asked_us) / 1e6

    @property
    def kernel(self) -> tuple[int, int] | None:
        """(5, 4); None when the recording does not say."""
        return kernel_version(self.node.get("kernel"))

    @property
    def hz(self) -> float:
        """Samples a second of a busy core."""
        return self._recorded_hz or self._all_samples.hz

    @property
    def _recorded_hz(self) -> float | None:
        hz = self.node.get("hz")
        return float(hz) if isinstance(hz, int | float) and hz > 0 else None

    @property
    def imported(self) -> bool:
        return isinstance(self.node.get("imported"), dict)

    # --- cores and samples -------------------------------------------------------------------------------------------

    @property
    def cores(self) -> CoreGrid | None:
        return self._keep("cores", lambda: core_grid.load(self.recording, self.start_us, self.end_us))

    @property
    def samples(self) -> SampleGrid:
        if self._only is None:
            return self._all_samples
        return self._keep(("samples", self._only), lambda: self._all_samples.between(*(self._only or (0, 0))))

    @property
    def _all_samples(self) -> SampleGrid:
        def read() -> SampleGrid:
            span = (self.start_us, self.end_us)
            return sample_grid.load(self.recording, *span, self._recorded_hz, self.dictionaries)

        return self._keep("samples", read)

    def samples_between(self, from_us: int, to_us: int) -> SampleGrid:
        """Of any part of the window, whatever incident these facts are about."""
        return self._all_samples.between(from_us, to_us)

    def before(self, at_us: int, long_us: int) -> Facts | None:
        """The time before a moment of the window, whether it is part of the window or not; None where less than two
        seconds of it were recorded. Kept with the window."""
        from_us = max(at_us - long_us, self.recording.start_us)
        if at_us - from_us < EARLIER_LEAST_US:
            return None
        return self._keep(("before", from_us, at_us), lambda: Facts(self.recording, from_us, at_us, self))

    @property
    def is_sampled(self) -> bool:
        """Whether any stack was kept in the window."""
        return len(self._all_samples) > 0

    @property
    def cpus(self) -> int:
        if self.cores is not None:
            return len(self.cores.cpus)
        cpu = self._all_samples.cpu
        return self._keep("cpus", lambda: len(np.unique(cpu[cpu >= 0])) or 1)

    @property
    def isolated(self) -> frozenset[int]:
        """Cores that the scheduler gives nobody who does not ask for them (isolcpus)."""
        return listed(self.node, ISOLATED)

    @property
    def left_out(self) -> frozenset[int]:
        """Cores that are not sampled because somebody asked for that: what is not seen there is no symptom."""
        return listed(self.node, LEFT_OUT)

    # --- events, gaps ------------------------------------------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        return self._keep("events", lambda: events(self.recording, self.start_us, self.end_us))

    @property
    def gaps(self) -> list[Gap]:
        return self._keep("gaps", lambda: self.recording.gaps(self.start_us, self.end_us))

    @property
    def programs(self) -> pa.Table:
        """Command line and program of each task of the window; on a large node there are thousands."""
        names = ("pid", "cmdline", "exe")
        return self._keep("programs", lambda: self.recording.table("tasks", self.start_us, self.end_us, names))

    # --- cgroups -----------------------------------------------------------------------------------------------------

    @property
    def cgroups(self) -> CgroupsView:
        return self.cgroups_at(self.end_us)

    def cgroups_at(self, at_us: int) -> CgroupsView:
        """Counted and charged in the hour up to a moment; each part of a recording says every charge again."""
        return self.always(("cgroups", at_us, self.start_us), lambda: self._cgroups.at(at_us))

    @property
    def counts_cgroups(self) -> bool:
        """Whether memory cgroups were counted in the hour up to the window's end."""
        return self._cgroups.is_counted(self.end_us)

    def most_cgroups_us(self, from_us: int, to_us: int) -> int | None:
        """When there were most of them in a span."""
        return self._cgroups.most_us(from_us, to_us)

    @property
    def _cgroups(self) -> CgroupHistory:
        return self._keep(
            "cgroups",
            lambda: CgroupHistory(
                self.recording, self.start_us - HOUR_US, self.end_us + COUNTER_LATE_US, self.start_us
            ),
        )

    @property
    def recent_containers(self) -> dict[str, Container]:
        """By id, those of the hour before the window and of the window itself."""
        return self._keep(
            "recent containers",
            lambda: containers(self.recording, self.start_us - HOUR_US, self.end_us + COUNTER_LATE_US),
        )

    def cgroup_rates(self, from_us: int, to_us: int) -> tuple[Count, Count] | None:
        """Memory cgroups made and removed in a span. None where they were not counted, or by two recorders."""
        time, created, removed = self._ledger
        inside = np.flatnonzero((time >= from_us - SECOND_US) & (time <= to_us + SECOND_US))
        if len(inside) < 2:
            return None
        first, last = int(inside[0]), int(inside[-1])
        seconds = float(time[last] - time[first]) / 1e6
        made, gone = int(created[last] - created[first]), int(removed[last] - removed[first])
        return None if made < 0 or gone < 0 else (Count(made, seconds), Count(gone, seconds))

    @property
    def _ledger(self) -> Three:
        """Time, and how many memory cgroups were made and removed by then."""

        def read() -> Three:
            rows = self.recording.table(
                "census", self.start_us, self.end_us + COUNTER_LATE_US, ("time", "created", "removed")
            )
            rows = columns.take(rows, np.flatnonzero(columns.present(rows.column("created"))))
            return tuple(columns.numbers(rows.column(name)) for name in ("time", "created", "removed"))  # type: ignore[return-value]

        return self._keep("ledger", read)

    def cgroup_churn_rates(self) -> npt.NDArray[np.float64]:
        """Memory cgroups that were made and removed, a second, in up to ten parts of the window."""
        part_us = max(SECOND_US, (self.end_us - self.start_us) // 10)
        parts = (self.cgroup_rates(at, at + part_us) for at in range(self.start_us, self.end_us - part_us + 1, part_us))
        return np.array([min(made.rate, gone.rate) for made, gone in filter(None, parts)])

    @property
    def containers(self) -> dict[str, Container]:
        """Those that were there in the window or ended in it, by id."""
        return self._keep("containers", lambda: containers(self.recording, self.start_us, self.end_us))

    @property
    def cgroup_stats(self) -> list[dict[str, Any]]:
        def read() -> list[dict[str, Any]]:
            return columns.records(self.recording.table("cgroup_stats", self.start_us, self.end_us + 11 * SECOND_US))

        return self._keep("cgroup_stats", read)

    @property
    def queues(self) -> list[dict[str, Any]]:
        """Which cores serve a NIC queue, as it was at the end of the window."""

        def read() -> list[dict[str, Any]]:
            rows = columns.records(self.recording.table("queues", self.start_us - HOUR_US, self.end_us))
            return list({(row["nic"], row["queue"], row["irq"]): row for row in rows}.values())

        return self._keep("queues", read)

    def served_by(self, nic: str | None, queue: int | None = None, at_us: int | None = None) -> frozenset[int] | None:
        """The cores that served a card at some time of the last hour, because irqbalance moves queues; of the only card
        where none is named. With a queue: those that served it at that moment, where that is known. None where nothing
        of it was recorded."""

        def read() -> dict[str, list[tuple[int, int | None, frozenset[int]]]]:
            served: dict[str, list[tuple[int, int | None, frozenset[int]]]] = {}
            for row in columns.records(self.recording.table("queues", self.start_us - HOUR_US, self.end_us)):
                cpus = frozenset(parse_list(str(row["cpus"] or "").encode()))
                served.setdefault(str(row["nic"]), []).append((int(row["time"]), _queue_number(row["queue"]), cpus))
            return served

        served = self._keep("served_by", read)
        if nic is None and len(served) == 1:
            nic = next(iter(served))
        known = served.get(nic or "", [])
        if queue is not None:
            # A card may have an interrupt for each direction of a queue: the last row of each name before the moment.
            of_it = [(at, cpus) for at, number, cpus in known if number == queue and (at_us is None or at <= at_us)]
            newest = max((at for at, _ in of_it), default=0)
            exact = frozenset(cpu for at, cpus in of_it if at == newest for cpu in cpus)
            if exact:
                return exact
        return frozenset(cpu for _, _, cpus in known for cpu in cpus) or None

    # --- GPUs --------------------------------------------------------------------------------------------------------

    @property
    def gpus(self) -> dict[int, GpuSeries]:
        """Their seconds, from two minutes before the window on: each is judged by its own past."""
        return self._keep(
            "gpus", lambda: gpu_use.load(self.recording, self.start_us - GPU_PAST_US, self.end_us + SECOND_US - 1)
        )

    @property
    def gpu_tenants(self) -> list[Tenant]:
        """Processes on GPUs in the window and the two minutes before it."""
        return self._keep(
            "tenants", lambda: tenants(self.recording, self.start_us - GPU_PAST_US, self.end_us + COUNTER_LATE_US)
        )

    @property
    def gpu_rows(self) -> list[dict[str, Any]]:
        """What was known of each GPU in the hour up to the window's end, in the order of time."""
        return self._keep(
            "gpu rows",
            lambda: columns.records(
                self.recording.table("gpus", self.start_us - HOUR_US, self.end_us + COUNTER_LATE_US)
            ),
        )

    def gpu_number(self, address: object) -> int | None:
        """The number of the GPU at a PCI address."""
        wanted = device(str(address or ""))
        rows = self.gpu_rows if wanted is not None else ()
        return next((row["gpu"] for row in rows if device(row["pci"]) == wanted), None)

    def gpu_job(self, event: Event) -> str | None:
        """Whose a channel was that a line of the driver is about; the program's name where it is not known whose."""
        pid, comm = event.fields.get("pid"), event.fields.get("comm")
        job = next((one.job for one in self.gpu_tenants if one.pid == pid), None)
        return job or (str(comm) if comm else None)

    # --- who waits, and for what -------------------------------------------------------------------------------------

    @property
    def waiting(self) -> list[WaitingTask]:
        """Tasks that were found in the same wait at two looks or more."""
        return self._keep("waiting", lambda: waiting(self.recording, self.start_us, self.end_us))

    @property
    def disks(self) -> dict[str, DiskHistory]:
        return self._keep("disks", lambda: disks(self.recording, self.start_us, self.end_us))

    @property
    def served(self) -> list[Served]:
        """Mounts that another machine or a program serves, as they were in the window."""
        return self._keep("served", lambda: served(self.recording, self.start_us - HOUR_US, self.end_us))

    @property
    def python(self) -> list[PythonThread]:
        """What threads were doing in Python in the window."""
        return self._keep("python", lambda: threads(self.recording, self.start_us, self.end_us))

    def python_between(self, from_us: int, to_us: int) -> list[PythonThread]:
        """The same of a part of the window."""
        found = []
        for each in self.python:
            doing = [one for one in each.doing if one.to_us >= from_us and one.from_us < to_us]
            if doing:
                found.append(PythonThread(each.pid, each.tid, each.comm, doing))
        return found

    # --- what cannot be known ----------------------------------------------------------------------------------------

    @property
    def missing(self) -> list[dict[str, Any]]:
        listed = self.node.get("missing")
        return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []

    def lacks(self, source: str) -> bool:
        """Whether a source was missing, so that nothing of it means nothing."""
        return any(entry.get("source") == source for entry in self.missing)


def _queue_number(name: object) -> int | None:
    """5 of "5", "eth0-Tx-Rx-5" and "mlx5_comp5@pci:0000:00:05.0"."""
    found = re.search(r"(\d+)$", str(name).partition("@")[0])
    return int(found[1]) if found else None
