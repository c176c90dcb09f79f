"""The doctor on standby: everything is loaded once, and each look is a fork of that.

    python -m zombiescope.diagnosis.standby NODE_DIR

Started by the recorder (recorder/doctor_process.py has the protocol). A look that crashes, hangs or takes too much
memory takes nobody along, and what it allocated is gone with it. Loading costs more than a look, a fork milliseconds;
the price is memory that stays (docs/design/0028 has the figures).

It runs at a raised priority where that is permitted, and else at the recorder's: a look is short and rare
(recorder/look_budget.py), and one that waits behind everybody on a loaded machine says what is wrong when it is over.
It reads standard input until that ends, which it does with the recorder.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from zombiescope import _json
from zombiescope._confinement import confine
from zombiescope._severity import rank
from zombiescope.diagnosis import library_pages, live, patterns, symptoms
from zombiescope.recording import incident_file

LOOK_S = 60.0
LOOK_CPU_S = 20
LOOK_BYTES = 1 << 30
NEW_MODULES = 200
RESULT_BYTES = 65536
KILLED_FIRST = b"800"
"""Before the recorder, which the packaged unit puts at 500, and before anything that does not ask for more."""
PRIORITY = -10
"""A third of a core beside twenty busy loops, where an ordinary process gets a twentieth."""


def load() -> None:
    """What looks need and load only when they need it."""
    patterns.every()
    symptoms.every()
    np.unique(np.zeros(1))  # loads numpy.ma
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    gc.collect()
    gc.freeze()  # so that a look's collector does not touch, and copy, what is shared
    library_pages.give_back()  # a look faults in what it needs: forks do not inherit them anyway


def serve(node_dir: Path) -> None:
    _say({"ready": True, **_used()})
    while line := sys.stdin.buffer.readline():
        _say({**_look_apart(node_dir, int(line)), **_used()})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _used() -> dict[str, Any]:
    mine, looks = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu_s = mine.ru_utime + mine.ru_stime + looks.ru_utime + looks.ru_stime
    return {"total_cpu_us": int(cpu_s * 1e6), "rss_bytes": max(mine.ru_maxrss, looks.ru_maxrss) * 1024}


# --- one look ----------------------------------------------------------------------------------------------------


def _look_apart(node_dir: Path, from_us: int) -> dict[str, Any]:
    result, theirs = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os._exit(_look(node_dir, from_us, theirs))
    os.close(theirs)
    status, usage = _ended(pid)
    found = _result(result)
    found["cpu_us"] = int((usage.ru_utime + usage.ru_stime) * 1e6)
    found["exit"] = os.waitstatus_to_exitcode(status)
    _load_for_the_next(found.pop("modules", ()))
    return found


def _load_for_the_next(names: Sequence[str]) -> None:
    """What a look had to load, so that the next one finds it."""
    for name in names:
        with suppress(Exception):  # if it can be
            import_module(name)
    if names:
        library_pages.give_back()


def _ended(pid: int) -> tuple[int, resource.struct_rusage]:
    """Within LOOK_S; then it is killed."""
    if signal.sigtimedwait({signal.SIGCHLD}, LOOK_S) is None:
        os.kill(pid, signal.SIGKILL)
    _, status, usage = os.wait4(pid, 0)
    while signal.sigtimedwait({signal.SIGCHLD}, 0) is not None:
        pass
    return status, usage


def _result(descriptor: int) -> dict[str, Any]:
    """What the look wrote before it ended; it fits into the pipe."""
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(RESULT_BYTES)
    try:
        found = _json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _look(node_dir: Path, from_us: int, result: int) -> int:
    """In the fork. Whatever goes wrong ends this look only."""
    resource.setrlimit(resource.RLIMIT_CPU, (LOOK_CPU_S, LOOK_CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_DATA, (LOOK_BYTES, LOOK_BYTES))
    gc.disable()  # what a look leaves behind ends with it
    loaded = set(sys.modules)
    try:
        before = {str(entry.get("id")) for entry in incident_file.read(node_dir)}
        answer = _summary(before, live.look(node_dir, from_us))
    except Exception as error:  # noqa: BLE001  a look that fails is said, and the next one is tried
        where = traceback.extract_tb(error.__traceback__)[-1]
        why = f"{type(error).__name__}: {error} ({Path(where.filename).name}:{where.lineno})"
        os.write(result, json.dumps({"why": why[:1000]}).encode())
        return 1
    answer["modules"] = sorted(set(sys.modules) - loaded)[:NEW_MODULES]
    os.write(result, json.dumps(answer).encode())
    return 0


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
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(PRIORITY, os.getpriority(os.PRIO_PROCESS, 0)))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(KILLED_FIRST)
    confine()
    load()
    serve(Path(arguments[0]))
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # Threads of pyarrow may abort the interpreter's own end (commands/main.py).
    os._exit(code)
