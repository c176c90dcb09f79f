"""The recorder: its parts, and the stages of a tick, of a write and of the end of a segment.

The loop (loop.py) calls in here; nothing in here waits. One second goes like this: rings are drained whenever the
kernel says so and at the tick; questions about new processes and addresses go to the lookup thread; counters are
read; a moment later, when the answers are there, one frame is written.

Whatever is done is a stage behind a barrier (stage.py): a source that raises becomes a gap, the recording goes on. At
the start, too: only a directory that cannot be written, or a recorder that is there already, keeps it from starting."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from zombiescope import _safe_files
from zombiescope._errors import UserError
from zombiescope.kernel import cpu
from zombiescope.kernel.perf_event import Clock, monotonic_ns
from zombiescope.recorder import node, result, rings, state
from zombiescope.recorder.alarm_feed import AlarmFeed
from zombiescope.recorder.cgroups import CgroupTracker
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.compactor import Compactor
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.container_lookup import ContainerLookup
from zombiescope.recorder.containers import SOURCE as CONTAINERS
from zombiescope.recorder.containers import ContainerTracker
from zombiescope.recorder.cores import Cores
from zombiescope.recorder.cost import CostBook
from zombiescope.recorder.counters import Counters
from zombiescope.recorder.doctor import Doctor
from zombiescope.recorder.housekeeping import Housekeeping, StateFile
from zombiescope.recorder.intake import MARKS, EventIntake
from zombiescope.recorder.kernel_log import CONSOLE, KernelLog
from zombiescope.recorder.lookup import Lookup
from zombiescope.recorder.marks import MarkSocket
from zombiescope.recorder.nic import TX_TIMEOUT
from zombiescope.recorder.online import OnlineCpus, left_out
from zombiescope.recorder.rollup import Rollup
from zombiescope.recorder.sample_writer import SampleWriter
from zombiescope.recorder.segments import Segments
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier, Stage
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.upkeep import Upkeep
from zombiescope.recording import node_directory, schema
from zombiescope.recording.batch import Batch
from zombiescope.recording.event import Event
from zombiescope.recording.lock import Lock
from zombiescope.recording.loss import SAMPLES, loss
from zombiescope.recording.segment_writer import SegmentWriter
from zombiescope.systemd.watcher import SystemdWatcher

UNSCHEDULED_US = 3_000_000


class Recorder:
    """Owns all parts. Raises AlreadyRecordingError, UnsafePlaceError or OSError when it cannot start.

    With another `root` it replays: kernel files are read below it, no ring is opened and nobody is asked over D-Bus;
    records are fed to the sampler and unit events put into the intake by whoever replays.
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
        self.left_out = start.step("isolated cpus", lambda: left_out(config.leave_out_cores, root), frozenset[int]())
        self.batch = Batch()
        self._open_rings(possible, saved, now, root)
        start.step("ledger", lambda: self._restore_ledger(saved, now), None)
        start.step("cgroup directories", lambda: self.cgroups.begin(now), None)

        self.samples = SampleWriter(self.rings.sampler, self.lookup, self.batch)
        self.cores = start.part("per-core time", self._new_cores, root)
        start.step("ksoftirqd run delay", lambda: self.cores.follow(self.online.cpus, now), None)
        self.counters = start.part("counters", lambda at: Counters(self.batch, self.sources, start, at), root)
        self.rollup = Rollup(self.node_dir, here.boot_id or "")
        self.writer = SegmentWriter(self.node_dir / "log")
        self.doctor = start.step("doctor", lambda: Doctor(self.node_dir), None) if config.diagnose else None
        self.alarm = AlarmFeed(self.doctor.alarm, self.counters, config.hz, now) if self.doctor else None
        self.intake = EventIntake(self.batch, self.rollup, self.alarm, self.barrier, self.clock, self.kernel_log)
        if self.doctor is not None:
            self.doctor.tell = self.intake.put
        systemd = SystemdWatcher(None, self.intake.unit_events.append)
        if root == "/":
            start.step("systemd", systemd.start, None)
        self.compactor = Compactor(self.node_dir, int(config.compact_every_s * 1e6))
        upkeep = Upkeep(self.node_dir, config, self.sources, self.writer, self.compactor, self.intake.put)
        self.cost = CostBook(self.batch, self.rings.sampler, self.writer, lambda: self.children_cpu_us)

        nics: dict[str, str] = start.step("NIC drivers", self.counters.drivers, {})
        more = {"started_us": now, "kernel_log": self.kernel_log.source, "nics": nics}
        about = start.part("node", lambda at: node.describe(config, here, self.online.cpus, possible, more, at), root)
        node_file = node.NodeFile(self.node_dir, about)
        state_file = StateFile(self.node_dir, self.boot_id, self.cgroups, self.kernel_log, now)
        self.housekeeping = Housekeeping(self.barrier, self.sources, systemd, node_file, upkeep, state_file)
        self.ticks = self.ticks_late = self.idle_samples = 0
        self._lost_before = 0
        self._last_tick_ns = self._last_write_ns = self._drained_ns = monotonic_ns()
        self._tick_stages = self._stages_of_a_tick()
        self._write_stages = self._stages_of_a_write()
        self.segments = Segments(self.writer, self.batch, self.sources, self.barrier, self._segment_header())
        self.segments.finish, self.segments.renew = self._stages_of_a_segment()
        self.segments.start(now)

    # --- start --------------------------------------------------------------------------------------------------

    def _open_rings(self, possible: int, saved: dict[str, Any], now_us: int, root: str) -> None:
        start, sources = self.barrier, self.sources
        rings.raise_file_limit()
        host_pids = root != "/" or start.step(
            "host PID namespace", lambda: rings.in_host_pid_namespace(sources, now_us), True
        )
        sampling = Clock(self.config.event, self.config.hz)
        self.rings = start.part(
            SAMPLES,
            lambda at: rings.PerfRings(
                sampling,
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
        self.lookup = Lookup(self.cgroups.number_of("memory"), self.cgroups.number_of("cpu"), root=root)
        self.container_lookup = ContainerLookup(root)
        self.containers = self.cgroups.containers = start.part(
            "containers", lambda at: ContainerTracker(self.batch, self.container_lookup.ask, at), root
        )
        self.containers.mount = self.cgroups.hierarchy.mount if self.cgroups.hierarchy else None
        traced = [TX_TIMEOUT, *self.cgroups.tracepoints(), *self.containers.tracepoints()]
        traced += self.kernel_log.tracepoints()
        start.step("tracepoints", lambda: self.rings.trace(traced, now_us), None)
        is_traced = CONSOLE in self.rings.kinds
        start.step("kernel log", lambda: self.kernel_log.settle(console=is_traced, now_us=now_us), None)
        start.step(SAMPLES, lambda: self.rings.follow(self.online.cpus, now_us), None)
        self._followed = self.online.cpus

    def _new_cores(self, root: str) -> Cores:
        return Cores(self.batch, self.sources, self.config.hz, root, self.left_out)

    def _restore_ledger(self, saved: dict[str, Any], now_us: int) -> None:
        memory, ledger = self.cgroups.hierarchy, saved.get("ledger")
        if ledger and memory is not None and saved.get("hierarchy") == memory.number:
            self.cgroups.ledger.restore(ledger, now_us)

    def _segment_header(self) -> dict[str, Any]:
        return {
            "format": schema.FORMAT, "node": self.name, "boot": self.boot_id,
            "hz": self.config.hz, "event": self.config.event, "interval_us": int(self.config.interval_s * 1e6),
            "recorder_started_us": self.started_us,
        }  # fmt: skip

    def open_marks(self, runtime: Path) -> None:
        """Listens for marks; without the socket everything else works."""
        try:
            _safe_files.make_public_directory(runtime)
            self.intake.marks = MarkSocket(runtime / "mark.sock")
        except UserError as error:
            self.sources.lacks(MARKS, error.what, error.fix or "", self.started_us)
        except OSError as error:
            self.sources.lacks(MARKS, f"{runtime}: {error.strerror}", "a writable runtime directory", self.started_us)

    def settle_sources(self) -> None:
        """Shortly after the start: what can be said about the sources by now."""
        self.housekeeping.note_systemd(self._moment())

    # --- the stages ---------------------------------------------------------------------------------------------

    def _stages_of_a_tick(self) -> list[Stage]:
        alarm = [] if self.alarm is None else [Stage("alarm", self.alarm.tick)]
        return [
            Stage("stack samples (counts)", self._count_samples),
            Stage("per-core time (reader)", self.cores.tick, self.cores.forget),
            Stage("rollups", self.rollup.tick),
            Stage("counters", self.counters.tick),
            *alarm,
            Stage("memory cgroups (reader)", self._take_census),
            Stage("cgroup statistics", self._read_leaves, self.cgroups.forget_leaves),
            Stage("cgroup gauges", self._read_levels),
            Stage("lost records", self._report_lost),
            Stage("cost", self.cost.tick),
        ]

    def _stages_of_a_write(self) -> list[Stage]:
        return [
            *self.intake.stages(),
            Stage(SAMPLES, self._write_samples, vital=True),
            Stage("task shares", self._account_shares, lambda: list(self.samples.shares())),
            Stage(CONTAINERS, self._write_containers),
            Stage("gaps", self._write_gaps, vital=True),
            Stage("process lookup", self._watch_lookup),
            Stage("rollup file", lambda tick: self.rollup.flush(tick.wall_us)),
            Stage("frames", self._write_frame, vital=True),
            Stage("disk (reader)", self._note_disk),
            Stage("housekeeping", self.housekeeping.tick),
            Stage("doctor", self._call_doctor),
        ]

    def _stages_of_a_segment(self) -> tuple[list[Stage], list[Stage]]:
        finish = [
            Stage(SAMPLES, self._write_all_samples, vital=True),
            Stage("task shares", self._account_shares),
            Stage(CONTAINERS, self._write_containers),
        ]
        renew = [
            Stage("kernel symbols (reader)", lambda tick: self.rings.refresh_symbols(tick.wall_us)),
            Stage("new segment of samples", lambda _: self.samples.next_segment(), vital=True),
            Stage("new segment of counters", lambda _: self.counters.restart(), vital=True),
            Stage("new segment of cgroups", lambda _: self.cgroups.restart(), vital=True),
            Stage("new segment of containers", lambda _: self.containers.restart(), vital=True),
        ]
        return finish, renew

    # --- the rings ----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Empties the rings and deals with what cannot wait."""
        self.barrier.attempt(SAMPLES, self._drain)

    def _drain(self) -> None:
        self._drained_ns = monotonic_ns()  # what is sampled from here on may be read by the next one
        self.rings.drain()
        self.intake.traced(self.rings.traced())
        self.samples.ask()

    def rings_fill(self) -> bool:
        """Whether one must be emptied soon."""
        return self.rings.fill()

    def descriptors(self) -> set[int]:
        """The rings to be polled; none while draining fails, for they would keep the loop awake."""
        return set() if self.barrier.failing(SAMPLES) else {ring.fd for ring in self.rings.rings.values()}

    # --- a tick -------------------------------------------------------------------------------------------------

    def tick(self, late_ns: int) -> None:
        """Drains, then reads every counter."""
        self.barrier.attempt("clock", self._follow_clock)
        self.barrier.attempt("online cpus", self._follow_cpus)
        self.drain()
        tick = self._next_tick(late_ns)
        self.barrier.run(self._tick_stages, tick)

    def _next_tick(self, late_ns: int) -> Tick:
        now_ns = monotonic_ns()
        wall_us, late_us = self.clock.wall_us(now_ns), late_ns // 1000
        interval_us = max(1, (now_ns - self._last_tick_ns) // 1000)
        self._last_tick_ns = now_ns
        self.ticks += 1
        self.ticks_late += late_ns > self.config.interval_s * 5e8
        if late_us > UNSCHEDULED_US:
            why = f"the recorder itself did not run for {late_ns / 1e9:.1f} s"
            self.batch.add(schema.GAPS, (wall_us - late_us, wall_us, "ticks", why))
        return Tick(now_ns, wall_us, interval_us, late_us, self.online.cpus)

    def _count_samples(self, tick: Tick) -> None:
        taken = self.rings.sampler.take_cores(self._drained_ns)
        tick.sampled = {number: core for number, core in taken.items() if number not in self.left_out}
        self.idle_samples += sum(core[1] for core in tick.sampled.values())

    def _take_census(self, tick: Tick) -> None:
        self.cgroups.walk_on()
        lost = self.rings.sampler.lost
        lost_seen, self._lost_before = lost != self._lost_before, lost
        self.cgroups.tick(tick.wall_us, self._counts, lost_seen)
        if self.cgroups.last is not None:
            self.rollup.census(self.cgroups.last.total, self.cgroups.last.dying)

    def _counts(self) -> dict[str, int]:
        """The events' own counts, and after that every record they counted: what fires between the last drain and the
        reading of a counter is late, not lost."""
        counts = self.rings.counts()
        self.drain()
        return counts

    def _read_leaves(self, tick: Tick) -> None:
        limited = self.cgroups.read_leaves(tick.wall_us)
        if self.alarm is not None:
            self.alarm.quotas(tick.wall_us, limited)

    def _read_levels(self, tick: Tick) -> None:
        for level in self.cgroups.levels(tick.wall_us):
            self.counters.gauge(tick.wall_us, *level)

    def _report_lost(self, tick: Tick) -> None:
        for number, (_, _, _, lost) in tick.sampled.items():
            if lost:
                self.rollup.lost(lost)
                self.batch.add(schema.GAPS, (tick.since_us, tick.wall_us, SAMPLES, loss(lost, number)))

    def _follow_cpus(self) -> None:
        now = self.clock.now_us()
        for event in self.online.follow(now):
            self.intake.put(event)
        if self._followed != self.online.cpus:
            self.rings.follow(self.online.cpus, now)
            self.cores.follow(self.online.cpus, now)
            self._followed = self.online.cpus

    def _follow_clock(self) -> None:
        if not self.clock.stepped():
            return
        # What was recorded so far belongs to the old time: it is written before the new offset is adopted.
        self.drain()
        self.segments.close(self._moment())
        step = self.clock.adopt()
        now = self.clock.now_us()
        if step is not None:
            text = f"the clock was set {abs(step.seconds):.3f} s {'forward' if step.seconds > 0 else 'back'}"
            fields = {"seconds": step.seconds, "before_us": step.before_us, "after_us": step.after_us}
            self.intake.put(Event(now, "clock_step", "recorder", "warning", text, fields))
        self.segments.start(now)

    # --- a write ------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """One frame: everything since the last one. Once a second."""
        tick = self._moment()
        self._last_write_ns = tick.monotonic_ns
        self.barrier.run(self._write_stages, tick)

    def _moment(self) -> Tick:
        """Now, as the stages of a write see it."""
        now_ns = monotonic_ns()
        since_us = (now_ns - self._last_write_ns) // 1000
        return Tick(now_ns, self.clock.wall_us(now_ns), since_us, online=self.online.cpus)

    def _write_samples(self, tick: Tick) -> None:
        self.samples.sweep()
        self.samples.write(self.clock.offset_ns, tick.monotonic_ns)

    def _write_all_samples(self, tick: Tick) -> None:
        self.samples.write(self.clock.offset_ns, tick.monotonic_ns, everything=True)

    def _account_shares(self, tick: Tick) -> None:
        shares = list(self.samples.shares())
        self.rollup.shares(shares, self.config.hz)
        for share in shares:
            self.cgroups.used(share)
        if self.alarm is not None:
            self.alarm.shares(tick.wall_us, shares, len(tick.online))

    def _write_containers(self, tick: Tick) -> None:
        for event in self.containers.second(tick.wall_us, self.container_lookup.take()):
            self.intake.put(event)
        if self.container_lookup.newly_stuck() is not None:
            text = "the files of a container have not answered for 5 s: the disk they are on hangs"
            self.intake.put(Event(tick.wall_us, "lookup_stuck", "recorder", "warning", text))
        self.container_lookup.raise_failure()

    def _write_gaps(self, _: Tick) -> None:
        self.batch.extend(schema.GAPS, self.sources.take_ended())
        for dropped in self.writer.take_dropped():
            self.batch.add(schema.GAPS, (dropped.from_us, dropped.to_us, "disk", dropped.why))

    def _watch_lookup(self, tick: Tick) -> None:
        stuck = self.lookup.newly_stuck()
        if stuck is not None:
            text = f"/proc/{stuck.pid} has not answered for 5 s: its memory map is locked by somebody"
            self.intake.put(Event(tick.wall_us, "lookup_stuck", "recorder", "warning", text, {"pid": stuck.pid}))
        self.lookup.raise_failure()

    def _write_frame(self, tick: Tick) -> None:
        if self.segments.due(tick.wall_us, int(self.config.segment_s * 1e6)):
            self.segments.close(self._moment())
            self.segments.start(self.clock.now_us())
        else:
            self.segments.frame(tick)

    def _call_doctor(self, tick: Tick) -> None:
        if self.doctor is not None:
            self.doctor.second(tick.wall_us)

    def _note_disk(self, tick: Tick) -> None:
        if self.writer.failing is not None:
            grant = f"room and write permission in {self.node_dir}"
            self.sources.lacks("disk", self.writer.failing, grant, tick.wall_us)
        else:
            self.sources.has("disk", tick.wall_us)

    # --- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends in order: the last frame, the state, every descriptor. What cannot be ended does not keep the rest."""
        for step in self._last_steps():
            self.barrier.attempt("the end", step)

    def _last_steps(self) -> Iterator[Callable[[], object]]:
        yield self.drain
        yield lambda: self.intake.take_unit_events(self._moment())
        yield self.intake.read_kernel_log
        yield lambda: self.housekeeping.note_systemd(self._moment())
        yield lambda: self.segments.close(self._moment())
        yield lambda: self.writer.close(self.clock.now_us())
        yield lambda: self.rollup.close(self.clock.now_us())
        yield self.compactor.process.stop
        if self.doctor is not None:
            yield partial(self.doctor.stop, self.clock.now_us())
        yield self.housekeeping.close
        yield self.lookup.stop
        yield self.container_lookup.stop
        for part in (self.intake, self.kernel_log, self.online, self.cores, self.counters, self.cgroups, self.rings):
            yield part.close
        yield self._lock.release

    @property
    def children_cpu_us(self) -> int:
        return self.compactor.process.cpu_us + (self.doctor.process.cpu_us if self.doctor else 0)

    def summary(self, startup_cpu_s: float, cpu_s: float) -> result.RecorderResult:
        now = self.clock.now_us()
        doctor, helper = self.doctor and self.doctor.process, self.compactor.process
        return result.RecorderResult(
            recording=str(self.node_dir.parent),
            samples=self.samples.rows,
            idle_samples=self.idle_samples,
            lost=self.rings.sampler.lost,
            ticks=self.ticks,
            ticks_late=self.ticks_late,
            events=self.intake.count,
            cpu_seconds=round(cpu_s + self.children_cpu_us / 1e6, 4),
            startup_cpu_seconds=round(startup_cpu_s, 4),
            max_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            bytes=result.tree_bytes(self.node_dir),
            missing=self.sources.missing,
            helper_cpu_seconds=round(helper.cpu_us / 1e6, 4),
            helper_max_rss_bytes=helper.peak_rss_bytes,
            seconds=round((now - self.started_us) / 1e6, 3),
            doctor_looks=doctor.looks if doctor else 0,
            doctor_cpu_seconds=round(doctor.cpu_us / 1e6, 4) if doctor else 0.0,
            doctor_max_rss_bytes=doctor.peak_rss_bytes if doctor else 0,
        )
