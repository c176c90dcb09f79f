"""The recorder: the stages of a tick, of a write and of the end of a segment.

The loop (loop.py) calls in here; nothing in here waits. One second goes like this: rings are drained whenever the
kernel says so and at the tick; questions about new processes and addresses go to the lookup thread; counters are
read; a moment later, when the answers are there, one frame is written.

Whatever is done is a stage behind a barrier (stage.py): a source that raises becomes a gap, the recording goes on. What
the stages work with, and how it is opened and closed, is in parts.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from zombiescope.kernel.perf_event import monotonic_ns
from zombiescope.recorder.closer_looks import SOURCE as CLOSER
from zombiescope.recorder.config import RecorderConfig
from zombiescope.recorder.containers import SOURCE as CONTAINERS
from zombiescope.recorder.feed import SOURCE as FEED
from zombiescope.recorder.feed import FedLabels
from zombiescope.recorder.parts import LAST_WRITE_S, Parts
from zombiescope.recorder.pythons import SOURCE as PYTHON
from zombiescope.recorder.schedule import SOURCE as SCHEDULE
from zombiescope.recorder.stage import Stage
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.whole_stacks import SOURCE as WHOLE
from zombiescope.store import schema
from zombiescope.store.event import Event
from zombiescope.store.health import LIVE_DIAGNOSIS
from zombiescope.store.loss import SAMPLES, loss

UNSCHEDULED_US = 1_000_000
"""A tick that comes so much later after the one before than it should leaves a gap, which is said."""


class Recorder(Parts):
    """All parts, and what they do each second.

    With another `root` it replays: records are fed to the sampler and unit events put into the intake by whoever
    replays.
    """

    def __init__(self, config: RecorderConfig, root: str = "/") -> None:
        super().__init__(config, root)
        self._followed = self.online.cpus
        self.ticks = self.ticks_late = self.idle_samples = 0
        self._lost_before = 0
        self._last_tick_ns = self._last_write_ns = self._drained_ns = monotonic_ns()
        self._tick_stages = self._stages_of_a_tick()
        self._write_stages = self._stages_of_a_write()
        self.segments.finish, self.segments.renew = self._stages_of_a_segment()
        self.segments.start(self.started_us)

    def settle_sources(self) -> None:
        """Shortly after the start: what can be said about the sources by now."""
        self.housekeeping.note_systemd(self._moment())

    # --- the stages ---------------------------------------------------------------------------------------------

    def _stages_of_a_tick(self) -> list[Stage]:
        return [
            Stage("stack samples (counts)", self._count_samples),
            Stage("per-core time (reader)", self.cores.tick, self.cores.forget),
            Stage("rollups", self.rollup.tick),
            Stage("counters", self.counters.tick),
            *self.read.stages(),
            Stage("waiting tasks (reader)", self.waits.tick),
            Stage("shared memory (reader)", self.shared_memory.tick),
            Stage("alarm", self.alarm.tick),
            Stage(f"{SCHEDULE} (reader)", self.schedule.tick),
            Stage("memory cgroups (reader)", self._take_census),
            Stage("cgroup statistics", self._read_leaves, self.cgroups.forget_leaves),
            Stage("cgroup gauges", self._read_levels),
            Stage("lost records", self._report_lost),
            Stage("cost", self.cost.tick),
        ]

    def _stages_of_a_write(self) -> list[Stage]:
        return [
            *self.intake.stages(),
            Stage(f"{SCHEDULE} (snapshot)", self._snapshot),
            Stage(SAMPLES, self._write_samples, vital=True),
            Stage("task shares", self._account_shares, lambda: list(self.samples.shares())),
            Stage(FEED, self._take_feed),
            Stage(CONTAINERS, self._write_containers),
            Stage("gpu (reader)", self._write_gpus),
            Stage("quiet processes (reader)", self._write_quiet),
            Stage(f"{PYTHON} (reader)", self._write_python),
            Stage(f"{WHOLE} (reader)", lambda tick: self.whole_stacks.second(tick.wall_us, self.python.asleep)),
            Stage(f"{CLOSER} (reader)", lambda tick: self.closer_looks.second(tick.wall_us)),
            Stage("gaps", self._write_gaps, vital=True),
            Stage("process lookup", self._watch_lookup),
            Stage("rollup file", self._write_rollup),
            Stage("frames", self._write_frame, vital=True),
            Stage("disk (reader)", self._note_disk),
            Stage("housekeeping", self.housekeeping.tick),
            Stage(LIVE_DIAGNOSIS, self._call_doctor),
            Stage("page (reader)", self._show_page),
            Stage("heartbeats (reader)", lambda tick: self.heartbeats.second(tick.wall_us)),
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
            Stage("new segment of GPUs", lambda tick: self.gpus.restart(tick.wall_us), vital=True),
            *self.read.renewals(),
            Stage("new segment of mounts", lambda _: self.waits.restart(), vital=True),
            Stage("new segment of Python stacks", lambda tick: self.python.restart(tick.wall_us), vital=True),
            Stage("new segment of whole stacks", lambda _: self.whole_stacks.restart(), vital=True),
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
        missed_us = interval_us - int(self.config.interval_s * 1e6)
        if self.ticks and missed_us > UNSCHEDULED_US:
            why = f"the recorder itself did not run for {missed_us / 1e6:.1f} s"
            self.batch.add(schema.GAPS, (wall_us - missed_us, wall_us, "ticks", why))
        self.ticks += 1
        self.ticks_late += late_ns > self.config.interval_s * 5e8
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
        if step is not None and (event := step.event(now)) is not None:
            self.intake.put(event)
        self.segments.start(now)
        if step is not None and (gap := step.gap()) is not None:
            self.batch.add(schema.GAPS, gap)

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

    def _snapshot(self, tick: Tick) -> None:
        self.schedule.second(tick.wall_us)
        self.samples.ask()  # who the tasks of it are

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
        self.python.hot(shares, tick.wall_us)
        self.quiet.hot(shares, tick.wall_us)
        self.hog_files.hot(shares, self.config.hz, tick.wall_us)
        self.whole_stacks.hot(shares)
        self.alarm.shares(tick.wall_us, shares, len(tick.online))

    def _take_feed(self, tick: Tick) -> None:
        for told in self.feed.read(tick.wall_us) if self.feed is not None else ():
            if isinstance(told, Event):
                self.intake.put(told)
            elif isinstance(told, FedLabels):
                self._take_labels(told.labels)
            else:
                self.containers.told(told)

    def _take_labels(self, labels: dict[str, str]) -> None:
        """What the cluster knows of this node; the configuration stands over it."""
        self.about["labels"] = {**self.about["labels"], **labels, **self.config.labels}
        self.node_file.label(self.about["labels"])

    def _write_containers(self, tick: Tick) -> None:
        for event in self.containers.second(tick.wall_us, self.container_lookup.take()):
            self.intake.put(event)
        if self.container_lookup.newly_stuck() is not None:
            place = self.container_lookup.waits_in
            why = f"the disk that they are on hangs (in {place})" if place else "the reader itself takes so long"
            text = f"the files of a container have not answered for 5 s: {why}"
            self.intake.put(Event(tick.wall_us, "lookup_stuck", "recorder", "warning", text))
        self.container_lookup.raise_failure()

    def _write_gpus(self, tick: Tick) -> None:
        for event in self.gpus.second(tick.wall_us):
            self.intake.put(event)

    def _write_quiet(self, tick: Tick) -> None:
        self.quiet.second(tick.wall_us, self.gpus.pids, self.python.ranks.pids)

    def _write_python(self, tick: Tick) -> None:
        self.python.second(tick.wall_us, self.waits.pids, self.gpus.pids)

    def _write_gaps(self, _: Tick) -> None:
        self.batch.extend(schema.GAPS, self.sources.take_ended())
        for dropped in self.writer.take_dropped():
            self.batch.add(schema.GAPS, (dropped.from_us, dropped.to_us, "disk", dropped.why))

    def _watch_lookup(self, tick: Tick) -> None:
        stuck = self.lookup.newly_stuck()
        if stuck is not None:
            place = self.lookup.waits_in
            why = f"the kernel keeps its reader waiting (in {place})" if place else "the reader itself takes so long"
            text = f"/proc/{stuck.pid} has not answered for 5 s: {why}"
            self.intake.put(Event(tick.wall_us, "lookup_stuck", "recorder", "warning", text, {"pid": stuck.pid}))
        self.lookup.raise_failure()

    def _write_rollup(self, tick: Tick) -> None:
        self.rollup.flush(tick.wall_us, tick.monotonic_ns)
        self.disk.raise_failure("rollup file")

    def _write_frame(self, tick: Tick) -> None:
        if self.segments.due(tick.wall_us, int(self.config.segment_s * 1e6)):
            self.segments.close(self._moment())
            self.segments.start(self.clock.now_us())
        else:
            self.segments.frame(tick)
        self.disk.raise_failure("frames")

    def _call_doctor(self, tick: Tick) -> None:
        if self.doctor is not None:
            self.doctor.second(tick.wall_us)
        else:
            self.suspicions.due(tick.wall_us)

    def _show_page(self, tick: Tick) -> None:
        if self.page is not None:
            self.page.second(tick.wall_us)

    def _note_disk(self, tick: Tick) -> None:
        if self.writer.failing is not None:
            grant = f"room and write permission in {self.node_dir}"
            self.sources.lacks("disk", self.writer.failing, grant, self.writer.failing_since_us or tick.wall_us)
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
        yield lambda: self.disk.settle(LAST_WRITE_S)
        yield lambda: self._note_disk(self._moment())
        yield lambda: self.heartbeats.judge(self.clock.now_us())
        yield from self._closing_steps()
