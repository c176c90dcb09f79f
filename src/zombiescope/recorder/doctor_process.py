"""The doctor's process as the recorder sees it: started once, asked by a line, answering by a line, never waited for.

    we write   FROM_US                                            look at what happened from there to now
    it writes  {"ready": true}                                    once, when it has loaded what it needs
               {"cpu_us": .., "new": .., "open": .., "serious": .., "exit": .., "total_cpu_us": .., "rss_bytes": ..}

Loading numpy, pyarrow and the diagnosis costs many times what a look does, so it is done once (diagnosis/standby.py
says what it costs in memory). It ends when our end of its pipe is closed, however we end. One that does not answer is
killed; one that ended is said, and started again after a second, then after 2, 4, ... and at most 60 s.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from select import POLLIN, poll
from time import monotonic
from typing import Any

from zombiescope import _python

MODULE = "zombiescope.diagnosis.standby"
ANSWER_US = 90_000_000
"""The doctor ends a look that hangs itself, sooner than this."""
MOST_WAIT_US = 60_000_000
LINE_BYTES = 65536
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""A process that forks has no threads. OpenBLAS starts one for each core of the node, Arrow one of its own."""


class DoctorProcess:
    def __init__(self, node_dir: Path, module: str = MODULE) -> None:
        self._arguments = _python.module(module, str(node_dir))
        self._pid: int | None = None
        self._to = self._from = -1
        self._line = b""
        self._asked_us: int | None = None
        self._failures = 0
        self._next_start_us = 0
        self._ended_cpu_us = self._cpu_us = 0
        self.ready = False
        self.looks = 0
        self.peak_rss_bytes = 0

    @property
    def cpu_us(self) -> int:
        return self._ended_cpu_us + self._cpu_us

    @property
    def free(self) -> bool:
        """Whether it can be asked."""
        return self.ready and self._asked_us is None

    # --- starting and asking ------------------------------------------------------------------------------------------

    def start(self, now_us: int) -> None:
        """If it does not run, and it is time. Raises OSError."""
        if self._pid is not None or now_us < self._next_start_us:
            return
        self._wait_longer(now_us)
        theirs_in, self._to = os.pipe2(os.O_CLOEXEC)
        self._from, theirs_out = os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, theirs_in, 0), (os.POSIX_SPAWN_DUP2, theirs_out, 1)]
        try:
            self._pid = os.posix_spawn(
                self._arguments[0], self._arguments, {**os.environ, **ONE_THREAD}, file_actions=actions
            )
        except OSError:
            self._close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._line = b""

    def _wait_longer(self, now_us: int) -> None:
        """The next start, should this one fail."""
        self._next_start_us = now_us + min(1_000_000 << self._failures, MOST_WAIT_US)
        self._failures = min(self._failures + 1, 6)

    def ask(self, now_us: int, from_us: int) -> None:
        """For one look. Only when it is free. Raises OSError."""
        assert self.free
        os.write(self._to, b"%d\n" % from_us)
        self._asked_us = now_us
        self.looks += 1

    # --- listening ----------------------------------------------------------------------------------------------------

    def listen(self, now_us: int) -> tuple[dict[str, Any] | None, str | None]:
        """(the answer, if there is one; why it ended, once, if it has). Never waits."""
        if self._pid is None:
            return None, None
        answer = self._take_answer()
        if answer is None and self._asked_us is not None and now_us - self._asked_us > ANSWER_US:
            self._signal(signal.SIGKILL)
        return answer, self._reaped(os.WNOHANG)

    def awaited(self, timeout_s: float) -> bool:
        """Whether it is free within that time: for the recorder's own end, when nothing else is left to do. One that
        is still loading is not waited for."""
        if not self.ready:
            return False
        watched, end_s = poll(), monotonic() + timeout_s
        watched.register(self._from, POLLIN)
        while not self.free and (left_s := end_s - monotonic()) > 0:
            for _, found in watched.poll(left_s * 1000):
                if not found & POLLIN:
                    return False
            self._take_answer()
        return self.free

    def _take_answer(self) -> dict[str, Any] | None:
        with suppress(BlockingIOError, OSError):
            self._line += os.read(self._from, LINE_BYTES)
        line, newline, rest = self._line.partition(b"\n")
        if not newline:
            self._line = self._line[:LINE_BYTES]
            return None
        self._line = rest
        return self._understood(line)

    def _understood(self, line: bytes) -> dict[str, Any] | None:
        try:
            said = json.loads(line)
        except ValueError:
            return None
        if not isinstance(said, dict):
            return None
        self._cpu_us = int(said.get("total_cpu_us") or self._cpu_us)
        self.peak_rss_bytes = max(self.peak_rss_bytes, int(said.get("rss_bytes") or 0))
        if said.get("ready"):
            self.ready = True
            return None
        self._asked_us, self._failures = None, 0
        return said

    # --- its end ------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends it and waits for its end."""
        if self._pid is not None:
            self._signal(signal.SIGTERM)
            self._reaped(0)

    def _signal(self, number: int) -> None:
        assert self._pid is not None
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _reaped(self, options: int) -> str | None:
        assert self._pid is not None
        try:
            pid, status, usage = os.wait4(self._pid, options)
        except ChildProcessError:  # somebody else reaped it
            self._forget(self._cpu_us)
            return "it is gone"
        if pid == 0:
            return None
        self.peak_rss_bytes = max(self.peak_rss_bytes, usage.ru_maxrss * 1024)
        self._forget(int((usage.ru_utime + usage.ru_stime) * 1e6))
        return _why(os.waitstatus_to_exitcode(status))

    def _forget(self, cpu_us: int) -> None:
        self._ended_cpu_us += cpu_us
        self._cpu_us = 0
        self._pid = self._asked_us = None
        self.ready = False
        self._close()

    def _close(self) -> None:
        for descriptor in (self._to, self._from):
            with suppress(OSError):
                os.close(descriptor)
        self._to = self._from = -1


def _why(exit_code: int) -> str:
    if exit_code < 0:
        with suppress(ValueError):
            return f"it was ended by {signal.Signals(-exit_code).name}"
    return f"it ended with {exit_code}"
