"""The kernel log by syslog(2), for machines where /dev/kmsg cannot be opened.

SYSLOG_ACTION_READ_ALL copies the end of the log as text, ``<prio>[seconds.micros] text`` a line; it takes
nothing away from other readers. There is no position to go on from and no sequence number: each read copies
up to 256 KB (about a millisecond), and what is new is found by the lines that were there before. The
facility is in the prio, so lines that a process wrote are recognised as with /dev/kmsg. Needs CAP_SYSLOG,
or kernel.dmesg_restrict=0.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable

from zombiescope.kernel.kmsg import KmsgRecord

_READ_ALL = 3
_COPY_MAX_BYTES = 256 * 1024
# The lines before the last one are compared too: a driver can print the same text twice in a microsecond.
_TAIL_LINES = 4

_LINE = re.compile(
    r"<(?P<prio>\d{1,4})>"
    r"(?:\[ *(?P<seconds>\d{1,12})\.(?P<micros>\d{6})\](?:\[ *(?P<caller>[TC]\d{1,10})\])? )?"
    r"(?P<text>.*)",
    re.DOTALL,
)


def parse(line: str) -> KmsgRecord | None:
    """One line of the copy; None for one that does not begin with its priority."""
    match = _LINE.match(line)
    if match is None:
        return None
    prio = int(match["prio"])
    time_us = None
    if match["seconds"] is not None:  # absent with printk.time=0
        time_us = int(match["seconds"]) * 1_000_000 + int(match["micros"])
    fields = {"CALLER": match["caller"]} if match["caller"] else {}
    return KmsgRecord(prio & 7, prio >> 3, None, time_us, match["text"], fields)


def read_all() -> bytes:
    """The last 256 KB of the kernel log. Raises PermissionError with what to do about it."""
    import ctypes  # only machines without /dev/kmsg pay for it

    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_COPY_MAX_BYTES)
    length = libc.klogctl(_READ_ALL, buffer, _COPY_MAX_BYTES)
    if length < 0:
        raise _explained(ctypes.get_errno())
    return buffer.raw[:length]


def _explained(number: int) -> OSError:
    if number == errno.EPERM:
        why = "not permitted; grant CAP_SYSLOG, or set kernel.dmesg_restrict=0"
        return PermissionError(number, f"kernel log by syslog(2): {why}")
    if number == errno.ENOSYS:
        why = "the kernel was built without printk, or a seccomp profile hides syslog(2)"
        return OSError(number, f"kernel log by syslog(2): {why}")
    return OSError(number, f"kernel log by syslog(2): {os.strerror(number)}")


class SyslogReader:
    """Follows the kernel log from the moment it is made; `read` is to be called about once a second. Raises
    OSError at once where the log may not be read."""

    def __init__(self, copy: Callable[[], bytes] = read_all) -> None:
        self._copy = copy
        self._last_copy = copy()
        self._tail = _lines(self._last_copy)[-_TAIL_LINES:]

    def read(self) -> tuple[list[KmsgRecord], int]:
        """The records that are new, and 1 if records were overwritten in between (how many cannot be
        known)."""
        copy = self._copy()
        if copy == self._last_copy:
            return [], 0
        self._last_copy = copy
        lines = _lines(copy)
        start = _after(lines, self._tail)
        lost = int(start is None)
        fresh = lines[start or 0 :]
        self._tail = lines[-_TAIL_LINES:]
        return [record for record in map(parse, fresh) if record is not None], lost


def _lines(copy: bytes) -> list[str]:
    """Whole lines only: the copy may begin in the middle of one."""
    text = copy.decode("utf-8", "backslashreplace")
    lines = [line for line in text.split("\n") if line]
    return lines if text.startswith("<") else lines[1:]


def _after(lines: list[str], tail: list[str]) -> int | None:
    """Where the lines after `tail` begin; None if `tail` is no longer there."""
    if not tail:
        return 0
    for end in range(len(lines), 0, -1):
        window = lines[max(0, end - len(tail)) : end]
        if window == tail[-len(window) :]:
            return end
    return None
