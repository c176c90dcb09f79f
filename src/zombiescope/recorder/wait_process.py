"""The helper that looks at waiting tasks, as the recorder sees it: asked by a line, answering by a line, expendable.

It reads what may hang, so it may hang itself, and then it cannot even be killed. It is never waited for. One that is
silent, or has not answered in DEADLINE_US, is sent SIGKILL and stays what it is, a gap, until the kernel lets go of it;
there is never a second one beside it. One that ended is started again after a second, then 2, 4, ... at most 60 s.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any, ClassVar

from zombiescope.base import python as _python
from zombiescope.recorder.piped_process import MEGABYTE, PipedProcess, Restarts

MODULE = "zombiescope.recorder.wait_helper"
NAME = "task-wait reader"
DEADLINE_US = 30_000_000
KILL_S = 12.0
FIRST_WAIT_US, MOST_WAIT_US = 1_000_000, 60_000_000
MOST_ANSWER_BYTES = 1 << 20
STOP_S = 0.5


class WaitProcess(PipedProcess):
    MEMORY_BYTES: ClassVar = 256 * MEGABYTE

    def __init__(self, module: str = MODULE) -> None:
        super().__init__(NAME)
        self._arguments = _python.module(module)
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self.kill_s = KILL_S
        self._asked_us: int | None = None
        self._leaving = False

    def ask(self, now_us: int, question: dict[str, Any]) -> bool:
        """False where it cannot be asked: it owes an answer, or it is too soon to start it again. Raises OSError."""
        too_soon = self._pid is None and not self._restarts.is_due(now_us)
        if self._asked_us is not None or self._leaving or too_soon:
            return False
        if self._pid is None:
            self._restarts.hold(now_us)
            self._spawn(self._arguments)
        with suppress(BrokenPipeError, BlockingIOError):  # it has just ended, or hears nothing: no answer will come
            os.write(self._to, json.dumps(question).encode() + b"\n")
        self._asked_us = now_us
        return True

    def listen(self, now_us: int) -> dict[str, Any] | None:
        """The answer, if there is one. Never waits."""
        if self._pid is None:
            return None
        answer = self._take()
        if self._asked_us is not None and now_us - self._asked_us > DEADLINE_US and not self._is_killed:
            self._hangs("has not finished a look in 30 s")
            self._kill()
        self._reaped()
        return answer

    def _take(self) -> dict[str, Any] | None:
        self._hear(MOST_ANSWER_BYTES)
        while (line := self._line()) is not None:
            answer = self._message(line)
            if answer is not None:
                return self._taken(answer)
        return None

    def _taken(self, answer: dict[str, Any]) -> dict[str, Any]:
        self._asked_us = None
        self._restarts.worked()
        self._worked()
        self._cpu_us = int(answer.get("total_cpu_us") or self._cpu_us)
        self.peak_rss_bytes = max(self.peak_rss_bytes, int(answer.get("rss_bytes") or 0))
        return answer

    def let_go(self) -> None:
        """Nobody needs it any more: it ends when its input does, and is reaped at a later call."""
        if self._to >= 0 and self._asked_us is None:
            self._close_input()
            self._leaving = True

    def stop(self) -> None:
        """Ends it; one that hangs is left to the kernel."""
        if self._pid is None:
            return
        self._kill()
        self._gone_within(STOP_S)
        self._close()

    def _forget(self, cpu_us: int) -> None:
        super()._forget(cpu_us)
        self._asked_us, self._leaving = None, False
