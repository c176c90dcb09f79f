"""A recording is written, and at the n-th thing that is done to a file something happens: the writer is killed, before
it or in the middle of a write, or the disk is full.

    python -m tests.helpers.crash_points DIRECTORY how FIRST LAST     how: kill, tear, full

Every n has a process of its own, forked from one that has loaded everything, and a directory of its own below
DIRECTORY. What is printed, one JSON object a line: n, whether it ended by itself, and the last second that was complete
by then."""

from __future__ import annotations

import errno
import json
import mmap
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from zombiescope.recorder import state
from zombiescope.recorder.node import NodeFile
from zombiescope.recorder.rollup import Rollup
from zombiescope.store import log, retention, schema
from zombiescope.store.freeze import freeze
from zombiescope.store.segment_writer import SegmentWriter

SECOND = 1_000_000
START_US = 1_790_000_040 * SECOND  # twenty seconds before a full minute
SECONDS, SEGMENT = 48, 5
FROZEN_AT = 9
STEPS = ("open", "write", "fsync", "rename", "unlink", "mkdir", "ftruncate", "fchmod")
FULL_FOR = 4
"""Steps that fail, one after the other."""
CALM = 6
"""Seconds at the end in which the disk has room: what is held by then reaches it."""


def scenario(place: Path, done: Callable[[int], None]) -> None:
    """What a recorder does to its disk, in 48 seconds."""
    node = place / "node=lab"
    writer, rollup = SegmentWriter(node / "log"), Rollup(node, "boot")
    about = NodeFile(node, {"format": schema.FORMAT, "node": "lab"})
    for second in range(1, SECONDS + 1):
        now_us = START_US + second * SECOND
        if writer.current is None or second % SEGMENT == 1:
            header = {"format": schema.FORMAT, "node": "lab", "boot": "boot", "seq": second // SEGMENT,
                      "recorder_started_us": START_US, "interval_us": SECOND}  # fmt: skip
            writer.start(now_us - SECOND, header)
        row = (now_us, "mark", "test", "info", str(second), "{}")
        rollup.core(now_us, 0, SECOND, 100, 50)
        rollup.flush(now_us)
        blocks = [log.encode_rows(schema.EVENTS, [row], now_us)]
        writer.frame(now_us, second * 10**9, blocks, closes=second % SEGMENT == 0)
        _now_and_then(second, now_us, node, about, writer)
        done(second)
    writer.close(START_US + SECONDS * SECOND)
    rollup.close(START_US + SECONDS * SECOND)
    done(SECONDS + 1)


def _now_and_then(second: int, now_us: int, node: Path, about: NodeFile, writer: SegmentWriter) -> None:
    about.update([])
    try:
        if second in (6, 16):
            state.save(node, {"boot": "boot", "second": second})
        if second >= FROZEN_AT:
            freeze(node, START_US + 2 * SECOND, START_US + 6 * SECOND, "incident", at_us=now_us)
        if second % 8 == 0:
            retention.enforce(node, 14 * SECOND, 1 << 30, now_us, writer.in_use)
    except OSError:
        pass  # as the recorder: it is said, and tried again


class Fault:
    """Happens at the n-th step."""

    def __init__(self, how: str, number: int) -> None:
        self._how, self._number, self._count = how, number, 0
        for name in STEPS:
            setattr(os, name, self._guarded(name, getattr(os, name)))

    def over(self) -> None:
        """From here on nothing fails."""
        self._number = -FULL_FOR

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self._count += 1
            if self._how == "full":
                fails = self._number <= self._count < self._number + FULL_FOR and name != "unlink"
                if fails and name == "write":
                    return real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                if fails:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            elif self._count == self._number:
                if name == "write" and self._how == "tear":
                    real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call


def one(place: Path, how: str, number: int) -> dict[str, Any]:
    (place / "node=lab" / "log").mkdir(parents=True)
    reached = mmap.mmap(-1, 8)
    pid = os.fork()
    if pid == 0:
        fault = Fault(how, number)

        def done(second: int) -> None:
            reached[0] = second
            if how == "full" and second == SECONDS - CALM:
                fault.over()

        try:
            scenario(place, done)
        except BaseException as error:  # noqa: BLE001 - told by the parent
            sys.stderr.write(f"{how} at {number}: {error!r}\n")
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return {"number": number, "code": os.waitstatus_to_exitcode(status), "reached": reached[0]}


def main() -> None:
    place, how, first, last = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for number in range(first, last):
        sys.stdout.write(json.dumps(one(place / str(number), how, number)) + "\n")


if __name__ == "__main__":
    main()
