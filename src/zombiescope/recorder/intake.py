"""Events on their way in: from tracepoints, the kernel log, marks and systemd into the batch, the rollups, the alarm.

Descriptors that bring them are read when they are readable (loop.py); a source that fails is not listened to until its
next try, which comes with a write: else it would keep the loop awake."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from zombiescope.node.systemd.units import UnitEvent
from zombiescope.recorder.alarm_feed import AlarmFeed
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.kernel_log import KernelLog
from zombiescope.recorder.marks import MarkSocket
from zombiescope.recorder.rollup import Rollup
from zombiescope.recorder.stage import Barrier, Stage
from zombiescope.recorder.tick import Tick
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

KERNEL_LOG = "kernel log (reader)"
MARKS = "marks"
UNIT_EVENTS = "systemd (events)"
MAX_UNIT_EVENTS = 10_000


class EventIntake:
    def __init__(
        self,
        batch: Batch,
        rollup: Rollup,
        alarm: AlarmFeed | None,
        barrier: Barrier,
        clock: WallClock,
        kernel_log: KernelLog,
    ) -> None:
        self._batch = batch
        self._rollup = rollup
        self._alarm = alarm
        self._barrier = barrier
        self._clock = clock
        self._kernel_log = kernel_log
        self.marks: MarkSocket | None = None
        self.unit_events: deque[UnitEvent] = deque(maxlen=MAX_UNIT_EVENTS)
        self.count = 0
        self.listeners: dict[str, Callable[[Event], None]] = {}
        """By the kind of event, who else has to know of it."""

    def put(self, event: Event) -> None:
        self.count += 1
        event = event.masked()
        self._batch.add(schema.EVENTS, event.row())
        self._rollup.event(event.kind, event.severity)
        if self._alarm is not None:
            self._alarm.event(event)
        if event.kind in self.listeners:
            self.listeners[event.kind](event)

    def traced(self, fired: Iterable[tuple[Tracepoint, TraceRecord, Fields]]) -> None:
        """Tracepoints that fired; a record that its handler cannot read costs only itself. There may be thousands."""
        for tracepoint, record, fields in fired:
            try:
                for event in tracepoint.handle(record, fields, self._clock.wall_us(record.monotonic_ns)):
                    self.put(event)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is this record's alone
                self._barrier.failed(tracepoint.source, error)
            else:
                if not self._barrier.untroubled:
                    self._barrier.worked(tracepoint.source)

    def read_kernel_log(self) -> None:
        self._barrier.attempt(KERNEL_LOG, self._read_kernel_log)

    def read_marks(self) -> None:
        self._barrier.attempt(MARKS, self._read_marks)

    def stages(self) -> list[Stage]:
        """Once a second."""
        return [
            Stage(UNIT_EVENTS, self.take_unit_events),
            Stage(KERNEL_LOG, self._follow_kernel_log),
            Stage(MARKS, self._follow_marks),
        ]

    def take_unit_events(self, _: Tick) -> None:
        while self.unit_events:
            event = self.unit_events.popleft()
            fields = {"unit": event.unit, **event.fields}
            at_us = self._clock.wall_us(event.at_ns)
            self.put(Event(at_us, event.kind, "systemd", event.severity, event.text, fields))

    def _read_kernel_log(self) -> None:
        for event in self._kernel_log.read():
            self.put(event)

    def _follow_kernel_log(self, _: Tick) -> None:
        for event in self._kernel_log.held_back():
            self.put(event)
        if self._kernel_log.fileno() is None or self._barrier.failing(KERNEL_LOG):
            self._read_kernel_log()

    def _read_marks(self) -> None:
        if self.marks is not None:
            for event in self.marks.read(self._clock.now_us()):
                self.put(event)
            self._batch.extend(schema.STEPS, self.marks.take_steps())

    def _follow_marks(self, _: Tick) -> None:
        if self.marks is not None:
            self.marks.second()
            if self._barrier.failing(MARKS):
                self._read_marks()

    def close(self) -> None:
        if self.marks is not None:
            self.marks.close()

    def descriptors(self) -> tuple[int | None, int | None]:
        """What to poll now: the kernel log's and the marks'."""
        marks = None if self.marks is None or self._barrier.failing(MARKS) else self.marks.fileno()
        return None if self._barrier.failing(KERNEL_LOG) else self._kernel_log.fileno(), marks
