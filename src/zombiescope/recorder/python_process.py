"""The reader of Python stacks as the recorder sees it: told once a second whom to look at, listened to, never waited
for. The reader of whole stacks is another module with the same manners.

It is started when somebody is to be looked at and ends when nobody was for a while. It speaks once a second; one that
is silent is reported, killed after KILL_S, and there is never a second one beside it (piped_process.py). One that ended
is started again after 5 s, then 10, 20 ... at most 5 minutes.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
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


LOOKS_AT = "ZOMBIESCOPE_LOOKS_AT"
"""The descriptor of the word in which the reader says whom it is about to read."""
LOOK_FD = 3
LEFT_OUT_US = 600_000_000
MOST_LEFT_OUT = 64


class PythonProcess(PipedProcess):
    """A process can keep the reader waiting for as long as it likes: a page of its memory may be a file of a FUSE
    daemon that does not answer. So the reader writes into shared memory whom it is about to read. When it hangs it is
    killed, and that process is left out for LEFT_OUT_US, so that the others are seen again."""

    PEAK_AT_END: ClassVar = False
    MEMORY_BYTES: ClassVar = 512 * MEGABYTE

    def __init__(self, module: str = MODULE, name: str = PYTHON_STACKS) -> None:
        super().__init__(name)
        self._arguments = _python.module(module)
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self.kill_s = KILL_S
        self._word = _shared_word()
        self._left_out: dict[int, int] = {}
        """Process that kept the reader waiting -> until when it is not looked at."""
        self._now_us = 0

    def left_out(self, now_us: int) -> frozenset[int]:
        """Processes that are not to be looked at for now."""
        self._left_out = {pid: until_us for pid, until_us in self._left_out.items() if until_us > now_us}
        return frozenset(self._left_out)

    def _hangs(self, why: str, fix: str = "") -> None:
        pid = self._reading()
        if pid and not why.startswith("is stopped"):
            why = f"{why}; it was reading pid {pid}, which is left out for {LEFT_OUT_US // 60_000_000} min"
            if len(self._left_out) < MOST_LEFT_OUT:
                self._left_out[pid] = self._now_us + LEFT_OUT_US
        super()._hangs(why, fix)
        if pid and not why.startswith("is stopped"):
            self._restarts.next = 0
            self._kill()

    def _reading(self) -> int:
        """Whom it was about to read; 0 where it is reading nobody."""
        return 0 if self._word is None else int.from_bytes(self._word[1][:8], sys.byteorder)

    def tell(self, now_us: int, whom: dict[str, Any]) -> None:
        """Starts it if it is not there and may be. Raises OSError."""
        self._now_us = now_us
        if self._pid is None:
            if not self._restarts.is_due(now_us):
                return
            self._restarts.hold(now_us)
            self._start()
        if self._to >= 0:
            with suppress(BlockingIOError, BrokenPipeError):  # it is told again in a second
                os.write(self._to, json.dumps(whom, separators=(",", ":")).encode() + b"\n")

    def _start(self) -> None:
        if self._word is None:
            self._spawn(self._arguments)
            return
        descriptor, word = self._word
        word[:8] = bytes(8)
        self._spawn(self._arguments, {**_python.environment(), LOOKS_AT: str(LOOK_FD)}, {LOOK_FD: descriptor})

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


def _shared_word() -> tuple[int, mmap.mmap] | None:
    """Eight bytes that two processes see; None where the kernel gives none."""
    try:
        descriptor = os.memfd_create("zombiescope-looks-at", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, mmap.PAGESIZE)
        return descriptor, mmap.mmap(descriptor, mmap.PAGESIZE)
    except OSError:
        return None


def said_by_reader() -> mmap.mmap | None:
    """The same word, in the reader."""
    number = os.environ.get(LOOKS_AT, "")
    with suppress(OSError, ValueError):
        return mmap.mmap(int(number), mmap.PAGESIZE) if number.isdecimal() else None
    return None


def _number(message: dict[str, Any], name: str, otherwise: int) -> int:
    found = message.get(name)
    return found if isinstance(found, int) else otherwise
