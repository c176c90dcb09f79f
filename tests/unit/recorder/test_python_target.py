"""Real interpreters of every version that this machine has, read from outside while they work."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zombiescope.kernel.process_memory import ProcessMemory
from zombiescope.recorder.python_target import Target
from zombiescope.symbols.python.walk import Stack, Tally

SUPPORTED = range(11, 16)
WORKS = """
import asyncio, os, sys, threading, time

def spin(n):
    total = 0
    for i in range(n):
        total += i
    return total

def batches(n):
    while True:
        yield spin(n)

class Loader:
    def work(self):
        for _ in batches(2000):
            pass

async def sleeps():
    while True:
        await asyncio.sleep(30)

waits = threading.Event()
threading.Thread(target=waits.wait, daemon=True).start()
threading.Thread(target=lambda: asyncio.run(sleeps()), daemon=True).start()
time.sleep(0.1)
child = os.fork() if "fork" in sys.argv else 0
if not child and "fork" in sys.argv:
    def in_the_child():
        Loader().work()
    in_the_child()
os.write(1, b"%d\\n" % child)
Loader().work()
"""

Start = Callable[..., subprocess.Popen[bytes]]


def interpreters() -> list[str]:
    """This one, and one of each other version that is installed."""
    found = {f"3.{sys.version_info[1]}": sys.executable}
    places = [*Path("/usr/bin").glob("python3.[0-9]*"), *Path.home().glob(".pyenv/versions/3.*/bin/python3.[0-9]*")]
    for place in sorted(places):
        version = place.name.removeprefix("python")
        if version.removeprefix("3.").isdigit() and int(version[2:]) in SUPPORTED:
            found.setdefault(version, str(place))
    return list(found.values())


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []
    children: list[int] = []

    def started(python: str, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([python, "-c", WORKS, *arguments], stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout is not None
        children.append(int(process.stdout.readline()))
        process.child = children[-1]  # type: ignore[attr-defined]
        return process

    yield started
    for pid in (pid for pid in children if pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for process in running:
        process.kill()
        process.communicate()


def looked_at(pid: int) -> tuple[Target, dict[int, Stack]]:
    """At its threads, until the working one could be read: a walk may be torn."""
    target = Target(pid, Tally())
    found: dict[int, Stack] = {}
    for _ in range(200):
        now_s = time.monotonic()
        if target.find(now_s):
            seen = target.look(target.threads(now_s), now_s)
            found |= {tid: stack for tid, stack in seen.items() if target.task(tid) is not None}
        if pid in found and found[pid].frames and found[pid].frames[-1].name in ("spin", "batches", "Loader.work"):
            break
        time.sleep(0.02)
    return target, found


@pytest.mark.parametrize("python", interpreters(), ids=lambda python: str(python))
def test_functions_files_and_lines_of_every_thread(start: Start, python: str) -> None:
    process = start(python)
    target, found = looked_at(process.pid)
    assert target.minor in SUPPORTED
    names = {tid: [frame.name for frame in stack.frames] for tid, stack in found.items()}
    assert names[process.pid][:2] == ["<module>", "Loader.work"]
    assert all(4 <= frame.line <= 20 for frame in found[process.pid].frames if frame.name in ("spin", "batches"))
    assert found[process.pid].frames[0].file == "<string>"
    inner = {name for tid, stack in names.items() if tid != process.pid for name in stack}
    assert {"Condition.wait", "BaseEventLoop.run_forever"} <= inner
    assert set(names) == {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()}


@pytest.mark.parametrize("python", interpreters(), ids=lambda python: str(python))
def test_a_forked_child_is_read_by_its_own_thread(start: Start, python: str) -> None:
    child: int = start(python, "fork").child  # type: ignore[attr-defined]
    _, found = looked_at(child)
    assert [frame.name for frame in found[child].frames][:3] == ["<module>", "in_the_child", "Loader.work"]
    assert list(found) == [child]


def test_a_process_that_executes_another_program_is_looked_for_anew() -> None:
    waits = "import sys, time, os; sys.stdin.readline(); os.execv('/bin/sleep', ['sleep', '60'])"
    process = subprocess.Popen([sys.executable, "-c", waits], stdin=subprocess.PIPE)
    try:
        target = Target(process.pid, Tally())
        end_s = time.monotonic() + 20
        while not (target.find(0.0) and target.threads(0.0)) and time.monotonic() < end_s:  # it is still starting
            target = Target(process.pid, Tally())
            time.sleep(0.05)
        assert target.threads(0.0) == [process.pid]
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n" and time.monotonic() < end_s:
            time.sleep(0.02)
        assert target.look([process.pid], 0.0) == {}
        assert not target.find(1.0)
        assert target.why is None
    finally:
        process.kill()
        process.communicate()


def test_a_process_that_is_gone_or_no_python_is_nothing() -> None:
    process = subprocess.Popen(["/bin/sleep", "60"])
    try:
        target = Target(process.pid, Tally())
        assert not target.find(0.0)
        assert target.why is None
    finally:
        process.kill()
        process.wait()
    assert not target.find(100.0)
    assert target.threads(100.0) == []


def test_an_older_python_is_left_alone_and_said() -> None:
    older = next(iter(sorted(Path.home().glob(".pyenv/versions/3.[6789]*/bin/python3"))), None)
    older = older or next(iter(sorted(Path.home().glob(".pyenv/versions/3.10*/bin/python3"))), None)
    if older is None:
        pytest.skip("no Python before 3.11 is installed here")
    process = subprocess.Popen([older, "-c", "import time; print(flush=True); time.sleep(60)"], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        target = Target(process.pid, Tally())
        assert not target.find(0.0)
        assert target.why == "a Python before 3.11, or one whose symbols are hidden"
    finally:
        process.kill()
        process.communicate()


def test_a_process_that_scribbles_over_its_own_interpreter_is_survived(start: Start) -> None:
    """Its list of threads leads to its own writable memory, full of chance."""
    scribbles = (
        "import ctypes, os, sys, time\n"
        "runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, '_PyRuntime'))\n"
        "os.write(1, b'%d\\n' % os.getpid())\n"
        "sys.stdin.readline()\n"
        "noise = ctypes.create_string_buffer(os.urandom(1 << 16), 1 << 16)\n"
        "start, word = ctypes.addressof(noise), ctypes.POINTER(ctypes.c_uint64)\n"
        "for at in range(0, 4096, 8):\n"
        "    ctypes.cast(start + at, word)[0] = start + at * 3 % 60000\n"
        "libc = ctypes.CDLL(None)\n"
        "target = ctypes.c_uint64(ctypes.addressof(noise))\n"
        "libc.memcpy(ctypes.c_void_p(runtime + 40), ctypes.byref(target), 8)\n"
        "libc.write(1, b'done\\n', 5)\n"
        "libc.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", scribbles], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        tally = Tally()
        target = Target(process.pid, tally)
        assert target.find(0.0)
        assert target.threads(0.0) == [process.pid]
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"
        for turn in range(20):
            target.look(target.threads(float(turn)), float(turn))
        memory = ProcessMemory(process.pid)
        assert memory.read(process_runtime(memory, process.pid), 8)
    finally:
        process.kill()
        process.communicate()


def process_runtime(memory: ProcessMemory, pid: int) -> int:
    from zombiescope.symbols.python import runtime

    return runtime.find(memory, runtime.python_files(Path(f"/proc/{pid}/maps").read_bytes())).address
