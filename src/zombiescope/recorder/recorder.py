"""The recorder: every part of it, and what happens at a tick, at a write and at the end of a segment.

The loop (loop.py) calls in here; nothing in here waits. One second goes like this: rings are drained whenever the
kernel says so and at the tick; questions about new processes and addresses go to the lookup thread; counters are
read; a moment later, when the answers are there, one frame is written."""

from __future__ import annotations

import resource
import time
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.kernel import cpu, namespaces
from zombiescope.kernel.perf_event import Clock, monotonic_ns
from zombiescope.kernel.procfile import ProcFile, at
from zombiescope.recorder import node, result, state
from zombiescope.recorder.cgroups import Cgroups
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.config import Config
from zombiescope.recorder.cores import Cores
from zombiescope.recorder.counters import Counters
from zombiescope.recorder.doctor import Doctor
from zombiescope.recorder.helper import Helper
from zombiescope.recorder.kernel_log import KernelLog
from zombiescope.recorder.lookup import Lookup
from zombiescope.recorder.marks import MarkSocket
from zombiescope.recorder.rollup import Rollup
from zombiescope.recorder.samples import Samples
from zombiescope.recorder.sources import Missing, Sources
from zombiescope.recorder.stacks import CONSOLE, MKDIR, RELEASE, RENAME, RMDIR, XMIT_TIMEOUT, Stacks
from zombiescope.recorder.upkeep import Upkeep
from zombiescope.recording import schema
from zombiescope.recording.batch import Batch
from zombiescope.recording.event import Event
from zombiescope.recording.lock import Lock
from zombiescope.recording.segment_writer import HOLDING_SEGMENT_US, SegmentWriter
from zombiescope.systemd.units import UnitEvent
from zombiescope.systemd.watcher import SystemdWatcher

HOUSEKEEPING_US = 10_000_000
SAVE_STATE_US = 600_000_000
UNSCHEDULED_US = 3_000_000
LONG_GAP_US = 900_000
GAP_SLACK_US = 50_000


