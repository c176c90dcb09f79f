"""A dead man's switch: thaws what was frozen when whoever froze it is gone, or when the time is over.

`python -m zombiescope.fix.dead_man SECONDS` reads lines from a pipe, each a Frozen as JSON that replaces the one
before, and answers each with "armed". When the pipe closes (whoever holds it ended, by kill -9 too), or after so many
seconds, it thaws the last. A line with "limit_s" is thawed after that time, although its owner may only hang; "{}" says
that its owner has thawed it. It is a session of its own, takes no signal that can be caught as a reason to leave before
it has thawed, moves to the root of each hierarchy so that the end of a login or a unit does not take it along, and
asks the kernel not to choose it when memory is short.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType

from zombiescope.base import json as _json
from zombiescope.base import python as _python
from zombiescope.fix.freezer import Frozen, thaw
from zombiescope.kernel.cgroup import hierarchies

_ANSWER_S = 10.0
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class DeadMan:
    """The switch as its owner sees it: armed before anything is frozen, released by leaving the block."""

    def __init__(self, seconds: float) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            _python.module("zombiescope.fix.dead_man", str(seconds)),
            env=_python.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def disarm(self) -> None:
        """What it was told of is thawed."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.write(b"{}\n")
            self._process.stdin.flush()

    def arm(self, frozen: Frozen, limit_s: float | None = None) -> None:
        """Returns when the switch has it; after `limit_s` it thaws it even if nothing else happens. RuntimeError where
        it does not answer: then nothing may be frozen."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            made = {**_json.loads(frozen.to_json()), **({} if limit_s is None else {"limit_s": limit_s})}
            self._process.stdin.write(json.dumps(made).encode() + b"\n")
            self._process.stdin.flush()
            ready = select.select([self._process.stdout], [], [], _ANSWER_S)[0]
            answer = os.read(self._process.stdout.fileno(), 64) if ready else b""
        except OSError:
            answer = b""
        if b"armed" not in answer:
            raise RuntimeError("the dead man's switch does not answer, so nothing is frozen")

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def __enter__(self) -> DeadMan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """It thaws, and we wait until it has."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_ANSWER_S)
        finally:
            if self._process.stdout is not None:
                self._process.stdout.close()


# --- the other side --------------------------------------------------------------------------------------------------


class _ToldToEndError(Exception):
    pass


def watch(fd: int, seconds: float, armed: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
    """Until the pipe closes or the time is over; then what it was told last goes on."""
    end, rest, frozen, due = clock() + seconds, b"", None, None
    try:
        while (left := end - clock()) > 0:
            soon = left if due is None else max(0.0, min(left, due - clock()))
            if not select.select([fd], [], [], soon)[0]:
                if due is None or frozen is None or clock() < due:
                    continue
                thaw(frozen)
                frozen = due = None
                continue
            if not (data := os.read(fd, 65536)):
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if line == b"{}":
                    frozen = due = None
                    continue
                frozen, limit_s = _armed(line.decode())
                due = None if limit_s is None else clock() + limit_s
                armed()
    finally:
        if frozen is not None:
            thaw(frozen)


def _armed(line: str) -> tuple[Frozen, float | None]:
    frozen, limit_s = Frozen.from_json(line), _json.loads(line).get("limit_s")
    return frozen, float(limit_s) if isinstance(limit_s, int | float) else None


def leave_its_cgroups() -> None:
    """To the roots, where that is allowed."""
    for hierarchy in hierarchies():
        if hierarchy.mount is not None:
            with suppress(OSError):
                Path(f"{hierarchy.mount}/cgroup.procs").write_text(str(os.getpid()))


def _told_to_end(_number: int, _frame: FrameType | None) -> None:
    for ending in _ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    raise _ToldToEndError


def main(arguments: list[str]) -> int:
    for ending in _ENDINGS:
        signal.signal(ending, _told_to_end)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("-1000")
    leave_its_cgroups()

    def armed() -> None:
        with suppress(OSError):
            os.write(1, b"armed\n")

    with suppress(_ToldToEndError):
        watch(0, float(arguments[0]), armed)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
