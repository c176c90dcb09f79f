"""A child at the other ends of two pipes: what all of them have in common."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zombiescope.kernel import process_vitals
from zombiescope.recorder.piped_process import PipedProcess, Restarts

ECHO = "import sys\nfor line in sys.stdin: print('heard', line, end='', flush=True)"
ENDLESS = "import sys\nwhile True: sys.stdout.write('x' * 65536)"


class Child(PipedProcess):
    def start(self, program: str, **options: object) -> None:
        self._spawn([sys.executable, "-c", program], **options)  # type: ignore[arg-type]

    def tell(self, line: bytes) -> None:
        os.write(self._to, line)


@pytest.fixture
def child() -> Iterator[Child]:
    made = Child()
    yield made
    if made.running:
        made._signal(9)
        assert made._gone_within(10)


def until(done: Callable[[], object]) -> None:
    end_s = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_it_is_told_and_tells_and_ends_with_its_input(child: Child) -> None:
    child.start(ECHO)
    child.tell(b"one\ntwo\n")
    until(lambda: child._hear(4096) and b"two\n" in child._said)
    assert child._line() == b"heard one"
    assert child._lines() == [b"heard two"]
    assert child._line() is None
    child._close_input()
    until(lambda: child._reaped() == "it ended with 0")
    assert not child.running
    assert child.cpu_us > 0


def test_no_descriptor_is_left(child: Child) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    for program in (ECHO, "raise SystemExit(3)"):
        child.start(program)
        child._signal(15)
        assert child._gone_within(20)
    with pytest.raises(FileNotFoundError):
        child._spawn(["/nonexistent/program"])
    assert set(Path("/proc/self/fd").iterdir()) == before
    assert child.runs == 2


def test_words_without_an_end_are_dropped_and_the_next_is_heard(child: Child) -> None:
    child.start(ENDLESS)
    for _ in range(20):
        child._hear(1 << 17)
        assert len(child._said) <= (1 << 17) + 65536


def test_it_inherits_what_it_is_given_and_nothing_else(child: Child, tmp_path: Path) -> None:
    with (tmp_path / "x").open("w") as file:
        child.start(
            "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:5], os.environ, flush=True)",
            environment={"ONLY": "this"}, inherited={3: file.fileno()},
        )  # fmt: skip
        until(lambda: child._hear(4096) and b"\n" in child._said)
    said = (child._line() or b"").decode()
    assert said.startswith("[0, 1, 2, 3, 4]")  # the last is the directory that it lists
    assert "'ONLY': 'this'" in said
    assert "PATH" not in said


def test_one_that_somebody_else_reaped_is_gone(child: Child) -> None:
    child.start("pass")
    assert child.pid is not None
    os.waitpid(child.pid, 0)
    assert child._reaped() == "it is gone"
    assert not child.running


class Bounded(Child):
    MEMORY_BYTES = 300 << 20


def test_its_memory_has_a_limit_and_one_that_exceeds_it_says_so() -> None:
    child = Bounded("a reader")
    child.start("import sys; sys.stdin.readline(); bytearray(1 << 30)")
    child.tell(b"go\n")
    until(lambda: child._reaped() is not None)
    assert (child.part().state, child.part().why) == ("failed", "exceeded its memory limit of 300 MB")


def test_it_ends_with_the_one_that_started_it() -> None:
    """Also where that is killed, and where it reads nothing."""
    sleeps = (
        "import time; from zombiescope.base import helper as h; h.begin(); print('{}', flush=True); time.sleep(600)"
    )
    starts = (
        "import os, sys, time\nfrom zombiescope.recorder.piped_process import PipedProcess\nmade = PipedProcess('x')\n"
        f"made._spawn([sys.executable, '-c', {sleeps!r}])\n"
        "while not made._hear(99): time.sleep(0.01)\nprint(made.pid, flush=True)\ntime.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", starts], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert process_vitals.read(pid) is not None
        parent.kill()
    until(lambda: process_vitals.read(pid) is None)


def test_it_is_started_again_after_longer_and_longer() -> None:
    restarts, now, waits = Restarts(1, 60), 0.0, []
    for _ in range(8):
        restarts.hold(now)
        assert not restarts.is_due(restarts.next - 0.5)
        assert restarts.is_due(restarts.next)
        waits.append(restarts.next - now)
        now = restarts.next
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    restarts.worked()
    restarts.hold(now)
    assert restarts.next == now + 1
