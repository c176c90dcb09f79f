"""The loop: waits for rings, the kernel log, marks and the clock, and calls the recorder. The only place that waits."""

from __future__ import annotations

import gc
import os
import select
import signal
import time
from contextlib import suppress

from zombiescope.kernel.perf_event import monotonic_ns
from zombiescope.recorder.budget import Budget
from zombiescope.recorder.recorder import Recorder

WRITE_EVERY_NS = 1_000_000_000
SETTLE_NS = 100_000_000
"""How long the lookup thread has for its answers between a drain and the write that follows it."""
RINGS_GAP_NS = 10_000_000
RINGS_PER_S = 25
STORM_GAP_NS = 50_000_000
"""Rings that call are emptied this often at most, and more rarely in a storm that uses up RINGS_PER_S: a cgroup that is
made calls each time. A ring that fills is not kept waiting."""
REST_NS = 5_000_000


class Loop:
    """Runs a recorder until it is stopped, or its time is over."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._poll = select.poll()
        self._stopping = False
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._fds: set[int] = set()
        self._calls = Budget(RINGS_PER_S, RINGS_PER_S)
        self.startup_cpu_s = 0.0
        self._cpu_at_start_s = 0.0

    @property
    def cpu_s(self) -> float:
        """CPU used since the loop began."""
        return time.process_time() - self._cpu_at_start_s

    def obey_signals(self) -> None:
        """From here on they end the recording in order, also before it runs."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)

    def run(self) -> None:
        """Returns when stopped; the recorder is closed by the caller."""
        self._poll.register(self._wake_read, select.POLLIN)
        self._recorder.tick(0)
        self._recorder.write()
        gc.collect()
        gc.freeze()  # what lives now lives to the end: the collector need not look at it again
        self._cpu_at_start_s = time.process_time()
        self.startup_cpu_s = self._cpu_at_start_s + self._recorder.config.startup_cpu_s
        self._turn()

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _turn(self) -> None:
        recorder, intake = self._recorder, self._recorder.intake
        interval_ns = int(recorder.config.interval_s * 1e9)
        started = monotonic_ns()
        end = started + int(recorder.config.for_s * 1e9) if recorder.config.for_s is not None else None
        next_tick = started + interval_ns - (started + recorder.clock.offset_ns) % interval_ns
        next_drain = next_tick if interval_ns == WRITE_EVERY_NS else started + WRITE_EVERY_NS
        next_write: int | None = None
        next_rings = 0
        while not self._stopping:
            ring_fds = recorder.descriptors()
            log_fd, mark_fd = intake.descriptors()
            self._follow(ring_fds | {fd for fd in (log_fd, mark_fd) if fd is not None})
            deadlines = [when for when in (next_tick, next_drain, next_write, end) if when is not None]
            ready = self._wait(min(deadlines) - monotonic_ns())
            now = monotonic_ns()
            if ready & ring_fds and now < next_tick:
                self._rest(min(next_rings, next_tick))
                recorder.drain()
                now = monotonic_ns()
                next_rings = now + (RINGS_GAP_NS if self._calls.take(now // 1000) else STORM_GAP_NS)
            if log_fd in ready:
                intake.read_kernel_log()
            if mark_fd in ready:
                intake.read_marks()
            if now >= next_tick:
                recorder.tick(now - next_tick)
                next_tick += interval_ns * (1 + (now - next_tick) // interval_ns)
            if now >= next_drain:
                if interval_ns != WRITE_EVERY_NS:
                    recorder.drain()
                next_drain += WRITE_EVERY_NS * (1 + (now - next_drain) // WRITE_EVERY_NS)
                next_write = now + SETTLE_NS
            if next_write is not None and monotonic_ns() >= next_write:
                recorder.write()
                next_write = None
            if end is not None and now >= end:
                return

    def _rest(self, until_ns: int) -> None:
        """Until then, or until a ring fills. Not by poll, which would return for every call; nor by sleep, which is
        refused where the process has a clock of its own."""
        while (left_ns := until_ns - monotonic_ns()) > 0 and not self._recorder.rings_fill():
            select.select((), (), (), min(left_ns, REST_NS) / 1e9)

    def _wait(self, remaining_ns: int) -> set[int]:
        timeout_ms = max(0, -(-remaining_ns // 1_000_000))
        ready = {fd for fd, _ in self._poll.poll(timeout_ms)}
        if self._wake_read in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_read, 512)
        return ready

    def _follow(self, fds: set[int]) -> None:
        """Polls these and no others: CPUs come and go, and a source that fails is left alone for a while."""
        if fds == self._fds:
            return
        for fd in self._fds - fds:
            with suppress(KeyError):
                self._poll.unregister(fd)
        for fd in fds - self._fds:
            self._poll.register(fd, select.POLLIN)
        self._fds = fds
