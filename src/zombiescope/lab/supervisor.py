"""Starts a scenario in cgroups of its own, and removes everything of it however it ends.

    python -m zombiescope.lab.supervisor SCENARIO SECONDS

A process of its own between the command and the fault. It says `ready`, starts the fault when it reads `go` (and says
`going`), and ends it when it reads anything more, when its standard input closes, at SIGTERM or SIGINT, when its time
is over, and when the command that started it is killed (PR_SET_PDEATHSIG). Only kill -9 of this process itself leaves
something behind, and that is found by its name (`lab clean`).
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

from zombiescope.base import python as _python
from zombiescope.lab import leftovers
from zombiescope.lab.sandbox import Sandbox
from zombiescope.lab.scenario import PREAMBLE, Scenario, by_id

_PR_SET_PDEATHSIG = 1
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
_libc = ctypes.CDLL(None, use_errno=True)


class _Ended(BaseException):
    """Somebody wants the end, now."""


def main(arguments: Sequence[str]) -> int:
    scenario, seconds = by_id(arguments[0]), int(arguments[1])
    parent = os.getppid()
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    for number in _ENDING:
        signal.signal(number, _end)
    most_s = scenario.ready_s + seconds
    signal.alarm(most_s)
    try:
        if os.getppid() == parent:
            _perform(scenario, seconds)
    except (_Ended, BrokenPipeError) as ended:
        if ended.args == (signal.SIGALRM,):
            print(f"gave up after {most_s} s: this machine is too slow for it", file=sys.stderr)  # noqa: T201
    except Exception as error:  # noqa: BLE001  whatever it was, the command reports it in one line
        print(f"{type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    finally:
        for number in _ENDING:
            signal.signal(number, signal.SIG_IGN)
        still = leftovers.remove(leftovers.find(scenario.id))
        for line in still:
            print(line, file=sys.stderr)  # noqa: T201
    return 1 if still else 0


def _end(number: int, _frame: FrameType | None) -> None:
    raise _Ended(number)


def _perform(scenario: Scenario, seconds: int) -> None:
    leftovers.remove(leftovers.find(scenario.id))  # of a run before
    place, needs = Sandbox(scenario.id), scenario.needs
    if needs.root:
        place.make(memory_bytes=needs.memory_bytes, processes=needs.processes, real_time=needs.real_time)
        if scenario.kind == "fault" and not needs.real_time and not scenario.many:
            place.go_first()
    program = _start(scenario, place, [str(scenario.ready_s + seconds), *scenario.prepare(place)])
    try:
        assert program.stdin is not None
        assert program.stdout is not None
        said = program.stdout.readline()
        if said != b"ready\n":
            raise RuntimeError(f"{scenario.id} could not be set up (exit {program.wait()})")
        _say("ready")
        if sys.stdin.readline() != "go\n":
            return
        program.stdin.write(b"go\n")
        program.stdin.flush()
        _say("going")
        _until_told_or(program)
    finally:
        program.kill()
        program.wait()


def _until_told_or(program: subprocess.Popen[bytes]) -> None:
    while program.poll() is None:
        if select.select([sys.stdin], [], [], 0.2)[0]:
            return


def _say(word: str) -> None:
    print(word, flush=True)  # noqa: T201  the command reads it


def _start(scenario: Scenario, place: Sandbox, arguments: list[str]) -> subprocess.Popen[bytes]:
    enter = [str(path) for path in place.enter_paths()] if scenario.needs.root else []

    def enter_and_obey() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for path in enter:
            with open(path, "w") as file:
                file.write("0")
        if scenario.cpu is not None:
            os.sched_setaffinity(0, {scenario.cpu})

    command = _python.safe("-c", PREAMBLE + scenario.script, scenario.program_name, *arguments)
    return subprocess.Popen(  # noqa: S603  our own interpreter, our own scenario
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_python.environment(),
        preexec_fn=enter_and_obey,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
