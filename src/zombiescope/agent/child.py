"""A process that the supervisor keeps running: started again when it ends, after 1 s, 2, 4, ... at most 60 s."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress

FIRST_WAIT_S, MOST_WAIT_S = 1.0, 60.0
RAN_WELL_S = 300.0


class Child:
    """`start` makes the process. Times are monotonic seconds, given by the caller."""

    def __init__(self, name: str, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self.name = name
        self._start = start
        self._process: subprocess.Popen[bytes] | None = None
        self._started_s = 0.0
        self._wait_s = FIRST_WAIT_S
        self.next_start_s = 0.0
        self.starts = 0

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self._process

    @property
    def running(self) -> bool:
        return self._process is not None

    def start_if_due(self, now_s: float) -> bool:
        """Whether it was started. Raises OSError."""
        if self._process is not None or now_s < self.next_start_s:
            return False
        self._process = self._start()
        self._started_s = now_s
        self.starts += 1
        return True

    def ended(self, now_s: float) -> int | None:
        """Its exit code, once, when it has ended."""
        code = self._process.poll() if self._process is not None else None
        if code is not None:
            self._process = None
            self._wait_s = FIRST_WAIT_S if now_s - self._started_s > RAN_WELL_S else self._wait_s
            self.next_start_s = now_s + self._wait_s
            self._wait_s = min(2 * self._wait_s, MOST_WAIT_S)
        return code

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    def wait(self, timeout_s: float) -> int | None:
        """For its end; killed when it takes longer."""
        if self._process is None:
            return None
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process = None
        return code


def exit_text(code: int) -> str:
    """Behind "the recorder" or "the services"."""
    if code < 0:
        with suppress(ValueError):
            return f"died of {signal.Signals(-code).name}"
    return f"ended with {code}"


def started(arguments: Sequence[str], environment: dict[str, str], *, stdin: int = subprocess.DEVNULL,
            pass_fds: Sequence[int] = ()) -> subprocess.Popen[bytes]:  # fmt: skip
    """A child in a group of its own: a Ctrl-C is ours to hand on."""
    return subprocess.Popen(  # noqa: S603  our own interpreter, our own modules
        arguments, stdin=stdin, env=environment, pass_fds=pass_fds, process_group=0
    )
