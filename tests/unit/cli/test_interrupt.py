"""Ctrl-C at any moment ends a command, and says nothing of where it hit.

The moment is a module: the signal arrives while the N-th one after start-up is imported. The command line and all that
it loads later are covered that way, at whatever speed the machine runs; `serve` and `record` also get it from outside,
once they run. What comes before our first line (Python's own start) is not ours.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.helpers.cli import Cli
from tests.helpers.recordings import write_recording

from zombiescope.base import interrupt

AT_THE_NTH_IMPORT = """
import os, signal, sys
left = int(sys.argv.pop(1))
def count(event, arguments):
    global left
    if event == "import" and left >= 0:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGINT)
from zombiescope.cli import start
sys.argv[0] = "zombiescope"
sys.addaudithook(count)
start.main()
"""
MOMENTS = (0, 5, 60, 260, 420, 600)
COMMANDS = ("diagnose rec", "import x.txt made", "check", "fleet report rec")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("interrupted")
    write_recording(made / "rec", seconds=20)
    (made / "x.txt").write_text("a;b;c 12\n")
    return made


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("command", COMMANDS)
def test_while_modules_load(command: str, moment: int, place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", AT_THE_NTH_IMPORT, str(moment), *command.split()],
        capture_output=True, text=True, timeout=60, check=False, cwd=place, env=Cli(place).environment(),
    )  # fmt: skip
    assert done.returncode in (-signal.SIGINT, interrupt.INTERRUPTED, 0, 1, 3), done.stderr  # 0, 1, 3: it was over
    quiet(done.stderr)
    if moment < 100:
        assert done.returncode in (-signal.SIGINT, interrupt.INTERRUPTED), done.stderr


@pytest.mark.parametrize("command", ["record made --for 30s", "up made --for 30s", "serve rec --listen 127.0.0.1:0"])
@pytest.mark.parametrize("after_s", [0, 0.2, 1.0])
def test_a_command_that_runs_until_it_is_stopped(command: str, after_s: float, place: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "zombiescope.cli.start", *command.split()],
        cwd=place, env=Cli(place).environment(), text=True, process_group=0,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert started.stderr is not None
    first = started.stderr.readline()
    time.sleep(after_s)
    os.killpg(started.pid, signal.SIGINT)  # as the terminal does: everybody gets it
    _, said = started.communicate(timeout=60)
    assert started.returncode in (0, -signal.SIGINT, interrupt.INTERRUPTED)
    quiet(first + said)


def quiet(said: str) -> None:
    for word in ("Traceback", "KeyboardInterrupt", "Exception ignored", "defect"):
        assert word not in said, said


def test_an_interrupt_that_a_destructor_swallows_comes_again() -> None:
    class Holds:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    def waits() -> None:
        with interrupts:
            Holds()
            threading.Event().wait(30)

    interrupts = interrupt.Interrupts()
    with pytest.raises(KeyboardInterrupt):
        waits()
    assert interrupts.seen


def test_what_was_held_is_delivered_when_it_is_released() -> None:
    script = """
import os, signal
from zombiescope.base import interrupt
seen = []
signal.signal(signal.SIGINT, lambda number, _: seen.append(number))
interrupt.hold()
os.kill(os.getpid(), signal.SIGINT)
before = list(seen)
interrupt.release()
print(before, seen)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[] [2]\n"
