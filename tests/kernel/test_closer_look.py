"""A look at real programs: the call, its object, its line and its rate; and programs that end or change meanwhile."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs

from zombiescope.kernel import process, syscall_trace
from zombiescope.recorder.closer_look_reader import LOOK_S, MOST_ROWS, CloserLookReader

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(60)]

READS = """
import os
def poll():
    while True:
        with open("/proc/kallsyms", "rb", buffering=0) as file:
            while file.read(65536): pass
os.write(1, b"1")
poll()
"""
TWO_FILES = """
import os
def first(path="/proc/kallsyms"):
    fd = os.open(path, os.O_RDONLY); os.read(fd, 65536); os.close(fd)
def second(path="/proc/self/smaps"):
    fd = os.open(path, os.O_RDONLY); os.read(fd, 65536); os.close(fd)
os.write(1, b"1")
while True: first(); second()
"""
YIELDS = """
import os, threading
def spin():
    while True: os.sched_yield()
for _ in range(3): threading.Thread(target=spin, daemon=True).start()
os.write(1, b"1")
spin()
"""
FAILS = "import os\nos.write(1, b'1')\nwhile True:\n    try: os.kill(4194200, 0)\n    except OSError: pass"
EXECS = "import os, sys, time\nos.write(1, b'1')\ntime.sleep(float(sys.argv[1]))\nos.execvp('sleep', ['sleep', '20'])"
SLEEPS = "import os, time\nos.write(1, b'1')\ntime.sleep(60)"
SECRET = """
import os, sys
fd = os.open(sys.argv[1] + "/key?token=abcdefghijklmnop123456", os.O_RDWR | os.O_CREAT)
os.write(1, b"1")
while True: os.pwrite(fd, b"x" * 10, 0)
"""

Start = Callable[..., int]


@pytest.fixture
def start(needs: Needs) -> Iterator[Start]:
    needs.perf_events()
    needs.tracefs()
    started: list[subprocess.Popen[bytes]] = []

    def run(source: str, *arguments: str) -> int:
        program = subprocess.Popen([sys.executable, "-c", source, *arguments], stdout=subprocess.PIPE)
        started.append(program)
        assert program.stdout is not None
        program.stdout.read(1)
        return program.pid

    yield run
    for program in started:
        program.kill()
        program.communicate()


def look(pid: int, start_ticks: int | None = None) -> dict[str, Any]:
    reader = CloserLookReader()
    stat = process.read_stat(pid)
    reader.follow({"pid": pid, "start_ticks": start_ticks or (stat.start_time_ticks if stat else 1)})
    said = reader.turn(time.monotonic())
    assert said is not None
    assert len(said["calls"]) <= MOST_ROWS
    return said


def call(said: dict[str, Any], name: str, what: str | None = None) -> dict[str, Any]:
    names = (
        "call", "object", "count", "per_s", "took_us", "longest_us", "total_us", "bytes", "failed", "error", "threads",
    )  # fmt: skip
    rows = [dict(zip(names, row, strict=True)) for row in said["calls"]]
    found = [row for row in rows if row["call"] == name and (what is None or row["object"] == what)]
    assert found, rows
    return found[0]


def test_a_program_that_reads_a_file_is_told_with_its_line(start: Start) -> None:
    said = look(start(READS))
    assert said["why"] == ""
    read = call(said, "read", "/proc/kallsyms")
    assert read["bytes"] > 0
    assert (said["function"], said["line"]) == ("poll", 6)
    assert said["threads"] == 1
    # What it did all the time is where its time went.
    assert read["total_us"] >= max(row[6] for row in said["calls"])


def test_two_files_behind_one_number_are_two(start: Start) -> None:
    said = look(start(TWO_FILES))
    assert call(said, "read", "/proc/kallsyms")["count"] > 0
    assert call(said, "read", "/proc/self/smaps")["count"] > 0


def test_threads_that_yield_are_counted_together(start: Start) -> None:
    said = look(start(YIELDS))
    yields = call(said, "sched_yield")
    assert yields["threads"] == said["followed"] == 4
    assert yields["per_s"] / 1000 > 100
    assert (said["function"], said["state"]) == ("spin", "R")


def test_calls_that_fail_say_with_what(start: Start) -> None:
    kill = call(look(start(FAILS)), "kill", "pid 4194200")
    assert kill["failed"] == kill["count"]
    assert kill["error"] == os.strerror(3)


def test_one_that_sleeps_made_no_call_and_says_where_it_sleeps(start: Start) -> None:
    said = look(start(SLEEPS))
    assert said["calls"] == []
    assert said["state"] == "S"


def test_a_secret_in_a_path_is_masked(start: Start, tmp_path: Path) -> None:
    write = call(look(start(SECRET, str(tmp_path))), "pwrite64")
    assert write["object"] == f"{tmp_path}/key?token=***"


def test_a_suspect_that_runs_another_program_meanwhile_is_not_described(start: Start) -> None:
    said = look(start(EXECS, str(LOOK_S / 2)))
    assert said["why"] == "it ran another program during the look"
    assert said["calls"] == []


def test_a_suspect_that_ends_meanwhile_is_said_to_have_ended(start: Start) -> None:
    pid = start(READS)
    timer = threading.Timer(LOOK_S / 2, os.kill, (pid, 9))
    timer.start()
    said = look(pid)
    timer.join()
    assert said["why"] == "it ended during the look"


def test_a_number_that_is_another_process_is_not_looked_at(start: Start) -> None:
    pid = start(READS)
    stat = process.read_stat(pid)
    assert stat is not None
    said = look(pid, stat.start_time_ticks + 1)
    assert said["why"] == "it had ended, and its number is another process's"
    assert look(4_194_301, 5)["why"] == "it had ended before the look"


def test_without_the_tracepoints_the_rest_is_told_and_what_is_lost_is_named(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_place: Path) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(syscall_trace, "find", missing)
    said = look(start(READS))
    assert said["why"].startswith("system calls were not followed: raw_syscalls")
    assert said["calls"] == []
    assert said["function"] == "poll"


def test_nothing_is_left_open(start: Start) -> None:
    pid = start(YIELDS)
    look(pid)
    before = len(list(Path("/proc/self/fd").iterdir()))
    look(pid)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
