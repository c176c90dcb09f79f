"""The doctor's process as the recorder sees it: started once, asked by a line, answering by a line, never waited for.

    we write   FROM_US                                            look at what happened from there to now
    it writes  {"ready": true}                                    once, when it has loaded what it needs
               {"cpu_us": .., "new": .., "open": .., "serious": .., "exit": .., "total_cpu_us": .., "rss_bytes": ..}

Loading numpy, pyarrow and the diagnosis costs many times what a look does, so it is done once (diagnosis/standby.py
says what it costs in memory). It ends when our end of its pipe is closed, however we end. One that does not answer is
killed; one that ended is said, and started again after a second, then after 2, 4, ... and at most 60 s.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from select import POLLIN, poll
from time import monotonic
from typing import Any

from zombiescope import _json, _python
from zombiescope.recorder.piped_process import PipedProcess, Restarts

MODULE = "zombiescope.diagnosis.standby"
ANSWER_US = 90_000_000
"""The doctor ends a look that hangs itself, sooner than this."""
FIRST_WAIT_US, MOST_WAIT_US = 1_000_000, 60_000_000
LINE_BYTES = 65536
ONE_THREAD = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""A process that forks has no threads. OpenBLAS starts one for each core of the node, Arrow one of its own."""
ENVIRONMENT = ONE_THREAD | _python.BRIEF


class DoctorProcess(PipedProcess):
    def __init__(self, node_dir: Path, module: str = MODULE) -> None:
        super().__init__()
        self._arguments = _python.module(module, str(node_dir))
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self._asked_us: int | None = None
        self.ready = False
        self.looks = 0

    @property
    def free(self) -> bool:
        """Whether it can be asked."""
        return self.ready and self._asked_us is None

    # --- starting and asking ------------------------------------------------------------------------------------------

    def start(self, now_us: int) -> None:
        """If it does not run, and it is time. Raises OSError."""
        if self._pid is None and self._restarts.is_due(now_us):
            self._restarts.hold(now_us)
            self._spawn(self._arguments, _python.environment() | ENVIRONMENT)

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
        return answer, self._reaped()

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
        self._hear(LINE_BYTES)
        line = self._line()
        return None if line is None else self._understood(line)

    def _understood(self, line: bytes) -> dict[str, Any] | None:
        try:
            said = _json.loads(line)
        except ValueError:
            return None
        if not isinstance(said, dict):
            return None
        self._cpu_us = int(said.get("total_cpu_us") or self._cpu_us)
        self.peak_rss_bytes = max(self.peak_rss_bytes, int(said.get("rss_bytes") or 0))
        if said.get("ready"):
            self.ready = True
            return None
        self._asked_us = None
        self._restarts.worked()
        return said

    # --- its end ------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ends it and waits for its end."""
        if self._pid is not None:
            self._signal(signal.SIGTERM)
            self._reaped(0)

    def _forget(self, cpu_us: int) -> None:
        super()._forget(cpu_us)
        self._asked_us, self.ready = None, False
