"""`python -m zombiescope.fix.reclaim_worker DIRECTORY VERSION SECONDS CPUS PIECES`: one parent, reclaimed in pieces.

A process of its own, because the write may take seconds and only a signal ends it: it runs on cores that serve no
network card, ends when its time is over, and dies with whoever started it. Its answer is one line of JSON.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from types import FrameType

from zombiescope.base import json as _json
from zombiescope.base import python as _python
from zombiescope.base.text import printable
from zombiescope.fix.reclaim import PIECE_BYTES, SLICE_S, Parent, Piece, Reclaimed, in_pieces, pieces, word
from zombiescope.kernel.cpu import format_list, parse_list

_PR_SET_PDEATHSIG = 1
_SETTLE_S = 0.3
"""Released cgroups are counted down by a worker of the kernel, after a grace period."""
_GRACE_S = 5.0


class _SliceOverError(Exception):
    pass


def reclaim(parent: Parent, cpus: frozenset[int], limit_s: float) -> Reclaimed:
    """In a child. OSError where it cannot start, or with what the kernel answered."""
    words = _python.module(
        "zombiescope.fix.reclaim_worker", parent.directory, str(parent.version), str(limit_s), format_list(cpus),
        str(pieces(parent)),
    )  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603  our own interpreter, our own module
            words, env=_python.environment(), capture_output=True, text=True, timeout=limit_s + _GRACE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(errno.ETIMEDOUT, "reclaiming did not end in time and was killed", parent.file) from None
    if done.returncode != 0:
        raise OSError(errno.EIO, (done.stderr.strip().splitlines() or ["it died"])[-1], parent.file)
    return Reclaimed(**_json.loads(done.stdout))


def force_empty(file: str) -> Piece:
    def piece() -> tuple[bool, int]:
        fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        signal.setitimer(signal.ITIMER_REAL, SLICE_S)
        try:
            os.write(fd, b"0")
            exhausted = True  # the kernel ended by itself: empty, or five rounds in vain
        except _SliceOverError:
            exhausted = True  # a second: one that released nothing is not worth many more
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.close(fd)
        time.sleep(_SETTLE_S)
        return exhausted, 0

    return piece


def bytes_of(file: str) -> Piece:
    written = word(2).encode()

    def piece() -> tuple[bool, int]:
        fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, written)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                raise
            time.sleep(_SETTLE_S)
            return True, PIECE_BYTES
        finally:
            os.close(fd)
        return False, PIECE_BYTES

    return piece


def _slice_over(_number: int, _frame: FrameType | None) -> None:
    raise _SliceOverError


def main(arguments: list[str]) -> int:
    directory, version, seconds, cpus, most = arguments
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGALRM, _slice_over)
    os.setpriority(os.PRIO_PROCESS, 0, 19)  # where every core serves a card it gives way at least
    if cores := parse_list(cpus.encode()):
        os.sched_setaffinity(0, cores)
    name = "memory.force_empty" if version == "1" else "memory.reclaim"
    parent = Parent("", directory, f"{directory}/{name}", int(version), None)
    piece = (force_empty if version == "1" else bytes_of)(f"{directory}/{name}")
    try:
        most_pieces = None if version == "1" else int(most)
        made = in_pieces(piece, parent.count, time.monotonic, float(seconds), most_pieces)
    except OSError as error:
        print(printable(f"{directory}/{name}: {error.strerror}"), file=sys.stderr)  # noqa: T201  its answer
        return 1
    print(json.dumps(asdict(made)))  # noqa: T201  its answer
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
