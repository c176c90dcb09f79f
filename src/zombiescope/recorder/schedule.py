"""The schedule of the cores that matter: overwrite rings that nobody reads, and a snapshot of them when there is cause.

Watched are, on a machine of up to MOST_CORES cores, all of them; on a larger one those that serve network cards, those
that processes on GPUs last ran on, and those that were full lately. Not the nohz_full ones, and not those that are left
out of sampling. The choice is made anew every CHOOSE_US.

A snapshot is taken when the alarm has a suspicion (recorder/alarm.py) that is not a weak one, when a mark arrives, and
again every AGAIN_US while the suspicion lasts. It holds the last seconds, as far as the rings reach; what a former one
held is not written again. Rows go to the table `schedule`.

Cost: RECORD_NS for each record, so a core may write MOST_RECORDS a second (BUDGET of the core) over MEAN_S; one that
writes more is let go for a while, and the list of missing sources says so. Memory: TOTAL_BYTES at most for the watched
cores, and 64 kB for each of the others. A snapshot costs some 0.5 us a record, and at most ROWS_AN_HOUR are written."""

from __future__ import annotations

import errno
import mmap
import resource
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from zombiescope._native import Sampler, ScheduleDecoder
from zombiescope.kernel import cpu, privileges, process, schedule, tracefs
from zombiescope.kernel.perf_event import Clock, monotonic_ns
from zombiescope.kernel.schedule import ScheduleRing, Traced
from zombiescope.recorder.perf_access import explain
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch

SOURCE = "schedule"
BUSY_CORES = "schedule of busy cores"
QUIET_CORES = "schedule of nohz_full cores"

MOST_CORES = 16
TOTAL_BYTES = 32 << 20
MOST_RING_BYTES = 4 << 20
OTHER_RING_BYTES = 64 << 10
PAGE_BYTES = mmap.PAGESIZE
"""Each ring has one more."""

BUDGET = 0.005
RECORD_NS = 700
"""What a record costs the core that writes it, measured with perf's own code path on a virtual machine (EPYC); half of
that on bare metal."""
MOST_RECORDS = round(BUDGET * 1e9 / RECORD_NS)
RECORD_BYTES = 76
"""On average: 104 of a switch, 72 of a wakeup, 56 of a softirq."""
MEAN_S = 60
"""A core may spend what it has saved in a minute: a burst is what an incident begins with."""
JUDGE_US = 5_000_000
LET_GO_US = 60_000_000

CHOOSE_US = 30_000_000
AGAIN_US = 5_000_000
MARKS_EVERY_US = 60_000_000
REACH_NS = 60_000_000_000
"""A ring of a quiet core reaches back for hours: nobody needs that."""
LEAST_NS = 20_000
"""Waits and interrupts below that explain nothing."""
MOST_ROWS = 100_000
ROWS_AN_HOUR = 2_000_000
MOST_GPU_THREADS = 64
FULL_RATIO = 0.9