class Recorder:
    """Owns all parts. Raises AlreadyRecordingError or OSError when it cannot start.

    With another `root` it replays: kernel files are read below it, no ring is opened and nobody is asked over D-Bus;
    records are fed to the sampler and unit events put into `unit_events` by whoever replays.
    """

    def __init__(self, config: Config, root: str = "/") -> None:
        self.config = config
        self.clock = WallClock()
        now = self.started_us = self.clock.now_us()
        self.sources = Sources()
        here = node.this_host(root)
        self.name = config.node or here.hostname
        self.boot_id = here.boot_id
        self.node_dir = Path(config.dir).resolve() / f"node={self.name}"
        self.node_dir.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.node_dir, now)
        self._saved = state.load(self.node_dir, here.boot_id)

        _raise_file_limit()
        self._online = cpu.online(root) or (0,)
        self._online_file = ProcFile(at(root, "sys/devices/system/cpu/online"))
        possible = (max(cpu.possible(root) or self._online)) + 1
        host_pids = root != "/" or self._check_pid_namespace(now)
        self.batch = Batch()
        self.stacks = Stacks(
            Clock(config.event, config.hz), possible, self.sources, host_pids=host_pids, now_us=now, root=root
        )
        self.kernel_log = KernelLog(self.clock, self.sources, self._saved.get("kmsg_seq"), now, root)
        self.cgroups = Cgroups(self.batch, self.sources, self.stacks.sampler.comm, now, root)
        self._open_tracepoints(now)
        self.stacks.follow(self._online, now)
        self._restore_ledger(now)
        self.cgroups.begin(now)

        self.lookup = Lookup(self.cgroups.number_of("memory"), self.cgroups.number_of("cpu"), root=root)
        self.samples = Samples(self.stacks.sampler, self.lookup, self.batch)
        self.cores = Cores(self.batch, self.sources, root)
        self.cores.follow(self._online, now)
        self.counters = Counters(self.batch, self.sources, root)
        self.unit_events: deque[UnitEvent] = deque(maxlen=10_000)
        self._systemd = SystemdWatcher(None, self.unit_events.append)
        if root == "/":
            self._systemd.start()
        self.rollup = Rollup(self.node_dir, here.boot_id or "")
        self.writer = SegmentWriter(self.node_dir / "log")
        self.helper = Helper(self.node_dir, int(config.compact_every_s * 1e6))
        self.upkeep = Upkeep(self.node_dir, config, self.sources, self.writer, self.helper, self.put)
        self.doctor = Doctor(self.node_dir, wanted=config.diagnose)
        self.marks: MarkSocket | None = None

        more = {"started_us": now, "kernel_log": self.kernel_log.source, "nics": self.counters.drivers()}
        self._node = node.describe(config, here, self._online, possible, more, root)
        self._told_missing: list[Missing] | None = None
        self.events = self.ticks = self.ticks_late = self.idle_samples = 0
        self._unseen_us: dict[int, int] = {}
        self._sequence = 0
        self._ledger_lost = 0
        self._last_tick_ns = monotonic_ns()
        self._last_cpu_ns = time.process_time_ns()
        self._last_lost = self._last_records = self._last_bytes = self._last_helper_us = 0
        self._next_housekeeping_us = now
        self._next_save_us = now + SAVE_STATE_US
        self._stuck_since_us: int | None = None
        self._start_segment(now)

    # --- start --------------------------------------------------------------------------------------------------

    def _check_pid_namespace(self, now_us: int) -> bool:
        if namespaces.in_host_pid_namespace():
            return True
        why = "this process sees only its own PID namespace: other processes appear as pid 0 and cannot be told apart"
        self.sources.lacks("host PID namespace", why, "hostPID: true (docker run --pid=host)", now_us)
        return False

    def _open_tracepoints(self, now_us: int) -> None:
        wanted: dict[int, str | None] = {XMIT_TIMEOUT: None}
        if self.cgroups.filter is not None:
            wanted |= dict.fromkeys((MKDIR, RMDIR, RELEASE, RENAME), self.cgroups.filter)
        if self.kernel_log.wants_console:
            wanted[CONSOLE] = None
        self.stacks.trace(wanted, now_us)
        self.kernel_log.settle(console=CONSOLE in self.stacks.formats and self.stacks.can_sample, now_us=now_us)

    def _restore_ledger(self, now_us: int) -> None:
        memory = self.cgroups.hierarchy
        saved = self._saved.get("ledger")
        if saved and memory is not None and self._saved.get("hierarchy") == memory.number:
            with suppress(KeyError, TypeError, ValueError):
                self.cgroups.ledger.restore(saved, now_us)

    def open_marks(self, runtime: Path) -> None:
        """Listens for marks; without the socket everything else works."""
        try:
            runtime.mkdir(parents=True, exist_ok=True)
            self.marks = MarkSocket(runtime / "mark.sock")
        except OSError as error:
            self.sources.lacks("marks", f"{runtime}: {error.strerror}", "a writable runtime directory", self.started_us)

    # --- the rings ----------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Empties the rings and deals with what cannot wait."""
        self.stacks.drain()
        for record in self.stacks.traced():
            form = self.stacks.formats[record.kind]
            wall_us = self.clock.wall_us(record.monotonic_ns)
            if record.kind == XMIT_TIMEOUT:
                self.put(_xmit_timeout(form.fields, record.raw, wall_us, record.cpu))
            elif record.kind == CONSOLE:
                for event in self.kernel_log.traced(record, form):
                    self.put(event)
            else:
                event_or_none = self.cgroups.traced(record, form, wall_us)
                if event_or_none is not None:
                    self.put(event_or_none)
        self.samples.ask()

    def put(self, event: Event) -> None:
        self.events += 1
        self.batch.add(schema.EVENTS, event.row())
        self.rollup.event(event.kind, event.severity)
        if event.at_us >= self.started_us:  # what the kernel said before is history, not news
            self.doctor.alarm.event(event.at_us, event.kind, event.severity)

    def read_kernel_log(self) -> None:
        for event in self.kernel_log.read():
            self.put(event)

    def read_marks(self) -> None:
        if self.marks is not None:
            for event in self.marks.read(self.clock.now_us()):
                self.put(event)

    # --- a tick -------------------------------------------------------------------------------------------------

    def tick(self, late_ns: int) -> None:
        """Drains, then reads every counter."""
        if self.clock.stepped():
            self._clock_step()
        self._follow_cpus()
        self.drain()
        now_ns = monotonic_ns()
        wall_us = self.clock.wall_us(now_ns)
        interval_us = max(1, (now_ns - self._last_tick_ns) // 1000)
        self._last_tick_ns = now_ns
        self.ticks += 1
        self.ticks_late += late_ns > self.config.interval_s * 5e8
        if late_ns // 1000 > UNSCHEDULED_US:
            why = f"the recorder itself did not run for {late_ns / 1e9:.1f} s"
            self.batch.add(schema.GAPS, (wall_us - late_ns // 1000, wall_us, "ticks", why))
        sampled = self.stacks.sampler.take_cores(now_ns)
        self.idle_samples += sum(core[1] for core in sampled.values())
        expected = round(self.config.hz * interval_us / 1e6)
        stat, times = self.cores.tick(wall_us, interval_us, self._online, sampled, expected)
        for core in times:
            self.rollup.core(wall_us, core.cpu, interval_us, core.busy_ms, core.kernel_ms)
            self.doctor.alarm.core(wall_us, core.cpu, interval_us, core.kernel_ms)
        self._suspect_holes(wall_us, interval_us, sampled, {core.cpu: core.busy_ms * 1000 for core in times})
        self.counters.tick(wall_us, stat)
        self.doctor.alarm.calls(wall_us, self.counters.take_calls(), interval_us, len(self._online))
        waited_us = self.counters.take_waited_us()
        self.doctor.alarm.crowd(wall_us, interval_us, [core.busy_ms for core in times], waited_us)
        self._tick_cgroups(wall_us)
        self._tell_lost(wall_us - interval_us, wall_us, sampled)
        self._write_cost(wall_us, late_ns // 1000)

    def _suspect_holes(
        self,
        wall_us: int,
        interval_us: int,
        sampled: dict[int, tuple[int, int, int | None, int]],
        busy_us: dict[int, int],
    ) -> None:
        """Some machines take no sample of an idle core; idle time that was not seen, in this tick or the one before,
        explains a gap."""
        before, self._unseen_us = self._unseen_us, {}
        for number, (_, idle, gap_us, _) in sampled.items():
            seen_us = idle * 1_000_000 // self.config.hz
            unseen_us = max(0, interval_us - busy_us.get(number, interval_us) - seen_us)
            self._unseen_us[number] = unseen_us
            if unseen_us + before.get(number, 0) < min(gap_us or 0, LONG_GAP_US) - GAP_SLACK_US:
                self.doctor.alarm.hole(wall_us, number, gap_us)

    def _tick_cgroups(self, wall_us: int) -> None:
        self.cgroups.walk_on()
        lost, self._ledger_lost = self.stacks.sampler.lost != self._ledger_lost, self.stacks.sampler.lost
        self.cgroups.tick(wall_us, self._counts, lost)
        if self.cgroups.last is not None:
            self.rollup.census(self.cgroups.last.total, self.cgroups.last.dying)
        for path, periods, throttled in self.cgroups.read_leaves(wall_us):
            self.doctor.alarm.quota(wall_us, path, periods, throttled)
        for level in self.cgroups.levels(wall_us):
            self.counters.gauge(wall_us, *level)

    def _counts(self) -> dict[int, int]:
        """The events' own counts, and after that every record they counted: what fires between the last drain and the
        reading of a counter is late, not lost."""
        counts = self.stacks.counts()
        self.drain()
        return counts

    def _follow_cpus(self) -> None:
        said = self._online_file.read()
        online = cpu.parse_list(said) if said else self._online
        if online == self._online:
            return
        now = self.clock.now_us()
        came, went = sorted(set(online) - set(self._online)), sorted(set(self._online) - set(online))
        self._online = online
        self.stacks.follow(online, now)
        self.cores.follow(online, now)
        for numbers, what in ((came, "online"), (went, "offline")):
            if numbers:
                text = f"cpu {', '.join(map(str, numbers))} went {what}"
                self.put(Event(now, f"cpu_{what}", "sysfs", "info", text, {"cpus": numbers}))

    def _clock_step(self) -> None:
        # What was recorded so far belongs to the old time: it is written before the new offset is adopted.
        self.drain()
        self._close_segment()
        step = self.clock.adopt()
        now = self.clock.now_us()
        if step is not None:
            text = f"the clock was set {abs(step.seconds):.3f} s {'forward' if step.seconds > 0 else 'back'}"
            fields = {"seconds": step.seconds, "before_us": step.before_us, "after_us": step.after_us}
            self.put(Event(now, "clock_step", "recorder", "warning", text, fields))
        self._start_segment(now)

    def _tell_lost(self, since_us: int, wall_us: int, sampled: dict[int, tuple[int, int, int | None, int]]) -> None:
        for number, (_, _, _, lost) in sampled.items():
            if lost:
                self.rollup.lost(lost)
                why = f"{lost} records of cpu {number} did not fit into its ring"
                self.batch.add(schema.GAPS, (since_us, wall_us, "stack samples", why))

    def _write_cost(self, wall_us: int, late_us: int) -> None:
        cpu_ns, sampler = time.process_time_ns(), self.stacks.sampler
        helper_us = self.helper.cpu_us + self.doctor.cpu_us
        rss = result.rss_bytes() if self.ticks % 10 == 1 else None
        row = (
            wall_us, (cpu_ns - self._last_cpu_ns) // 1000, rss, helper_us - self._last_helper_us, late_us,
            sampler.lost - self._last_lost, sampler.records - self._last_records,
            self.writer.bytes_written - self._last_bytes,
        )  # fmt: skip
        self.batch.add(schema.COST, row)
        self._last_cpu_ns, self._last_helper_us = cpu_ns, helper_us
        self._last_lost, self._last_records = sampler.lost, sampler.records
        self._last_bytes = self.writer.bytes_written

    # --- a write ------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """One frame: everything since the last one. Once a second."""
        now_ns = monotonic_ns()
        wall_us = self.clock.wall_us(now_ns)
        self._take_unit_events()
        for event in self.kernel_log.held_back():
            self.put(event)
        if self.kernel_log.fileno() is None:
            self.read_kernel_log()
        if self.marks is not None:
            self.marks.second()
        self.samples.sweep()
        self.samples.write(self.clock.offset_ns, now_ns)
        self._account_shares()
        for gap in self.sources.take_ended():
            self.batch.add(schema.GAPS, gap)
        for dropped in self.writer.take_dropped():
            self.batch.add(schema.GAPS, (dropped.from_us, dropped.to_us, "disk", dropped.why))
        self._watch_lookup(wall_us)
        self.rollup.flush(wall_us)
        if self._segment_is_due(wall_us):
            self._close_segment()
            self._start_segment(self.clock.now_us())
        else:
            self.writer.frame(wall_us, now_ns, self.batch.take_blocks(wall_us))
        self._note_disk(wall_us)
        if wall_us >= self._next_housekeeping_us:
            self._next_housekeeping_us = wall_us + HOUSEKEEPING_US
            self._housekeeping(wall_us)
        self.doctor.second(wall_us)

    def _take_unit_events(self) -> None:
        while self.unit_events:
            event = self.unit_events.popleft()
            fields = {"unit": event.unit, **event.fields}
            self.put(Event(self.clock.wall_us(event.at_ns), event.kind, "systemd", event.severity, event.text, fields))

    def _account_shares(self) -> None:
        sample_ms = 1000 / self.config.hz
        in_kernel: Counter[str] = Counter()
        total = 0
        now_us = self.clock.now_us()
        for name, cgroup, samples, kernel, real_time, cpu_cgroup in self.samples.shares():
            self.rollup.unit_cpu(name, round(samples * sample_ms), round(kernel * sample_ms))
            in_kernel[name] += kernel
            total += samples
            if real_time:
                self.doctor.alarm.real_time(now_us, name, samples, self.config.hz)
            for path in filter(None, (cgroup, cpu_cgroup)):
                self.cgroups.used(path, samples)
        for name, kernel in in_kernel.items():
            self.doctor.alarm.unit(now_us, name, kernel, self.config.hz, len(self._online))
        self.doctor.alarm.node(now_us, total, in_kernel.total(), self.config.hz, len(self._online))

    def _watch_lookup(self, wall_us: int) -> None:
        pid = self.lookup.stuck_pid()
        if pid is not None and self._stuck_since_us is None:
            self._stuck_since_us = wall_us
            text = f"/proc/{pid} has not answered for 5 s: its memory map is locked by somebody"
            self.put(Event(wall_us, "lookup_stuck", "recorder", "warning", text, {"pid": pid}))
        elif pid is None and self._stuck_since_us is not None:
            self._stuck_since_us = None

    # --- segments -----------------------------------------------------------------------------------------------

    def _segment_is_due(self, wall_us: int) -> bool:
        started = self.writer.started_us or wall_us
        longest = int(self.config.segment_s * 1e6)
        if self.writer.failing is not None:
            longest = min(longest, HOLDING_SEGMENT_US)
        return wall_us - started >= longest

    def _start_segment(self, wall_us: int) -> None:
        header = {
            "format": schema.FORMAT, "node": self.name, "boot": self.boot_id, "started_us": wall_us,
            "hz": self.config.hz, "event": self.config.event, "interval_us": int(self.config.interval_s * 1e6),
            "seq": self._sequence, "recorder_started_us": self.started_us,
        }  # fmt: skip
        self._sequence += 1
        self.writer.start(wall_us, header)
        self._segment_started_us = wall_us

    def _close_segment(self) -> None:
        now_ns = monotonic_ns()
        wall_us = self.clock.wall_us(now_ns)
        self.samples.write(self.clock.offset_ns, now_ns, everything=True)
        self._account_shares()
        for gap in self.sources.open_gaps(self._segment_started_us, wall_us):
            self.batch.add(schema.GAPS, gap)
        self.writer.frame(wall_us, now_ns, self.batch.take_blocks(wall_us), closes=True)
        self.stacks.refresh_symbols(wall_us)
        self.samples.next_segment()
        self.counters.restart()
        self.cgroups.restart()

    # --- now and then -------------------------------------------------------------------------------------------

    def _housekeeping(self, wall_us: int) -> None:
        self._note_systemd(wall_us)
        if self.sources.missing != self._told_missing:
            with suppress(OSError):
                node.write(self.node_dir / "node.json", self._node, self.sources.missing)
                self._told_missing = self.sources.missing
        self.upkeep.look(wall_us)
        if wall_us >= self._next_save_us:
            self._next_save_us = wall_us + SAVE_STATE_US
            self._save_state()

    def _note_systemd(self, wall_us: int) -> None:
        known = self._systemd.state
        if known.status in ("absent", "failed"):
            self.sources.lacks("systemd", known.why, known.mend, wall_us)
        elif known.status == "connected":
            self.sources.has("systemd", wall_us)

    def _note_disk(self, wall_us: int) -> None:
        if self.writer.failing is not None:
            self.sources.lacks("disk", self.writer.failing, f"room and write permission in {self.node_dir}", wall_us)
        else:
            self.sources.has("disk", wall_us)

    def _save_state(self) -> None:
        memory = self.cgroups.hierarchy
        saved: dict[str, Any] = {
            "boot": self.boot_id,
            "kmsg_seq": self.kernel_log.last_seq,
            "hierarchy": memory.number if memory else None,
            "ledger": self.cgroups.ledger.save(),
        }
        with suppress(OSError):
            state.save(self.node_dir, saved)

    def settle_sources(self) -> None:
        """Shortly after the start: what can be said about the sources by now."""
        self._note_systemd(self.clock.now_us())

    # --- the end ------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Ends in order: the last frame, the state, every descriptor."""
        self.drain()
        self._take_unit_events()
        self.read_kernel_log()
        self._note_systemd(self.clock.now_us())
        self._close_segment()
        now = self.clock.now_us()
        self.writer.close(now)
        self.rollup.close(now)
        self.helper.look(now)
        self.helper.stop()
        self.doctor.stop()
        self._save_state()
        with suppress(OSError):
            node.write(self.node_dir / "node.json", self._node, self.sources.missing)
        self._systemd.stop(timeout_s=0.5)
        self.lookup.stop()
        if self.marks is not None:
            self.marks.close()
        for part in (self.kernel_log, self.cores, self.counters, self.cgroups, self.stacks):
            part.close()
        self._lock.release()

    def summary(self, startup_cpu_s: float, cpu_s: float) -> result.Result:
        now = self.clock.now_us()
        return result.Result(
            recording=str(self.node_dir.parent),
            samples=self.samples.rows,
            idle_samples=self.idle_samples,
            lost=self.stacks.sampler.lost,
            ticks=self.ticks,
            ticks_late=self.ticks_late,
            events=self.events,
            cpu_seconds=round(cpu_s + (self.helper.cpu_us + self.doctor.cpu_us) / 1e6, 4),
            startup_cpu_seconds=round(startup_cpu_s, 4),
            max_rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            bytes=result.tree_bytes(self.node_dir),
            missing=self.sources.missing,
            helper_cpu_seconds=round(self.helper.cpu_us / 1e6, 4),
            helper_max_rss_bytes=self.helper.peak_rss_bytes,
            seconds=round((now - self.started_us) / 1e6, 3),
            doctor_looks=self.doctor.looks,
            doctor_cpu_seconds=round(self.doctor.cpu_us / 1e6, 4),
        )


def _xmit_timeout(fields: dict[str, Any], raw: bytes, wall_us: int, on_cpu: int) -> Event:
    name, driver, queue = fields["name"].text(raw), fields["driver"].text(raw), fields["queue_index"].number(raw)
    text = f"{driver} {name}: transmit queue {queue} timed out"
    said = {"interface": name, "driver": driver, "queue": queue, "cpu": on_cpu}
    return Event(wall_us, "nic_tx_timeout", "tracepoint", "critical", text, said)


def _raise_file_limit() -> None:
    # Five descriptors a CPU and one per kernel file: the usual soft limit of 1,024 ends at 192 CPUs.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
