"""What a recorder is made of: every part is opened here in order, at the start, and closed in order, at the end.

A part that raises while it is opened is a missing source (stage.py), and the recorder starts without it: only a
directory that cannot be written, or a recorder that is there already, keeps it from starting. Parts know each other
where one has to tell another something, and that is said here; what they do each second is in recorder.py."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from zombiescope.base import safe_files
from zombiescope.base.errors import UserError
from zombiescope.kernel import cpu, pstore
from zombiescope.kernel.host import Host
from zombiescope.kernel.perf_event import monotonic_ns
from zombiescope.node.systemd.watcher import SystemdWatcher
from zombiescope.recorder import members, node, rings, sampling, state
from zombiescope.recorder.alarm import Alarm
from zombiescope.recorder.alarm_feed import AlarmFeed
from zombiescope.recorder.cgroups import CgroupTracker
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.closer_looks import SOURCE as CLOSER
from zombiescope.recorder.closer_looks import CloserLooks
from zombiescope.recorder.compactor import Compactor
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.container_lookup import ContainerLookup
from zombiescope.recorder.containers import ContainerTracker
from zombiescope.recorder.cores import Cores
from zombiescope.recorder.cost import CostBook
from zombiescope.recorder.counters import Counters
from zombiescope.recorder.disk import DiskThread, Inline
from zombiescope.recorder.doctor import Doctor
from zombiescope.recorder.feed import FeedSocket
from zombiescope.recorder.gpus import GpuTracker
from zombiescope.recorder.hardware import REFUSAL
from zombiescope.recorder.heartbeats import Heartbeats
from zombiescope.recorder.hog_files import HogFiles
from zombiescope.recorder.housekeeping import Housekeeping, StateFile
from zombiescope.recorder.intake import MARKS, EventIntake
from zombiescope.recorder.kernel_log import CONSOLE, KernelLog
from zombiescope.recorder.lookup import Lookup
from zombiescope.recorder.marks import MarkSocket
from zombiescope.recorder.nic import TX_TIMEOUT
from zombiescope.recorder.online import OnlineCpus, left_out
from zombiescope.recorder.page import PageProcess, PageSettings
from zombiescope.recorder.pythons import SOURCE as PYTHON
from zombiescope.recorder.pythons import PythonTracker
from zombiescope.recorder.quiet_processes import QuietProcesses
from zombiescope.recorder.rollup import Rollup
from zombiescope.recorder.sample_writer import SampleWriter
from zombiescope.recorder.schedule import SOURCE as SCHEDULE
from zombiescope.recorder.schedule import Schedule
from zombiescope.recorder.segments import Segments
from zombiescope.recorder.shared_memory import SharedMemory
from zombiescope.recorder.source import Context, OpenSources
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.sources.disks import Disks
from zombiescope.recorder.stage import Barrier
from zombiescope.recorder.upkeep import Upkeep
from zombiescope.recorder.waits import Waits
from zombiescope.recorder.whole_stacks import SOURCE as WHOLE
from zombiescope.recorder.whole_stacks import WholeStacks
from zombiescope.store import locate, node_directory, schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event
from zombiescope.store.health import LIVE_DIAGNOSIS
from zombiescope.store.loss import SAMPLES
from zombiescope.store.node_directory import Lock
from zombiescope.store.segment_writer import SegmentWriter

LAST_WRITE_S = 5.0
"""How long the end waits for a disk that does not answer."""


class Parts:
    """Raises AlreadyRecordingError, UnsafePlaceError or OSError when it cannot start.

    With another `root` kernel files are read below it, no ring is opened and nobody is asked over D-Bus.
    """

    def __init__(self, config: RecorderConfig, root: str = "/") -> None:
        self.config = config
        self.clock = WallClock()
        now = self.started_us = self.clock.now_us()
        self.sources = Sources()
        self.barrier = Barrier(self.sources, self.clock.now_us, lambda: monotonic_ns() / 1e9)
        start = self.barrier
        here = start.part("host", node.this_host, root)
        self.name = config.node or here.hostname
        self.boot_id = here.boot_id
        self.node_dir = Path(config.dir).resolve() / f"node={self.name}"
        node_directory.prepare(self.node_dir, read_by_all=config.read_by_all)
        self._lock = Lock(self.node_dir, now)
        saved = state.load(self.node_dir, here.boot_id)

        self.online = start.part("online cpus", OnlineCpus, root)
        known: tuple[int, ...] = start.step("possible cpus", lambda: cpu.possible(root) or (), ())
        possible = max(*known, *self.online.cpus, 0) + 1
        chosen = start.step(
            "sampling", lambda: sampling.choose(config.event, config.hz, self.online.cpus, root), sampling.USUAL
        )
        config = self.config = replace(config, hz=chosen.clock.hz, event=chosen.clock.name)
        self.sampling = chosen
        self.left_out = start.step("isolated cpus", lambda: left_out(config.leave_out_cores, root), frozenset[int]())
        self.batch = Batch()
        self._open_rings(possible, saved, now, root)
        start.step("ledger", lambda: self._restore_ledger(saved, now), None)
        start.step("cgroup directories", lambda: self.cgroups.begin(now), None)
        self._open_readers(now, root)
        self._open_schedule(possible, now, root)
        self._open_writers(here, root)
        self._connect(now)
        self._open_housekeeping(here, possible, now, root)
        start.step("crashes before this boot", lambda: self._tell_crashes(saved, now, root), None)
        self.page: PageProcess | None = None
        self.heartbeats = Heartbeats(self.sources, self.intake.put)
        members.register(self)

    # --- the start ----------------------------------------------------------------------------------------------------

    def _open_rings(self, possible: int, saved: dict[str, Any], now_us: int, root: str) -> None:
        start, sources = self.barrier, self.sources
        rings.raise_file_limit()
        host_pids = root != "/" or start.step(
            "host PID namespace", lambda: rings.in_host_pid_namespace(sources, now_us), True
        )
        self.rings = start.part(
            SAMPLES,
            lambda at: rings.PerfRings(
                self.sampling.clock,
                possible,
                sources,
                host_pids=host_pids,
                now_us=now_us,
                root=at,
                left_out=self.left_out,
                online=self.online.cpus,
            ),
            root,
        )
        seen = saved.get("kmsg_seq")
        self.kernel_log = start.part("kernel log", lambda at: KernelLog(self.clock, sources, seen, now_us, at), root)
        comm_of = self.rings.sampler.comm
        self.cgroups = start.part(
            "memory cgroups", lambda at: CgroupTracker(self.batch, sources, comm_of, now_us, at), root
        )
        self.shared_memory = start.part(
            "shared memory",
            lambda at: SharedMemory(lambda *level: self.counters.gauge(*level), lambda: self.containers.places(), at),
            root,
        )
        self.lookup = Lookup(self.cgroups.number_of("memory"), self.cgroups.number_of("cpu"), root=root)
        self.container_lookup = ContainerLookup(root)
        self.containers = self.cgroups.containers = start.part(
            "containers", lambda at: ContainerTracker(self.batch, self.container_lookup.ask, at, sources), root
        )
        self.containers.mount = self.cgroups.hierarchy.mount if self.cgroups.hierarchy else None
        traced = [TX_TIMEOUT, *self.cgroups.tracepoints(), *self.containers.tracepoints()]
        traced += [*self.kernel_log.tracepoints(), self.shared_memory.tracepoint()]
        start.step("tracepoints", lambda: self.rings.trace(traced, now_us), None)
        is_traced = CONSOLE in self.rings.kinds
        start.step("kernel log", lambda: self.kernel_log.settle(console=is_traced, now_us=now_us), None)
        start.step(SAMPLES, lambda: self.rings.follow(self.online.cpus, now_us), None)

    def _open_readers(self, now_us: int, root: str) -> None:
        start = self.barrier
        self.samples = SampleWriter(self.rings.sampler, self.lookup, self.batch)
        self.cores = start.part("per-core time", self._new_cores, root)
        start.step("ksoftirqd run delay", lambda: self.cores.follow(self.online.cpus, now_us), None)
        self.counters = start.part("counters", lambda at: Counters(self.batch, self.sources, start, at), root)
        start.step("host network namespace", lambda: self.counters.note_network(now_us), None)
        start.step("host file system", lambda: node.note_root(self.sources, now_us, root), None)
        held, library = self.node_dir / "gpu.lock", self.config.gpu_library or None
        gauge = self.counters.gauge
        self.gpus = start.part("gpu", lambda at: GpuTracker(self.batch, self.sources, at, library, held, gauge), root)
        self.gpus.runtime = locate.runtime_directory() if root == "/" else None
        context = Context(self.batch, self.counters.count, gauge, self.cgroups.leaves)
        self.read = OpenSources(context, self.sources, start, root)
        self.waits = start.part("waiting tasks", self._new_waits, root)
        self.hog_files = start.part("hog files", lambda at: HogFiles(at, enabled=self.config.closer_looks), root)
        self.quiet = start.part("quiet processes", lambda at: QuietProcesses(self.batch, at), root)
        self.python = start.part(PYTHON, self._new_python, root)
        self.whole_stacks = start.part(WHOLE, self._new_whole_stacks, root)
        self.closer_looks = start.part(CLOSER, self._new_closer_looks, root)

    def _open_schedule(self, possible: int, now_us: int, root: str) -> None:
        self.schedule = self.barrier.part(
            SCHEDULE,
            lambda at: Schedule(
                self.batch,
                self.sources,
                self.rings.sampler,
                self.clock.wall_us,
                possible=possible,
                left_out=self.left_out,
                root=at,
                enabled=self.config.schedule,
            ),
            root,
        )
        self.schedule.cards, self.schedule.on_gpu = self.counters.card_cores, lambda: self.gpus.pids
        self.barrier.step(SCHEDULE, lambda: self.schedule.begin(now_us), None)

    def _new_cores(self, root: str) -> Cores:
        return Cores(self.batch, self.sources, self.config.hz, root, self.left_out)

    def _new_waits(self, root: str) -> Waits:
        return Waits(self.batch, self.sources, self.read.one(Disks), self.counters.gauge, root)

    def _new_python(self, root: str) -> PythonTracker:
        is_read = self.config.python and root == "/"
        return PythonTracker(self.batch, self.sources, self.rings.sampler, self.clock.wall_us, enabled=is_read)

    def _new_whole_stacks(self, root: str) -> WholeStacks:
        is_read = self.config.whole_stacks and root == "/"
        return WholeStacks(self.batch, self.sources, self.rings.sampler, self.clock.wall_us, enabled=is_read)

    def _new_closer_looks(self, root: str) -> CloserLooks:
        is_taken = self.config.closer_looks and self.config.diagnose and root == "/"
        return CloserLooks(self.batch, self.sources, self.clock.wall_us, enabled=is_taken)

    def _open_writers(self, here: Host, root: str) -> None:
        disk = self.disk = DiskThread() if root == "/" else Inline()
        about: dict[str, Any] = {"labels": {**here.labels, **self.config.labels}, "kernel": here.release}
        self.about = about
        self.rollup = Rollup(self.node_dir, here.boot_id or "", disk.named("rollup file"), about)
        self.writer = SegmentWriter(self.node_dir / "log", disk.named("frames"))
        self.segments = Segments(self.writer, self.batch, self.sources, self.barrier, self._segment_header())
        self.compactor = Compactor(self.node_dir, int(self.config.compact_every_s * 1e6))

    def _connect(self, now_us: int) -> None:
        """Who tells whom: events go to the intake, and from there to whoever listens."""
        start, config = self.barrier, self.config
        self.doctor = start.step(LIVE_DIAGNOSIS, lambda: Doctor(self.node_dir), None) if config.diagnose else None
        self.suspicions = self.doctor.alarm if self.doctor else Alarm()
        self.alarm = AlarmFeed(self.suspicions, self.counters, config.hz, now_us)
        self.intake = EventIntake(self.batch, self.rollup, self.alarm, self.barrier, self.clock, self.kernel_log)
        self.feed: FeedSocket | None = None
        self.counters.hardware.tell = self.counters.peers.tell = self.intake.put
        self.intake.listeners[REFUSAL] = self.counters.hardware.refused
        self.intake.listeners["mark"] = self.schedule.marked
        self.waits.tell = self.quiet.tell = self.python.tell = self.intake.put
        self.hog_files.tell = self.closer_looks.tell = self.intake.put
        self.waits.suspect = self.quiet.suspect = self.python.ranks.suspect = self.alarm.waiting
        self.schedule.suspects = self.alarm.suspects
        if self.doctor is not None:
            self.doctor.unexplained, self.closer_looks.done = self.closer_looks.suspect, self.doctor.look_again

    def _open_housekeeping(self, here: Host, possible: int, now_us: int, root: str) -> None:
        start, config, disk = self.barrier, self.config, self.disk
        systemd = self.systemd = SystemdWatcher(None, self.intake.unit_events.append)
        if root == "/":
            start.step("systemd", systemd.start, None)
        put, certain_us = self.intake.put, self.clock.certain_us
        upkeep = Upkeep(self.node_dir, config, self.sources, self.writer, self.compactor, put, disk, certain_us)
        self.cost = CostBook(self.batch, self.rings.sampler, self.writer, lambda: self.children_cpu_us)
        nics: dict[str, str] = start.step("NIC drivers", self.counters.drivers, {})
        more = {
            "started_us": now_us, "kernel_log": self.kernel_log.source, "nics": nics, "gpu_driver": self.gpus.driver,
            "sampling": self.sampling.why,
        }  # fmt: skip
        described = start.part(
            "node", lambda at: node.describe(config, here, self.online.cpus, possible, more, at), root
        )
        node_file = self.node_file = node.NodeFile(self.node_dir, described, disk.named("node file"))
        state_file = StateFile(
            self.node_dir, self.boot_id, self.cgroups, self.kernel_log, now_us, disk.named("state file")
        )
        self.housekeeping = Housekeeping(self.barrier, self.sources, systemd, node_file, upkeep, state_file)

    def _restore_ledger(self, saved: dict[str, Any], now_us: int) -> None:
        memory, ledger = self.cgroups.hierarchy, saved.get("ledger")
        if ledger and memory is not None and saved.get("hierarchy") == memory.number:
            self.cgroups.ledger.restore(ledger, now_us)

    def _tell_crashes(self, saved: dict[str, Any], now_us: int, root: str) -> None:
        """Once a boot: a recorder that was started again finds the state of the one before it."""
        if saved:
            return
        boot_us = now_us - time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000
        for one in pstore.before_this_boot(boot_us, root):
            where = f", in {one.function}" if one.function else ""
            ago = (
                f"{(boot_us - one.at_us) / 60e6:.0f} minutes before this boot" if one.at_us < boot_us else "just before"
            )
            text = f"the kernel crashed {ago}: {one.why}{where} ({one.file})"
            fields = {"at_us": one.at_us, "why": one.why, "function": one.function, "file": one.file}
            self.intake.put(Event(now_us, "panic_before", "pstore", "warning", text, fields))

    def _segment_header(self) -> dict[str, Any]:
        return {
            "format": schema.FORMAT, "node": self.name, "boot": self.boot_id,
            "hz": self.config.hz, "event": self.config.event, "interval_us": int(self.config.interval_s * 1e6),
            "recorder_started_us": self.started_us,
        }  # fmt: skip

    def show_page(self, given: PageSettings) -> None:
        """From now on, and again whenever it ends."""
        self.page = PageProcess(given, self.node_dir.parent, self.name)
        self.heartbeats.add_process(self.page, "the page cannot be reached")

    def open_marks(self, path: Path | None) -> None:
        """Listens for marks; without the socket everything else works. None: no place is left for one."""
        if path is None:
            end_one = "end one of those that 'zombiescope status' lists"
            self.sources.lacks(MARKS, "too many recorders run on this machine", end_one, self.started_us)
            return
        try:
            safe_files.make_public_directory(path.parent)
            self.intake.marks = MarkSocket(path)
            self.feed = FeedSocket(path.with_name(path.name.replace("mark", "feed", 1)))
        except UserError as error:
            self.sources.lacks(MARKS, error.what, error.fix or "", self.started_us)
        except OSError as error:
            self.sources.lacks(
                MARKS, f"{path.parent}: {error.strerror}", "a writable runtime directory", self.started_us
            )

    # --- the end ------------------------------------------------------------------------------------------------------

    def _closing_steps(self) -> Iterator[Callable[[], object]]:
        """Once the last frame is written: every process, thread and descriptor."""
        if self.page is not None:
            yield self.page.stop
        yield self.compactor.process.stop
        if self.doctor is not None:
            yield partial(self.doctor.stop, self.clock.now_us())
        yield self.gpus.process.stop
        yield self.python.process.stop
        yield self.whole_stacks.process.stop
        yield self.closer_looks.process.stop
        yield self.housekeeping.close
        yield lambda: self.disk.settle(LAST_WRITE_S)
        yield self.lookup.stop
        yield self.container_lookup.stop
        if self.feed is not None:
            yield self.feed.close
        yield self.waits.close
        yield self.read.close
        yield self.heartbeats.close
        yield self.schedule.close
        for part in (
            self.intake, self.kernel_log, self.online, self.cores, self.counters, self.shared_memory, self.cgroups,
            self.hog_files, self.rings,
        ):  # fmt: skip
            yield part.close
        yield self._lock.release

    @property
    def children_cpu_us(self) -> int:
        asked = (self.gpus, self.counters.hardware, self.waits, self.python, self.whole_stacks, self.closer_looks)
        readers_us = sum(one.process.cpu_us for one in asked)
        return self.compactor.process.cpu_us + readers_us + (self.doctor.process.cpu_us if self.doctor else 0)
