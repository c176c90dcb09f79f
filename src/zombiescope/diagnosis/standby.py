"""The live diagnosis on standby: everything is loaded once, and each pass is a fork of that.

    python -m zombiescope.diagnosis.standby NODE_DIR

Started by the recorder (recorder/doctor_process.py has the protocol). A pass that crashes, hangs or takes too much
memory takes nobody along, and what it allocated is gone with it. Loading costs more than a pass, a fork milliseconds;
the price is memory that stays (docs/design/0028 has the figures). A pass ends with this process, and this process with
the recorder, however those end. It tells each step of a load and of a pass (store/steps.py).

It runs at a raised priority where that is permitted, and else at the recorder's: a pass is short and rare
(recorder/look_schedule.py), and one that waits behind everybody on a loaded machine says what is wrong when it is over.
It reads standard input until that ends, which it does with the recorder.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from zombiescope.base import helper as _helper
from zombiescope.base import json as _json
from zombiescope.base.confinement import confine
from zombiescope.base.severity import rank
from zombiescope.diagnosis.pass_limit import PassLimit, data_limit
from zombiescope.diagnosis.selftest import trial
from zombiescope.store import incident_file, steps

LOOK_S = 60.0
"""Without progress (pass_limit.py)."""
LOOK_CPU_S = 20
LOOK_BYTES = 1 << 30
NEW_MODULES = 200
RESULT_BYTES = 65536
KILLED_FIRST = b"800"
"""Before the recorder, which the packaged unit puts at 500, and before anything that does not ask for more."""
PRIORITY = -10
"""A third of a core beside twenty busy loops, where an ordinary process gets a twentieth."""


READ_BYTES = 65536


def load() -> None:
    """What passes need and load only when they need it. Each step is told: a load that hangs is known by the last."""
    steps.step("numpy")
    import numpy as np

    np.unique(np.zeros(1))  # loads numpy.ma
    steps.step("pyarrow")
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    steps.step("diagnosis")
    from zombiescope.diagnosis import library_pages, live, patterns, symptoms  # noqa: F401

    steps.step("patterns")
    patterns.every()
    steps.step("symptoms")
    symptoms.every()
    gc.collect()
    gc.freeze()  # so that a pass's collector does not touch, and copy, what is shared
    library_pages.give_back()  # a pass faults in what it needs: forks do not inherit them anyway


class Beats:
    """Tells the recorder every BEAT_S that we live, and how far we have got."""

    def __init__(self) -> None:
        self._number = 0
        self._stage = ""
        self._next_s = 0.0
        self.pass_pid: int | None = None

    def gets_on(self, stage: str) -> None:
        self._number += 1
        self._stage = stage
        self._tell()

    def second(self) -> None:
        """Whenever there is nothing else to do."""
        if time.monotonic() >= self._next_s:
            self._tell()

    def _tell(self) -> None:
        self._next_s = time.monotonic() + _helper.BEAT_S
        _say({"beat": self._number, "stage": self._stage, "pass": self.pass_pid})


def serve(node_dir: Path, beats: Beats) -> None:
    beats.gets_on("self-test")
    _say({"ready": True, "selftest": trial.run(partial(_look_apart, beats)), **_used()})
    asked, rest = select.poll(), b""
    asked.register(0, select.POLLIN)
    while True:
        if not asked.poll(_helper.BEAT_S * 1000):
            beats.second()
            continue
        piece = os.read(0, READ_BYTES)
        if not piece:
            return
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            answer = _look_apart(beats, partial(_live, node_dir, int(line)), LOOK_S)
            _load_for_the_next(answer.pop("modules", ()))
            _say({**answer, **_used()})


def _say(answer: dict[str, Any]) -> None:
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def _used() -> dict[str, Any]:
    mine, looks = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu_s = mine.ru_utime + mine.ru_stime + looks.ru_utime + looks.ru_stime
    return {"total_cpu_us": int(cpu_s * 1e6), "rss_bytes": max(mine.ru_maxrss, looks.ru_maxrss) * 1024}


# --- one pass ----------------------------------------------------------------------------------------------------


def _look_apart(beats: Beats, look: Callable[[], dict[str, Any]], limit_s: float) -> dict[str, Any]:
    result, theirs = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = _look(look, theirs) if _helper.ends_with(parent) else 1
        except SystemExit as ending:
            code = ending.code if isinstance(ending.code, int) else 1
        finally:
            os._exit(code)
    os.close(theirs)
    beats.pass_pid = pid
    try:
        found = _followed(pid, result, beats, PassLimit(pid, limit_s))
    finally:
        os.close(result)
        beats.pass_pid = None
    _, status, usage = os.wait4(pid, 0)
    found["cpu_us"] = int((usage.ru_utime + usage.ru_stime) * 1e6)
    found["exit"] = os.waitstatus_to_exitcode(status)
    return found


def _load_for_the_next(names: Sequence[str]) -> None:
    """What a pass had to load, so that the next one finds it."""
    for name in names:
        with suppress(Exception):  # if it can be
            import_module(name)
    if names:
        from zombiescope.diagnosis import library_pages

        library_pages.give_back()


def _followed(pid: int, result: int, beats: Beats, limit: PassLimit) -> dict[str, Any]:
    """What the pass said before it ended: the pipe ends with it. One that makes no progress is killed."""
    heard, rest, found = select.poll(), b"", dict[str, Any]()
    heard.register(result, select.POLLIN)
    while True:
        if limit.is_over():
            os.kill(pid, signal.SIGKILL)
        if not heard.poll(_helper.BEAT_S * 1000):
            beats.second()
            continue
        piece = os.read(result, READ_BYTES)
        if not piece:
            return found
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            found = _heard(line, beats) or found
        rest = rest[-RESULT_BYTES:]


def _heard(line: bytes, beats: Beats) -> dict[str, Any]:
    """What the pass found; nothing for a step on the way."""
    try:
        said = _json.loads(line)
    except ValueError:
        return {}
    if not isinstance(said, dict):
        return {}
    if "step" in said:
        beats.gets_on(str(said["step"]))
        return {}
    return said


def _look(look: Callable[[], dict[str, Any]], result: int) -> int:
    """In the fork. Whatever goes wrong ends this pass only."""

    def send(said: dict[str, Any]) -> None:
        os.write(result, json.dumps(said).encode() + b"\n")

    steps.tell(lambda what: send({"step": what[:40]}))
    resource.setrlimit(resource.RLIMIT_CPU, (LOOK_CPU_S, LOOK_CPU_S + 1))
    room = data_limit(LOOK_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (room, room))
    gc.disable()  # what a look leaves behind ends with it
    loaded = set(sys.modules)
    try:
        answer = look()
    except Exception as error:  # noqa: BLE001  a look that fails is said, and the next one is tried
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        send({"why": why[:1000]})
        return 1
    answer["modules"] = sorted(set(sys.modules) - loaded)[:NEW_MODULES]
    send(answer)
    return 0


def _live(node_dir: Path, from_us: int) -> dict[str, Any]:
    from zombiescope.diagnosis import live

    before = {str(entry.get("id")) for entry in incident_file.read(node_dir)}
    looked = live.look(node_dir, from_us)
    return {**_summary(before, looked.known), "unexplained": looked.unexplained}


def _summary(before: set[str], known: list[dict[str, Any]]) -> dict[str, Any]:
    still_open = [entry for entry in known if entry.get("state") == "open"]
    return {
        "new": sum(str(entry.get("id")) not in before for entry in known),
        "open": len(still_open),
        "serious": sum(rank(str(entry.get("severity"))) > 0 for entry in still_open),
    }


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print("usage: python -m zombiescope.diagnosis.standby NODE_DIR", file=sys.stderr)  # noqa: T201
        return 2
    for number in (signal.SIGINT, signal.SIGHUP):  # for the recorder, which closes our pipe when it is done
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(PRIORITY, os.getpriority(os.PRIO_PROCESS, 0)))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(KILLED_FIRST)
    confine()
    beats = Beats()
    steps.tell(beats.gets_on)
    load()
    steps.tell(None)
    serve(Path(arguments[0]), beats)
    return 0


if __name__ == "__main__":
    _helper.begin()
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of pyarrow may abort the interpreter's own end (cli/main.py).
    os._exit(code)
