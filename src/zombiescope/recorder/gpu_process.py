"""The GPU reader's process as the recorder sees it: started once, listened to once a second, never waited for.

It says something every few seconds. When it has been silent for SILENT_US the driver hangs, or nobody gave it a CPU:
its state says which. One that waits in the kernel (D) cannot be ended, so it is left alone until it comes back by
itself, and there is never a second one beside it. One that hangs otherwise is killed after KILL_US. One that ended is
started again after 5 s, then 10, 20 ... at most 5 minutes.
"""

from __future__ import annotations

import fcntl
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from zombiescope import _json, _python, _safe_files
from zombiescope.kernel import process
from zombiescope.kernel.procfile import read_file
from zombiescope.recorder.piped_process import PipedProcess, Restarts

MODULE = "zombiescope.recorder.gpu_reader"
SILENT_US = 15_000_000
KILL_US = 60_000_000
FIRST_WAIT_US = 5_000_000
MOST_WAIT_US = 300_000_000
MOST_READ_BYTES = 4 << 20
"""Of a second: 64 GPUs have said far less."""
END_S = 1.0
LOCK_FD = 3
RUNNABLE = "R"


@dataclass(frozen=True, slots=True)
class Silence:
    since_us: int
    state: str
    """Of the process: D, S, R ..., "?" where it cannot be read."""
    place: str | None
    """The kernel function in which it waits."""


class GpuReaderProcess(PipedProcess):
    PEAK_AT_END: ClassVar = False

    def __init__(self, library: str | None = None, module: str = MODULE, lock_file: Path | None = None) -> None:
        """`lock_file` is locked for as long as a reader lives, also one that a recorder before this one left behind."""
        super().__init__()
        self._lock_file = lock_file
        self._arguments = _python.module(module, *([library] if library else []))
        self._restarts = Restarts(FIRST_WAIT_US, MOST_WAIT_US)
        self._heard_us = 0
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
        self._heard_us = now_us
        return True

    def _locked(self) -> int | None:
        """A lock that the child inherits and only its end releases. Raises BlockingIOError, UnsafePlaceError."""
        if self._lock_file is None:
            return None
        descriptor = _safe_files.open_lock(self._lock_file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def rest(self, until_us: int) -> None:
        """Not started again before then."""
        self._restarts.next = max(self._restarts.next, until_us)

    # --- listening ----------------------------------------------------------------------------------------------------

    def listen(self, now_us: int) -> list[dict[str, Any]]:
        """What it has said since. Never waits."""
        if self._pid is None:
            return []
        self._hear(MOST_READ_BYTES)
        messages = [message for line in self._lines() if (message := _message(line)) is not None]
        if messages:
            self._heard_us = now_us
            self._restarts.worked()
        self.messages += len(messages)
        for message in messages:
            self._cpu_us = _number(message, "cpu_us", self._cpu_us)
            self.peak_rss_bytes = max(self.peak_rss_bytes, _number(message, "rss_bytes", 0))
        return messages

    def silence(self, now_us: int) -> Silence | None:
        """If it has been silent for too long. A clock that was set backwards starts the time anew."""
        self._heard_us = min(self._heard_us, now_us)
        if self._pid is None or now_us - self._heard_us < SILENT_US:
            return None
        found = process.read_stat(self._pid)
        silent = Silence(self._heard_us, found.state if found else "?", _waits_in(self._pid))
        if now_us - self._heard_us >= KILL_US and silent.state != "D":
            self._signal(signal.SIGKILL)
        return silent

    def ended(self) -> str | None:
        """Why it ended, once, if it has."""
        return None if self._pid is None else self._reaped()

    # --- its end ------------------------------------------------------------------------------------------------------

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


def _message(line: bytes) -> dict[str, Any] | None:
    try:
        said = _json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def _number(message: dict[str, Any], name: str, otherwise: int) -> int:
    found = message.get(name)
    return found if isinstance(found, int) else otherwise


def _waits_in(pid: int) -> str | None:
    """/proc/PID/wchan of our own child; "0" where it does not wait, or may not be known."""
    found = (read_file(f"/proc/{pid}/wchan") or b"").decode("ascii", "replace").strip()
    return None if found in ("", "0") else found[:100]
