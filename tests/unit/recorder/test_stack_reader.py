"""Threads that wait, unwound from outside without stopping them: real processes of Python in a sleep and in a read."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from zombiescope.kernel.blocked_task import parse_user_place, read_state
from zombiescope.recorder.stack_reader import MOST_ASLEEP, StackReader

READS = "import os, sys\nos.write(1, b'x')\nos.read(0, 1)"
RUNS = "import os\nos.write(1, b'x')\nwhile True: pass"


@pytest.fixture
def reader() -> Iterator[StackReader]:
    made = StackReader()
    yield made
    made.close()


@pytest.fixture
def program() -> Iterator[Any]:
    started: list[subprocess.Popen[bytes]] = []

    def start(source: str, state: str) -> int:
        one = subprocess.Popen([sys.executable, "-S", "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(one)
        assert one.stdout is not None
        assert one.stdout.read(1) == b"x"
        end_s = time.monotonic() + 20
        while time.monotonic() < end_s:
            seen = read_state(f"/proc/{one.pid}/task/{one.pid}")
            if seen is not None and seen.state == state:
                break
        return one.pid

    yield start
    for one in started:
        one.kill()
        one.communicate()


def looked_at(reader: StackReader, pid: int) -> tuple[list[str], str] | None:
    """Names of its stack, outermost first, and how the walk ended."""
    reader.follow({"threads": [], "asleep": [[pid, pid]]})
    said = reader._message(time.monotonic())
    if not said["rows"]:
        return None
    (row,) = said["rows"]
    assert row[1:3] == [pid, pid]
    functions = said["functions"]
    return [functions[each][0] for each in said["stacks"][row[3]]], row[4]


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="stacks are unwound on x86_64")
def test_a_thread_that_waits_says_where_in_native_code(reader: StackReader, program: Any) -> None:
    found = looked_at(reader, program(READS, "S"))
    assert found is not None
    names, ended = found
    assert ended == "finished"
    assert "read" in names[-1]
    assert names[0] == "_start"


def test_a_thread_that_runs_is_in_no_wait(reader: StackReader, program: Any) -> None:
    pid = program(RUNS, "R")
    # It may be interrupted between two looks; then it is in the kernel, where it was interrupted, and not in a call.
    assert all(found is None or "read" not in found[0][-1] for found in (looked_at(reader, pid) for _ in range(5)))


def test_a_process_that_is_gone_and_foreign_words_are_left_out(reader: StackReader) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    reader.follow({"asleep": [[gone.pid, gone.pid], ["x", 1], [1], 7, [-1, -1]]})
    assert reader._message(time.monotonic())["rows"] == []


def test_not_more_than_a_few_are_looked_at(reader: StackReader, program: Any) -> None:
    pid = program(READS, "S")
    reader.follow({"asleep": [[pid, pid]] * 50})
    assert len(reader._message(time.monotonic())["rows"]) <= MOST_ASLEEP


@pytest.mark.parametrize(
    ("said", "place"),
    [
        (b"202 0x5609 0x189 0x0 0x0 0x0 0xffffffff 0x7fff50fa3ab0 0x7fc52c0a3f16\n", (0x7FFF50FA3AB0, 0x7FC52C0A3F16)),
        (b"-1 0x7fff50fa3ab0 0x7fc52c0a3f16\n", (0x7FFF50FA3AB0, 0x7FC52C0A3F16)),
        (b"running\n", None), (b"", None), (b"-1 0x0 0x0\n", None), (b"1 2 3 4\n", None), (b"-1 zz 0x1\n", None),
    ],
)  # fmt: skip
def test_where_a_thread_went_into_the_kernel(said: bytes, place: tuple[int, int] | None) -> None:
    assert parse_user_place(said) == place
