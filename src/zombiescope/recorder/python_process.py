"""The reader of Python stacks as the recorder sees it: told once a second whom to look at, listened to, never waited
for. The reader of whole stacks is another module with the same manners.

It is started when somebody is to be looked at and ends when nobody was for a while. It speaks once a second; one that
is silent is reported, killed after KILL_S, and there is never a second one beside it (piped_process.py). One that ended
is started again after 5 s, then 10, 20 ... at most 5 minutes.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import Any, ClassVar

from zombiescope.base import python as _python
from zombiescope.recorder.piped_process import MEGABYTE, PipedProcess, Restarts

MODULE = "zombiescope.recorder.python_reader"
PYTHON_STACKS, WHOLE_STACKS = "Python stack reader", "whole stack reader"
FIRST_WAIT_US, MOST_WAIT_US = 5_000_000, 300_000_000
KILL_S = 20.0
MOST_READ_BYTES = 4 << 20
END_S = 0.5


class PythonProcess(PipedProcess):
    PEAK_AT_END: ClassVar = False
    MEMORY_BYTES: ClassVar = 512 * MEGABYTE

    def __init__(self, module: str = MODULE, name: str = PYTHON_STACKS) -> None:
        super().__init__(name)
        self._arguments = _python.module(module)
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self.kill_s = KILL_S

    def tell(self, now_us: int, whom: dict[str, Any]) -> None:
        """Starts it if it is not there and may be. Raises OSError."""
        if self._pid is None:
            if not self._restarts.is_due(now_us):
                return
            self._restarts.hold(now_us)
            self._spawn(self._arguments)
        if self._to >= 0:
            with suppress(BlockingIOError, BrokenPipeError):  # it is told again in a second
                os.write(self._to, json.dumps(whom, separators=(",", ":")).encode() + b"\n")

    def listen(self) -> list[dict[str, Any]]:
        """What it has said since. Never waits."""
        if self._pid is None:
            return []
        self._hear(MOST_READ_BYTES)
        messages = [said for line in self._lines() if (said := self._message(line)) is not None]
        for said in messages:
            self._cpu_us = _number(said, "cpu_us", self._cpu_us)
            self.peak_rss_bytes = max(self.peak_rss_bytes, _number(said, "rss_bytes", 0))
            self._worked()
            self._restarts.worked()
        self._reaped()
        return messages

    def let_go(self) -> None:
        """Nobody is to be looked at: it ends when its input does, and is reaped later."""
        if self._to >= 0:
            self._close_input()

    def stop(self) -> None:
        """Ends it; one that hangs is left to the kernel."""
        if self._pid is not None:
            self._signal(signal.SIGKILL)
            self._gone_within(END_S)
            self._close()


def _number(message: dict[str, Any], name: str, otherwise: int) -> int:
    found = message.get(name)
    return found if isinstance(found, int) else otherwise
