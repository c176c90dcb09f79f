"""A child process of the recorder: another Python, so that what it loads (pyarrow, numpy) never belongs to us.

At most one of a kind runs at a time. Its standard error is ours, it reads nothing and its output goes nowhere. Its CPU
time is counted as ours. One that runs too long is killed."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import dataclass

from zombiescope import _python
from zombiescope.recorder import priority

_NULL = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in (0, 1)]


@dataclass(frozen=True, slots=True)
class Ended:
    exit_code: int
    """Negative: the signal that ended it. 0 also for a child that somebody else reaped, of which nothing is known."""
    cpu_us: int
    max_rss_bytes: int


class ChildProcess:
    """`python -m module arguments`, started again and again."""

    def __init__(self, module: str, max_run_us: int) -> None:
        self._module = module
        self._max_run_us = max_run_us
        self._pid: int | None = None
        self._started_us = 0
        self.runs = 0
        self.cpu_us = 0
        self.peak_rss_bytes = 0

    @property
    def running(self) -> bool:
        return self._pid is not None

    def start(self, now_us: int, *arguments: str) -> None:
        """Only when none is running. Raises OSError."""
        assert self._pid is None
        argv = _python.module(self._module, *arguments)
        made, ours = _python.environment(), (signal.SIGINT,)  # Ctrl-C reaches everybody, and is for the recorder alone
        with priority.usual():
            self._pid = os.posix_spawn(argv[0], argv, made, file_actions=_NULL, setsigmask=ours)
        self._started_us = now_us
        self.runs += 1

    def reap(self, now_us: int) -> Ended | None:
        """How it ended, once, if it has."""
        if self._pid is None:
            return None
        ended = self._wait(os.WNOHANG)
        if ended is None and now_us - self._started_us > self._max_run_us:
            self._signal(signal.SIGKILL)
        return ended

    def stop(self) -> None:
        """Ends it and waits for its end."""
        if self._pid is not None:
            self._signal(signal.SIGTERM)
            self._wait(0)

    def _signal(self, number: int) -> None:
        assert self._pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _wait(self, options: int) -> Ended | None:
        assert self._pid is not None
        try:
            pid, status, usage = os.wait4(self._pid, options)
        except ChildProcessError:  # somebody else reaped it
            self._pid = None
            return Ended(0, 0, 0)
        if pid == 0:
            return None
        self._pid = None
        cpu_us, rss_bytes = int((usage.ru_utime + usage.ru_stime) * 1e6), usage.ru_maxrss * 1024
        self.cpu_us += cpu_us
        self.peak_rss_bytes = max(self.peak_rss_bytes, rss_bytes)
        return Ended(os.waitstatus_to_exitcode(status), cpu_us, rss_bytes)
