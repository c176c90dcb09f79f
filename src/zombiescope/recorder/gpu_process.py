"""The GPU reader's process as the recorder sees it: started once, listened to once a second, never waited for.

It says something every two seconds, and before each kind of question to the driver which one that is. One that is
silent after that has been in a call of the driver's library since then; otherwise the reader itself hangs. One that
waits in the kernel (D) cannot be ended, so it is left alone until it comes back by itself, and there is never a second
one beside it. One that hangs otherwise is killed after a minute (piped_process.py). One that ended is started again
after 5 s, then 10, 20 ... at most 5 minutes.
"""

from __future__ import annotations

import fcntl
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from zombiescope.base import python as _python
from zombiescope.base import safe_files
from zombiescope.kernel import process_vitals
from zombiescope.recorder.piped_process import MEGABYTE, PipedProcess, Restarts

MODULE = "zombiescope.recorder.gpu_reader"
NAME = "GPU reader"
UNRESPONSIVE_S = 15.0
"""A call that takes longer is an event: drivers take seconds to start, and to reset a GPU."""
FIRST_WAIT_US = 5_000_000
MOST_WAIT_US = 300_000_000
MOST_READ_BYTES = 4 << 20
"""Of a second: 64 GPUs have said far less."""
END_S = 1.0
LOCK_FD = 3


@dataclass(frozen=True, slots=True)
class Silence:
    since_us: int
    asks: str
    """What the driver was asked."""
    state: str
    """Of the process: D, S, R ..., "?" where it cannot be read."""
    place: str | None
    """The kernel function in which it waits."""


class GpuReaderProcess(PipedProcess):
    PEAK_AT_END: ClassVar = False
    MEMORY_BYTES: ClassVar = 1024 * MEGABYTE

    def __init__(self, library: str | None = None, module: str = MODULE, lock_file: Path | None = None) -> None:
        """`lock_file` is locked for as long as a reader lives, also one that a recorder before this one left behind."""
        super().__init__(NAME)
        self._lock_file = lock_file
        self._arguments = _python.module(module, *([library] if library else []))
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self._asks: tuple[str, int] | None = None
        """What it is asking the driver, and since when."""
        self.messages = 0

    # --- starting -----------------------------------------------------------------------------------------------------

    def due(self, now_us: int) -> bool:
        return self._pid is None and self._restarts.is_due(now_us)

    def start(self, now_us: int) -> bool:
        """If it is due. False: an earlier one is still there, which hangs. Raises OSError."""
        if not self.due(now_us):
            return True
        self._restarts.hold(now_us)
        try:
            locked = self._locked()
        except BlockingIOError:
            return False
        try:
            self._spawn(self._arguments, environment(), {} if locked is None else {LOCK_FD: locked})
        finally:
            if locked is not None:
                os.close(locked)
        return True

    def _locked(self) -> int | None:
        """A lock that the child inherits and only its end releases. Raises BlockingIOError, UnsafePlaceError."""
        if self._lock_file is None:
            return None
        descriptor = safe_files.open_lock(self._lock_file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def let_go(self) -> None:
        """It ends by itself, which nobody waits for."""
        self._is_asked_to_end = True
        self._close_input()

    def rest(self, until_us: int) -> None:
        """Not started again before then."""
        self._restarts.next = max(self._restarts.next, until_us)

    # --- listening ----------------------------------------------------------------------------------------------------

    def listen(self, now_us: int) -> list[dict[str, Any]]:
        """What it has said since. Never waits."""
        if self._pid is None:
            return []
        self._hear(MOST_READ_BYTES)
        said = [message for line in self._lines() if (message := self._message(line)) is not None]
        messages = [message for message in said if not self._notes_question(message, now_us)]
        for message in messages:
            self._take(message)
        return messages

    def _notes_question(self, message: dict[str, Any], now_us: int) -> bool:
        self._asks = (str(message["asks"])[:40], now_us) if "asks" in message else None
        return self._asks is not None

    def _take(self, message: dict[str, Any]) -> None:
        self.messages += 1
        self._restarts.worked()
        self._cpu_us = _number(message, "cpu_us", self._cpu_us)
        self.peak_rss_bytes = max(self.peak_rss_bytes, _number(message, "rss_bytes", 0))
        if "released" in message:
            self._is_asked_to_end = True
            self.pulse.is_off("the driver was let go of: a GPU has to be reset")
        elif "fault" in message:
            self._is_asked_to_end = True
            self.pulse.is_off(f"the driver does not answer: {message.get('why') or message['fault']}"[:200])
        else:
            self._worked()

    def _beats(self, said: dict[str, Any]) -> None:
        super()._beats(said)
        self._asks = None

    def silence(self) -> Silence | None:
        """If a call of the driver's library has not returned for too long."""
        if self._pid is None or self._asks is None or self.clock() - self._heard_s < UNRESPONSIVE_S:
            return None
        found = process_vitals.read(self._pid)
        if found is None or found.is_stopped or self._is_starved(found, self.clock()):
            return None
        return Silence(self._asks[1], self._asks[0], found.state, process_vitals.waits_in(self._pid))

    def _doing(self, silent_s: float) -> str:
        if self._asks is None:
            return super()._doing(silent_s)
        return f"has been in a call of the GPU driver ({self._asks[0]}) for {silent_s:.0f} s"

    def ended(self) -> str | None:
        """Why it ended, once, if it has."""
        return None if self._pid is None else self._reaped()

    # --- its end ------------------------------------------------------------------------------------------------------

    def _forget(self, cpu_us: int) -> None:
        super()._forget(cpu_us)
        self._asks = None

    def stop(self) -> None:
        """Ends it. One that hangs in the kernel is left to whoever reaps orphans."""
        if self._pid is None:
            return
        self._close_input()
        if self._gone_within(END_S):
            return
        self._signal(signal.SIGKILL)
        if not self._gone_within(END_S):
            self._forget(self._cpu_us)


def environment() -> dict[str, str]:
    """Ours, with absolute places of libraries only: an empty one is the current directory."""
    made = _python.environment()
    places = [place for place in made.pop("LD_LIBRARY_PATH", "").split(os.pathsep) if os.path.isabs(place)]  # noqa: PTH117
    return made | ({"LD_LIBRARY_PATH": os.pathsep.join(places)} if places else {})


def _number(message: dict[str, Any], name: str, otherwise: int) -> int:
    found = message.get(name)
    return found if isinstance(found, int) else otherwise