class Schedule:
    """`wall_us`: from the monotonic clock, in ns, to Unix time. `cards`: the cores that serve network cards; `on_gpu`:
    processes on GPUs."""

    def __init__(
        self,
        batch: Batch,
        sources: Sources,
        sampler: Sampler,
        wall_us: Callable[[int], int],
        *,
        possible: int = 1,
        left_out: Collection[int] = (),
        root: str = "/",
        enabled: bool = True,
    ) -> None:
        self.cards: Callable[[], Iterable[int]] = tuple
        self.on_gpu: Callable[[], Iterable[int]] = tuple
        self.suspects: Callable[[], bool] = lambda: False
        self.watched: tuple[int, ...] = ()
        self.snapshots = 0
        self._batch, self._sources, self._sampler, self._wall_us = batch, sources, sampler, wall_us
        self._possible = possible
        self._root = root
        self._enabled = enabled and root == "/"
        self._quiet = frozenset(cpu.nohz_full(root) or ())
        self._left_out = frozenset(left_out) | self._quiet
        self._traced: list[Traced] = []
        self._rings: dict[int, ScheduleRing] = {}
        self._online: tuple[int, ...] = ()
        self._let_go: dict[int, int] = {}
        """Cores that cost too much, and until when they are let alone."""
        self._rates: dict[int, int] = {}
        self._written: dict[int, tuple[int, int]] = {}
        self._spent: dict[int, float] = {}
        """Records over the budget, of those that a core may save up."""
        self._full: dict[int, int] = {}
        self._chosen_us = self._judged_us = self._taken_us = self._marked_us = 0
        self._taken_ns: dict[int, int] = {}
        """How far each core's schedule was written already."""
        self._marked = False
        self._rows_left, self._hour = ROWS_AN_HOUR, 0

    # --- what is watched ----------------------------------------------------------------------------------------------

    def begin(self, now_us: int) -> None:
        """Finds the tracepoints. Whatever is missing is named; without sched_switch there is no schedule."""
        if not self._enabled:
            return
        self._traced = self._find(now_us)

    def _find(self, now_us: int) -> list[Traced]:
        try:
            place = tracefs.find(self._root) or tracefs.mount_privately()
        except OSError as error:
            why = f"tracefs cannot be read: {error.strerror}"
            self._sources.lacks(SOURCE, why, "CAP_DAC_READ_SEARCH, and tracefs mounted at /sys/kernel/tracing", now_us)
            return []
        found, missing = schedule.find(Path(place))
        for trace, why in missing:
            self._sources.lacks(trace.source, why, "a kernel that has it", now_us)
            if trace.needed:
                self._sources.lacks(SOURCE, f"{trace.source}: {why}", "a kernel that has it", now_us)
                return []
        return found

    def tick(self, tick: Tick) -> None:
        """Follows CPUs that come and go, and lets go of those that cost too much."""
        for core in tick.times:
            if core.busy_ms * 1000 >= FULL_RATIO * tick.interval_us:
                self._full[core.cpu] = tick.wall_us
        if not self._traced:
            return
        if tick.online != self._online or tick.wall_us - self._chosen_us >= CHOOSE_US:
            self._online, self._chosen_us = tick.online, tick.wall_us
            self._follow(tick.wall_us)
        if tick.wall_us - self._judged_us >= JUDGE_US:
            self._judged_us = tick.wall_us
            if self._judge(tick):
                self._follow(tick.wall_us)

    def _wanted(self, now_us: int) -> tuple[int, ...]:
        here = [one for one in self._online if one not in self._left_out and self._let_go.get(one, 0) <= now_us]
        if len(self._online) <= MOST_CORES:
            return tuple(here)
        lately = {one: at for one, at in self._full.items() if now_us - at < CHOOSE_US}
        full = sorted(lately, key=lambda one: -lately[one])
        serving, feeding = list(self.cards()), list(self._gpu_cores())
        hidden = sorted({*serving, *feeding} & self._quiet)
        if hidden:
            why = f"cores {cpu.format_list(hidden)} are nohz_full, and are not disturbed"
            self._sources.lacks(QUIET_CORES, why, "nothing: their owner wants them left alone", now_us)
        half = MOST_CORES // 2
        ranked = [*serving[:half], *feeding[:half], *full, *serving[half:], *feeding[half:]]
        return tuple(sorted([one for one in dict.fromkeys(ranked) if one in here][:MOST_CORES]))

    def _gpu_cores(self) -> Iterable[int]:
        """Where threads of processes on GPUs last ran: the main thread first, for it feeds the GPU."""
        left = MOST_GPU_THREADS
        for pid in self.on_gpu():
            threads = process.threads(pid, self._root)[: max(0, left)]
            left -= len(threads)
            for tid in threads:
                last = process.last_cpu(pid, tid, self._root)
                if last is not None:
                    yield last

    def _follow(self, now_us: int) -> None:
        wanted = self._wanted(now_us)
        others = len(self._online) - len(wanted)
        room_bytes = pinnable_bytes() - others * (OTHER_RING_BYTES + PAGE_BYTES) - len(wanted) * PAGE_BYTES
        ring_bytes = _power_of_two(min(MOST_RING_BYTES, room_bytes // max(1, len(wanted))))
        ring_bytes = max(ring_bytes, schedule.LEAST_RING_BYTES)
        changed = wanted != self.watched
        for number in list(self._rings):
            ring = self._rings[number]
            if number not in self._online or ring.watched != (number in wanted) or not wanted:
                self._close(number)
            elif changed and not ring.watched:
                schedule.refilter(ring, wanted)
        self.watched = wanted
        for number in self._online if wanted else ():
            if number not in self._rings:
                self._open(number, ring_bytes if number in wanted else OTHER_RING_BYTES, now_us)

    def _open(self, number: int, ring_bytes: int, now_us: int) -> None:
        try:
            self._rings[number] = schedule.open_ring(number, self._traced, ring_bytes, watched=self.watched)
        except OSError as error:
            if error.errno != errno.ENODEV:
                why, grant = explain(error, Clock())
                if error.errno in (errno.EPERM, errno.ENOMEM):
                    grant = f"{grant}; or LimitMEMLOCK={TOTAL_BYTES >> 20}M: rings are pinned memory"
                self._sources.lacks(SOURCE, why, grant, now_us)
            return
        self._written.pop(number, None)
        self._sources.has(SOURCE, now_us)

    def _close(self, number: int) -> None:
        self._rings.pop(number).close()
        self._taken_ns.pop(number, None)

    def _judge(self, tick: Tick) -> bool:
        """Whether a core was let go, or may come back."""
        changed = any(until_us <= tick.wall_us for until_us in self._let_go.values())
        self._let_go = {one: until_us for one, until_us in self._let_go.items() if until_us > tick.wall_us}
        for number, ring in self._rings.items():
            written, before = ring.written_bytes, self._written.get(number)
            self._written[number] = written, tick.monotonic_ns
            if before is None or not ring.watched:
                continue
            records, seconds = (written - before[0]) / RECORD_BYTES, max(1, tick.monotonic_ns - before[1]) / 1e9
            self._rates[number] = round(records / seconds)
            self._spent[number] = max(0.0, self._spent.get(number, 0.0) + records - MOST_RECORDS * seconds)
            if self._spent[number] > MOST_RECORDS * MEAN_S:
                self._spent[number] = 0.0
                self._let_go[number] = tick.wall_us + LET_GO_US
                changed = True
        if self._let_go:
            said = ", ".join(f"{one} ({self._rates.get(one, 0):,} a second)" for one in sorted(self._let_go)[:8])
            why = f"too many context switches and wakeups: watching costs over {BUDGET:.1%} of cores {said}"
            self._sources.lacks(BUSY_CORES, why, "nothing: it is watched again when it is calmer", tick.wall_us)
        else:
            self._sources.has(BUSY_CORES, tick.wall_us)
        return changed

    # --- a snapshot ---------------------------------------------------------------------------------------------------

    def marked(self, _: object) -> None:
        """Somebody set a mark."""
        self._marked = True

    def second(self, now_us: int) -> None:
        """Takes a snapshot if there is cause."""
        if now_us // 3_600_000_000 != self._hour:
            self._hour, self._rows_left = now_us // 3_600_000_000, ROWS_AN_HOUR
        marked = self._marked and now_us - self._marked_us >= MARKS_EVERY_US
        self._marked = False
        if not self._rings or not (marked or self.suspects()) or now_us - self._taken_us < AGAIN_US:
            return
        if marked:
            self._marked_us = now_us
        self._taken_us = now_us
        if self._rows_left > 0:
            self.snapshot("mark" if marked else "alarm")

    def snapshot(self, reason: str) -> None:
        decoder = ScheduleDecoder(self._possible, LEAST_NS)
        for ring in sorted(self._rings.values(), key=lambda one: not one.watched):
            ring.feed(decoder)
        self.snapshots += 1
        self._write(decoder, reason)

    def _write(self, decoder: ScheduleDecoder, reason: str) -> None:
        kinds, cpus, begins, ends, tids, wakers, slept, names, open_ = decoder.rows()
        oldest_ns = monotonic_ns() - REACH_NS
        done = self._taken_ns
        kept = [row for row in range(len(kinds)) if ends[row] > max(oldest_ns, done.get(cpus[row], 0))]
        if len(kept) > min(MOST_ROWS, self._rows_left):
            kept.sort(key=lambda row: ends[row])
            kept = kept[-min(MOST_ROWS, self._rows_left) :]
            oldest_ns = max(oldest_ns, ends[kept[0]])
        self._rows_left -= len(kept)
        tasks = self._tasks(decoder, {tid for row in kept for tid in (_task_of(kinds, tids, row), wakers[row])})
        wall = self._wall_us
        for row in kept:
            is_task = kinds[row] in _OF_TASKS
            vector = tids[row] if kinds[row] in _OF_SOFTIRQS else None
            self._batch.add(
                schema.SCHEDULE,
                (
                    wall(ends[row]), wall(max(begins[row], oldest_ns)), cpus[row], kinds[row],
                    tasks.get(tids[row]) if is_task else None, tasks.get(wakers[row]),
                    wall(slept[row]) if slept[row] else None, vector, names[row], open_[row],
                ),
            )  # fmt: skip
        for number, (from_ns, to_ns) in decoder.reach().items():
            begin_ns = max(from_ns, oldest_ns, done.get(number, 0))
            self._taken_ns[number] = to_ns
            if begin_ns < to_ns:
                reached = (wall(to_ns), wall(begin_ns), number, "reach", None, None, None, None, reason, 0)
                self._batch.add(schema.SCHEDULE, reached)

    def _tasks(self, decoder: ScheduleDecoder, tids: Iterable[int]) -> dict[int, int]:
        """tid -> its number in the table of tasks of this segment."""
        numbers = {}
        for tid in tids:
            if tid > 0:
                pid, comm = decoder.task(tid)
                numbers[tid] = self._sampler.task_number(pid or tid, tid, comm)
        return numbers

    def close(self) -> None:
        for number in list(self._rings):
            with suppress(OSError):
                self._close(number)


_OF_TASKS = frozenset(("run", "wait"))
_OF_SOFTIRQS = frozenset(("softirq", "softirq wait"))


def _task_of(kinds: Sequence[str], tids: Sequence[int], row: int) -> int:
    return tids[row] if kinds[row] in _OF_TASKS else -1


def pinnable_bytes() -> int:
    """Of TOTAL_BYTES what this process may pin: rings count against its RLIMIT_MEMLOCK, unless it has CAP_IPC_LOCK. One
    core's ring must not take what the others need."""
    limit, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if limit == resource.RLIM_INFINITY or "CAP_IPC_LOCK" in (privileges.read().effective or ()):
        return TOTAL_BYTES
    return min(TOTAL_BYTES, limit)


def _power_of_two(size: int) -> int:
    """The largest that fits; 1 for what is no size."""
    return 1 << max(0, max(size, 0).bit_length() - 1)
