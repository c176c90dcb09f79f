"""Another Python of ours at the other ends of two pipes: told by lines, telling by lines, never waited for.

What may hang, or load much, is done by a process of its own (doctor, waits, GPUs, hardware); this is what those have in
common. It is started by posix_spawn with our environment less what would let the current directory in, at the priority
that anybody has. Its words are read without waiting and up to a bound; an answer without an end is dropped. Its CPU
time is counted as ours. Somebody else may reap it: then it is gone. One that cannot be ended is left to the kernel, and
there is never a second one beside it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import ClassVar

from zombiescope import _python
from zombiescope.recorder import priority

READ_BYTES = 65536
OURS = (signal.SIGINT,)
"""Ctrl-C reaches everybody in the terminal, and is for the recorder alone: it ends its helpers itself."""
_DOUBLINGS = 16


class Restarts:
    """When it may be started again: after `first`, then twice that, ... at most `most`, of whatever unit."""

    def __init__(self, first: int, most: int) -> None:
        self._first, self._most = first, most
        self._failures = 0
        self.next: float = 0

    def is_due(self, now: float) -> bool:
        return now >= self.next

    def hold(self, now: float) -> None:
        """Not before the next step from now."""
        self.next = now + min(self._first << self._failures, self._most)
        self._failures = min(self._failures + 1, _DOUBLINGS)

    def worked(self) -> None:
        """It did what it is for: the next one is not held as long."""
        self._failures = 0


class PipedProcess:
    PEAK_AT_END: ClassVar = True
    """Whether what the kernel says at its end counts for its peak: it cannot be less than ours was when we made it."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._to = self._from = -1
        self._said = b""
        self._ended_cpu_us = self._cpu_us = 0
        self.peak_rss_bytes = 0
        self.runs = 0

    @property
    def pid(self) -> int | None:
        return self._pid

    @property
    def running(self) -> bool:
        return self._pid is not None

    @property
    def cpu_us(self) -> int:
        return self._ended_cpu_us + self._cpu_us

    # --- its start ----------------------------------------------------------------------------------------------------

    def _spawn(
        self, arguments: list[str], environment: Mapping[str, str] | None = None, inherited: Mapping[int, int] = {}
    ) -> None:
        """`inherited`: its number for a descriptor of ours -> that descriptor. Raises OSError."""
        theirs_in, self._to = os.pipe2(os.O_CLOEXEC)
        self._from, theirs_out = os.pipe2(os.O_CLOEXEC)
        given = {0: theirs_in, 1: theirs_out, **inherited}
        actions = [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in given.items()]
        made = _python.environment() if environment is None else environment
        try:
            with priority.usual():
                self._pid = os.posix_spawn(arguments[0], arguments, made, file_actions=actions, setsigmask=OURS)
        except OSError:
            self._close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._said = b""
        self.runs += 1

    # --- its words ----------------------------------------------------------------------------------------------------

    def _hear(self, most_bytes: int) -> bool:
        """Reads what it has said, up to a bound. Whether there was anything."""
        if len(self._said) >= most_bytes and b"\n" not in self._said:
            self._said = b""
        before = len(self._said)
        with suppress(OSError):
            while len(self._said) < most_bytes and (piece := os.read(self._from, READ_BYTES)):
                self._said += piece
        return len(self._said) > before

    def _line(self) -> bytes | None:
        """The first that it said and nobody took."""
        line, newline, rest = self._said.partition(b"\n")
        if not newline:
            return None
        self._said = rest
        return line

    def _lines(self) -> list[bytes]:
        *lines, self._said = self._said.split(b"\n")
        return lines

    # --- its end ------------------------------------------------------------------------------------------------------

    def _signal(self, number: int) -> None:
        assert self._pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _reaped(self, options: int = os.WNOHANG) -> str | None:
        """Why it ended, once, if it has."""
        assert self._pid is not None
        try:
            pid, status, usage = os.wait4(self._pid, options)
        except ChildProcessError:  # somebody else reaped it
            self._forget(self._cpu_us)
            return "it is gone"
        if pid == 0:
            return None
        if self.PEAK_AT_END:
            self.peak_rss_bytes = max(self.peak_rss_bytes, usage.ru_maxrss * 1024)
        self._forget(int((usage.ru_utime + usage.ru_stime) * 1e6))
        return _why(os.waitstatus_to_exitcode(status))

    def _gone_within(self, seconds: float) -> bool:
        """For the recorder's own end, when nothing else is left to do."""
        end_s = time.monotonic() + seconds
        while self._pid is not None and not self._reaped():
            if time.monotonic() >= end_s:
                return False
            time.sleep(0.01)
        return True

    def _forget(self, cpu_us: int) -> None:
        self._ended_cpu_us += cpu_us
        self._cpu_us, self._pid = 0, None
        self._close()

    def _close_input(self) -> None:
        with suppress(OSError):
            os.close(self._to)
        self._to = -1

    def _close(self) -> None:
        self._close_input()
        with suppress(OSError):
            os.close(self._from)
        self._from = -1


def _why(exit_code: int) -> str:
    if exit_code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-exit_code).name}"
    return f"it ended with {exit_code}"
