"""One stressor in a cage, from its start to its removal.

    python -m zombiescope.lab.cage STRESSOR SECONDS

The cage is a cgroup with limits on memory and processes, mount, network, IPC and host-name namespaces of its own, a
directory of its own that is removed, an ordinary user wherever the stressor does without root, and an end: stress-ng
stops after SECONDS, the cage kills what is left a few seconds later, when its own starter ends, or when told to.

It says `going` when the stressor was started, and one line of JSON when all of it is gone: CPU time by getrusage(2),
which counts what was waited for, whether the memory limit was reached, and the last thing that stress-ng said.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from zombiescope.lab import leftovers, programs
from zombiescope.lab.isolation import leave_the_node
from zombiescope.lab.sandbox import PROGRAM as PROGRAM_CGROUP
from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import GB
from zombiescope.lab.stressors import AS_ROOT, EXCLUDED, PROGRAM

MEMORY_BYTES = 2 * GB
PROCESSES = 1024
PATIENCE_S = 15
"""How long a stressor may take to notice its end."""
_PR_SET_PDEATHSIG = 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_SAID = re.compile(r"^stress-ng: (?:info|warn|fail|error): +\[\d+\] +(.*)")
_libc = ctypes.CDLL(None, use_errno=True)


class _Ended(BaseException):
    """Somebody wants the end, or its time is over."""


def mark(stressor: str) -> str:
    """Its name in the laboratory: of its cgroup and its directory."""
    return f"hold-out-{stressor}"


def main(arguments: Sequence[str]) -> int:
    stressor, seconds = arguments[0], int(arguments[1])
    if stressor in EXCLUDED:
        raise SystemExit(f"{stressor} is not run: it {EXCLUDED[stressor]}")
    parent = os.getppid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
        signal.signal(number, _end)
    signal.alarm(seconds + PATIENCE_S)
    result: dict[str, Any] = {"said": "ended before it began"}
    try:
        if os.getppid() == parent:
            result = _perform(stressor, seconds)
    except _Ended:
        result = {"said": "it did not end by itself and was killed"}
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        still = leftovers.remove(leftovers.find(mark(stressor)))
    for line in still:
        print(line, file=sys.stderr)  # noqa: T201
    print(json.dumps(result), flush=True)  # noqa: T201  whoever started this reads it
    return 1 if still else 0


def _end(number: int, _frame: object) -> None:
    raise _Ended(number)


def _perform(stressor: str, seconds: int) -> dict[str, Any]:
    leftovers.remove(leftovers.find(mark(stressor)))  # of a run before
    place = Sandbox(mark(stressor))
    place.make(memory_bytes=MEMORY_BYTES, processes=PROCESSES, real_time=False)
    place.go_first()
    directory = place.directory()
    user = None if stressor in AS_ROOT else pwd.getpwnam("nobody")
    if user is not None:
        os.chown(directory, user.pw_uid, user.pw_gid)
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        program = subprocess.Popen(  # noqa: S603  a program of the distribution, in its cage
            _command(stressor, seconds, directory),
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd=directory, preexec_fn=_inside(place, user),
        )  # fmt: skip
        print("going", flush=True)  # noqa: T201
        try:
            _, status, used = os.wait4(program.pid, 0)
        except BaseException:
            program.kill()
            program.wait()
            raise
        program.returncode = os.waitstatus_to_exitcode(status)
        return {
            "system_s": round(used.ru_stime, 3),
            "user_s": round(used.ru_utime, 3),
            "exit": program.returncode,
            "at_limit": _limit_reached(place),
            "processes_refused": _processes_refused(place),
            "said": _last_words(said),
        }


def _command(stressor: str, seconds: int, directory: Path) -> list[str]:
    """One instance, which is not started again when the kernel kills it; no dump of its environment in the log."""
    return [
        programs.find(PROGRAM), f"--{stressor}", "1", "--timeout", f"{seconds}s", "--temp-path", str(directory),
        "--oomable", "--no-rand-seed",
    ]  # fmt: skip


def _inside(place: Sandbox, user: pwd.struct_passwd | None) -> Callable[[], None]:
    """What the child does before it becomes the stressor."""
    paths = place.enter_paths()

    def enter() -> None:
        for path in paths:
            path.write_text("0")
        leave_the_node()
        _loopback_up()
        if user is not None:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # after the user: the kernel forgets it when that changes

    return enter


def _loopback_up() -> None:
    """A new network namespace has one, and it is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket, suppress(OSError):
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _limit_reached(place: Sandbox) -> bool:
    """Whether the kernel had to reclaim, or kill, for the cage's memory limit."""
    root = place.root_of("memory")
    with suppress(OSError, ValueError):
        if root is not None and "memory" not in place.unified:
            return int((root / "memory.failcnt").read_text()) > 0
        if root is not None:
            counts = dict(line.split() for line in (root / "memory.events").read_text().splitlines())
            return int(counts.get("max", 0)) > 0
    return False


def _processes_refused(place: Sandbox) -> int:
    """How often the kernel refused a process for the cage's limit on them; kernels count it in one or the other."""
    root = place.root_of("pids")
    return 0 if root is None else sum(_refused_in(each) for each in (root, root / PROGRAM_CGROUP))


def _refused_in(cgroup: Path) -> int:
    with suppress(OSError, ValueError):
        return int(dict(line.split() for line in (cgroup / "pids.events").read_text().splitlines()).get("max", 0))
    return 0


def _last_words(said: IO[str]) -> str:
    """Why it did nothing, if it says so; for people, so it is short and has no control characters."""
    said.seek(0)
    lines = [found[1] for line in said if (found := _SAID.match(line))]
    skipped = [line for line in lines if "skip" in line or "not implemented" in line or "unimplemented" in line]
    words = (skipped or [""])[0]
    return "".join(each if each.isprintable() else " " for each in words)[:160]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
