"""The kernel log, by the best way that is open: /dev/kmsg, syslog(2), the journal, the console tracepoint, in that
order.

Which one it is stands in every event (`source`) and in node.json. Stamps of /dev/kmsg run on another clock than
everything else; the reader estimates the difference from records that it sees the moment they are written. syslog(2)
has no such moment: what is new in a copy was written since the last one, so the stamp is held between the two.

The tracepoint says neither level nor facility: a process that writes into /dev/kmsg could speak as the kernel there.
Its lines are kept as text and are no facts, and the kernel log counts as missing."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterable

from zombiescope.kernel.kmsg import KmsgReader, KmsgRecord, parse_console
from zombiescope.kernel.log_flood import FloodGuard
from zombiescope.kernel.log_formats import Fields as LogFields
from zombiescope.kernel.log_formats import LogEvent, event_of
from zombiescope.kernel.procfile import at, read_text
from zombiescope.kernel.release import kernel_version
from zombiescope.kernel.syslog import SyslogReader
from zombiescope.node.systemd.journal import JournalFollower, has_system_journal
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord
from zombiescope.store.event import Event

CONSOLE = "console"
GRANT = "CAP_SYSLOG (AmbientCapabilities=CAP_SYSLOG), or sudo sysctl kernel.dmesg_restrict=0"
_ALLOW_SYSLOG = "a seccomp profile that allows syslog(2)"
RECORDS_PER_S, RECORDS_BURST = 2_000, 20_000
"""A dump of all tasks at an OOM kill is read whole; a driver that prints for ever is not."""
_EVERY_LINE = (5, 19)
"""Since 5.19 the tracepoint fires for every line; before, for those that the console prints."""


class KernelLog:
    """Follows the kernel log and turns lines into events."""

    def __init__(self, clock: WallClock, sources: Sources, after_seq: int | None, now_us: int, root: str = "/") -> None:
        self._clock = clock
        self._sources = sources
        self._root = root
        self._guard = FloodGuard()
        self._kmsg: KmsgReader | None = None
        self._fallback: SyslogReader | JournalFollower | None = None
        self._read_us = now_us
        self._left, self._spent_s = float(RECORDS_BURST), time.monotonic()
        self._pause_until_s = 0.0
        self._has_paused = False
        self._grant = GRANT
        self.source: str | None = None
        try:
            self._kmsg = KmsgReader(at(root, "dev/kmsg"), after_seq=after_seq)
            self.source = "kmsg"
        except OSError as error:
            self._why = f"/dev/kmsg: {error.strerror}"
            if root == "/":
                self._open_fallback()
            if self._fallback is None:
                sources.lacks("kernel log (/dev/kmsg)", self._why, self._grant, now_us)

    def _open_fallback(self) -> None:
        try:
            self._fallback, self.source = SyslogReader(), "syslog"
        except OSError as error:
            self._why = f"{self._why}; {error.strerror}"
            self._grant = _ALLOW_SYSLOG if error.errno == errno.ENOSYS else GRANT
        else:
            return
        journal = JournalFollower() if has_system_journal() else None
        if journal is not None and journal.failure is None:
            self._fallback, self.source = journal, "journal"
        elif journal is not None:
            journal.close()

    @property
    def _is_open(self) -> bool:
        return self._kmsg is not None or self._fallback is not None

    def tracepoints(self) -> list[Tracepoint]:
        """The console's, where nothing better is open."""
        return [] if self._is_open else [Tracepoint("printk", CONSOLE, self._traced)]

    def settle(self, *, console: bool, now_us: int) -> None:
        """Says what is missing once it is known whether the console tracepoint could be opened."""
        if self._is_open:
            return
        if not console:
            why = "neither syslog(2), journal nor console tracepoint is open"
            self._sources.lacks("kernel log", why, self._grant, now_us)
            return
        self.source = "printk:console"
        why = f"{self._why}; the tracepoint printk:console {self._hidden_by_tracepoint()}"
        self._sources.lacks("kernel log", why, self._grant, now_us)

    def _hidden_by_tracepoint(self) -> str:
        hidden = "hides levels, call traces, the ends of continued lines, and whether a process wrote the line"
        version = kernel_version(read_text(at(self._root, "proc/sys/kernel/osrelease")))
        if version is None or version >= _EVERY_LINE:
            return hidden
        level = (read_text(at(self._root, "proc/sys/kernel/printk")) or "").split()[:1]
        return f"{hidden}; before Linux 5.19 also lines of level {level[0] if level else '?'} and above (kernel.printk)"

    def fileno(self) -> int | None:
        """What to poll for reading, if there is such a thing; nothing while a flood is over its budget. The kernel
        keeps the last part of what is not read, and overwrites the rest."""
        if self._kmsg is None or time.monotonic() < self._pause_until_s:
            return None
        return self._kmsg.fileno()

    @property
    def last_seq(self) -> int | None:
        return self._kmsg.last_seq if self._kmsg is not None else None

    @property
    def clock_known(self) -> bool:
        return self._kmsg is not None and self._kmsg.clock.known

    def read(self) -> list[Event]:
        """What is new. Bounded: a flood is taken a piece at a time. Raises OSError."""
        reader = self._kmsg if self._kmsg is not None else self._fallback
        if reader is None:
            return []
        if time.monotonic() < self._pause_until_s:
            return []
        records, lost = reader.read()
        self._spend(len(records))
        events = self._events(records)
        self._read_us = self._clock.now_us()
        if lost:
            text = f"{lost} kernel log records were overwritten before they could be read"
            if self._has_paused:
                text += f": a flood, of which at most {RECORDS_PER_S:,} a second are read"
                self._has_paused = False
            events.append(
                Event(self._clock.now_us(), "kernel_log_gap", self.source or "kmsg", "warning", text, {"lost": lost})
            )
        return events

    def _spend(self, records: int) -> None:
        """A second of reading for each RECORDS_PER_S over the burst: a driver that prints 50,000 lines a second costs a
        few percent of a core and not all of it."""
        now_s = time.monotonic()
        self._left = min(RECORDS_BURST, self._left + (now_s - self._spent_s) * RECORDS_PER_S) - records
        self._spent_s = now_s
        if self._left < 0:
            self._pause_until_s, self._has_paused = now_s + 1.0, True

    def _traced(self, record: TraceRecord, fields: Fields, wall_us: int) -> list[Event]:
        """A line that reached the console: text, whoever wrote it."""
        line = parse_console(fields["msg"].text(record.raw).encode("utf-8", "replace"))
        event = None if line is None else event_of(line, "printk:console")
        if event is None:
            return []
        told: LogFields = {"writer_unknown": 1, "looks_like": event.kind}
        return self._admit(LogEvent("kernel_log", "info", event.source, event.text, told), wall_us)

    def held_back(self) -> list[Event]:
        """Sums of what a flood held back; call about once a second."""
        now_us = self._clock.now_us()
        return [_stored(event, now_us) for event in self._guard.flush(time.monotonic_ns())]

    def _events(self, records: Iterable[KmsgRecord]) -> list[Event]:
        events = []
        for record in records:
            events += self._admit(event_of(record, self.source or "kmsg"), self._time_us(record))
        return events

    def _admit(self, event: LogEvent | None, time_us: int) -> list[Event]:
        if event is None:
            return []
        return [_stored(one, time_us) for one in self._guard.admit(event, time.monotonic_ns())]

    def _time_us(self, record: KmsgRecord) -> int:
        if record.time_us is None:
            return self._clock.now_us()
        offset = self._kmsg.clock if self._kmsg is not None else None
        if offset is None:
            stamp_us, now_us = self._clock.wall_us(record.time_us * 1000), self._clock.now_us()
            return min(max(stamp_us, self._read_us), now_us) if self.source == "syslog" else min(stamp_us, now_us)
        return min(self._clock.wall_us(offset.to_monotonic_ns(record.time_us)), self._clock.now_us())

    def close(self) -> None:
        if self._kmsg is not None:
            self._kmsg.close()
        if isinstance(self._fallback, JournalFollower):
            self._fallback.close()


def _stored(event: LogEvent, time_us: int) -> Event:
    fields = {**event.fields, "line": event.known} if event.known else dict(event.fields)
    return Event(time_us, event.kind, event.source, event.severity, event.text, fields)
