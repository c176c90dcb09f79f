"""The kernel log: /dev/kmsg.

One read(2) gives one record: ``prio,seq,usec,flags[,more];text`` and, on lines that begin with a space,
``KEY=value`` fields. Bytes that are not printable arrive as ``\\xHH``. prio is facility * 8 + level: the
kernel itself writes with facility 0, and the kernel gives every line that a process writes into /dev/kmsg
another facility (user, if it asked for 0), so a process cannot speak as the kernel. What can still be the
words of a process is a name inside a kernel line, and a whole line that came through /dev/ttyprintk
(``[U] ...``).

Reading costs a system call per record and nothing while nothing is logged; the descriptor is pollable.
Where the file cannot be opened (no CAP_SYSLOG with kernel.dmesg_restrict=1, no device node in a container)
the log is read by :mod:`zombiescope.kernel.syslog` or from the journal instead.

The stamps are local_clock, which drifts from CLOCK_MONOTONIC without bound (17 ms in the first hour of one
machine): :class:`ClockOffset` estimates the difference from records that are read as they are written.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections import deque
from dataclasses import dataclass, field

# Longest record that any kernel hands out (CONSOLE_EXT_LOG_MAX); a smaller buffer is answered with EINVAL.
_RECORD_MAX_BYTES = 8192
_NS_PER_US = 1_000

_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_STAMP = re.compile(r"\[ *\d{1,12}\.\d{6}\](?:\[ *[TC]\d{1,10}\])? ")


@dataclass(frozen=True, slots=True)
class KmsgRecord:
    """One line of the kernel log. ``None`` where the source does not carry it (the printk:console
    tracepoint has neither level nor facility, syslog(2) has no sequence number)."""

    level: int | None
    facility: int | None
    seq: int | None
    time_us: int | None
    text: str
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def from_kernel(self) -> bool | None:
        """False when a process wrote it, None when the source does not say."""
        if self.text.startswith("[U] "):
            return False
        return None if self.facility is None else self.facility == 0


def parse(record: bytes) -> KmsgRecord | None:
    """A record as read from /dev/kmsg; None if it has another form."""
    head, separator, body = record.partition(b";")
    parts = head.split(b",")
    if not separator or len(parts) < 3:
        return None
    try:
        prio, seq, time_us = int(parts[0]), int(parts[1]), int(parts[2])
    except ValueError:
        return None
    text, _, dictionary = body.partition(b"\n")
    fields = _fields(dictionary) if dictionary else {}
    for extra in parts[4:]:
        if extra.startswith(b"caller="):
            fields["CALLER"] = _unescape(extra[7:])
    return KmsgRecord(prio & 7, prio >> 3, seq, time_us, _unescape(text), fields)


def _fields(dictionary: bytes) -> dict[str, str]:
    pairs = (line[1:].partition(b"=") for line in dictionary.split(b"\n") if line.startswith(b" "))
    return {_unescape(key): _unescape(value) for key, equals, value in pairs if equals}


def _unescape(text: bytes) -> str:
    if b"\\" in text:
        text = _ESCAPE.sub(_byte, text)
    return text.decode("utf-8", "backslashreplace")


def _byte(match: re.Match[bytes]) -> bytes:
    """Control characters other than tab and newline stay escaped: a process name in a kernel line must not
    be able to drive the terminal that shows it."""
    value = int(match[1], 16)
    return match[0] if (value < 0x20 and value not in (0x09, 0x0A)) or value == 0x7F else bytes((value,))


def parse_console(msg: bytes) -> KmsgRecord | None:
    """The text of the printk:console tracepoint; None for the empty pieces that end a continued line.

    The tracepoint fires for each piece of a line that the kernel prints in pieces, cuts the newline off,
    and says neither the level nor whether a process wrote the line."""
    text = msg.partition(b"\0")[0].decode("utf-8", "backslashreplace")
    stamp = _STAMP.match(text)
    if stamp:
        text = text[stamp.end() :]
    text = text.rstrip("\n")
    return KmsgRecord(None, None, None, None, text) if text.strip() else None


class ClockOffset:
    """CLOCK_MONOTONIC minus the clock of the kernel log's stamps.

    A record read at once was stamped a little before it was read, never after: the smallest difference seen
    is the nearest to the truth. Only the last half hour counts, because the two clocks drift apart."""

    _SLOT_NS = 600 * 1_000_000_000
    _SLOTS = 3

    def __init__(self) -> None:
        self._slots: deque[tuple[int, int]] = deque(maxlen=self._SLOTS)

    @property
    def known(self) -> bool:
        return bool(self._slots)

    @property
    def offset_ns(self) -> int:
        """0 until the first record was read live; see `known`."""
        return min((offset for _, offset in self._slots), default=0)

    def observe(self, time_us: int, monotonic_ns: int) -> None:
        """A record with this stamp was read at this moment, and the reader had nothing left to read before
        it."""
        slot, offset = monotonic_ns // self._SLOT_NS, monotonic_ns - time_us * _NS_PER_US
        while self._slots and self._slots[0][0] <= slot - self._SLOTS:
            self._slots.popleft()
        if self._slots and self._slots[-1][0] == slot:
            self._slots[-1] = (slot, min(offset, self._slots[-1][1]))
        else:
            self._slots.append((slot, offset))

    def to_monotonic_ns(self, time_us: int) -> int:
        return time_us * _NS_PER_US + self.offset_ns


class KmsgReader:
    """Follows /dev/kmsg without ever blocking.

    Starts at the end of the log; with `after_seq` (the last record seen by an earlier reader of the same
    boot) at the record after that one. Raises OSError where the file cannot be opened."""

    def __init__(self, path: str = "/dev/kmsg", after_seq: int | None = None, clock: ClockOffset | None = None) -> None:
        self.clock = clock if clock is not None else ClockOffset()
        self.last_seq = after_seq
        self._skipping = after_seq is not None
        self._caught_up = not self._skipping
        self._fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not self._skipping:
            os.lseek(self._fd, 0, os.SEEK_END)

    def fileno(self) -> int:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def read(self, limit: int = 500) -> tuple[list[KmsgRecord], int]:
        """At most `limit` records, and how many were overwritten before they could be read.

        A caller that gets `limit` records has more to read; a flood then costs it one call at a time.
        """
        records: list[KmsgRecord] = []
        lost = 0
        live, self._caught_up = self._caught_up, False
        overwritten = False
        for _ in range(limit):
            try:
                raw = self._read_record()
            except BlockingIOError:
                self._end_of_log()
                break
            except OSError as error:
                # EPIPE: overwritten, the kernel has moved us to the oldest record that is left. EINVAL: one
                # record longer than the buffer, skipped. Both show as a gap in the sequence numbers.
                if error.errno not in (errno.EPIPE, errno.EINVAL):
                    raise
                overwritten, live = True, False
                continue
            record = parse(raw)
            if record is None or self._is_old(record):
                continue
            lost += self._missing_before(record, overwritten)
            overwritten, self.last_seq = False, record.seq
            if live and record.time_us is not None:
                self.clock.observe(record.time_us, time.monotonic_ns())
            records.append(record)
        return records, lost

    def _read_record(self) -> bytes:
        return os.read(self._fd, _RECORD_MAX_BYTES)

    def _is_old(self, record: KmsgRecord) -> bool:
        if not self._skipping:
            return False
        self._skipping = record.seq is not None and self.last_seq is not None and record.seq < self.last_seq
        return self._skipping or record.seq == self.last_seq

    def _missing_before(self, record: KmsgRecord, overwritten: bool) -> int:
        if self.last_seq is None or record.seq is None:
            return int(overwritten)  # at least one, before the first record that we ever saw
        return max(0, record.seq - self.last_seq - 1)

    def _end_of_log(self) -> None:
        self._caught_up = True
        if self._skipping:
            # The log ends before the number we were to go on from: it belongs to an earlier boot.
            self._skipping, self.last_seq = False, None
