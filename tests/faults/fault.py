"""What every fault has: a program that gets ready, waits for the word, and does one bad thing until it is killed."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

LONGEST_S = 60
"""A fault ends by itself after this, whatever happened to whoever started it."""

V1_CPU = Path("/sys/fs/cgroup/cpu")

PREAMBLE = r"""
import ctypes, mmap, os, random, signal, sys, time
open("/proc/self/comm", "w").write(sys.argv[1])
signal.alarm(int(sys.argv[2]))
args = sys.argv[3:]
libc = ctypes.CDLL(None, use_errno=True)
def check(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def wait_for_the_word():
    print("ready", flush=True)
    sys.stdin.readline()
"""


class Running:
    """The program of a fault, ready or under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.began_us = 0

    @property
    def pid(self) -> int:
        return self._process.pid

    def go(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        self.began_us = time.time_ns() // 1000

    def stop(self) -> None:
        """The program is gone; what was made for it stays until the block is left."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@dataclass(frozen=True)
class Fault:
    """`hog` is who uses the CPU and `culprit` who is to blame, both by the name of a process (`comm` is that of the
    fault's own program, where it is not the hog), the culprit perhaps by a part of its cgroup."""

    pattern: str
    hog: str
    script: str
    comm: str = ""
    culprit: str = ""
    place: Callable[[Path], AbstractContextManager[list[str]]] = lambda _: nullcontext([])
    """Makes what the program needs, gives its arguments, and removes everything again."""
    seconds: float = 4.0
    """How long it should hurt for a diagnosis that is sure."""
    cpu: int | None = None
    caged: bool = True
    """In a cpu cgroup that gets nearly all of a core: a fault that has to share it with other tests is none."""
    packages: tuple[tuple[str, str], ...] = ()
    """Programs that it runs, with their Debian packages."""

    @contextmanager
    def ready(self, directory: Path) -> Iterator[Running]:
        cage = (
            cgroup("cpu", f"zs-cage-{self.pattern}", cpu__shares=262_144)
            if self.caged and V1_CPU.is_dir()
            else nullcontext()
        )
        with self.place(directory) as arguments, cage as directory_of_cage:
            running = Running(self._start(arguments))
            try:
                if directory_of_cage is not None:
                    (directory_of_cage / "cgroup.procs").write_text(str(running.pid))
                yield running
            finally:
                running.stop()

    def _start(self, arguments: list[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + self.script, self.comm or self.hog, str(LONGEST_S), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.cpu is not None:
            os.sched_setaffinity(process.pid, {self.cpu})
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            process.kill()
            process.wait()
            raise RuntimeError(f"the fault {self.pattern} could not be set up")
        return process

    def demonstrate(self) -> None:
        """For `python -m tests.faults.<name>`."""
        with tempfile.TemporaryDirectory() as directory, self.ready(Path(directory)) as running:
            sys.stdout.write(f"{self.pattern}: {self.hog} (pid {running.pid}) for {self.seconds} s\n")
            running.go()
            time.sleep(self.seconds)


@contextmanager
def cgroup(controller: str, name: str, **settings: int) -> Iterator[Path]:
    """A cgroup of a cgroup1 controller, gone afterwards with whatever is still in it."""
    directory = Path("/sys/fs/cgroup") / controller / name
    directory.mkdir(exist_ok=True)
    try:
        for file, value in settings.items():
            (directory / file.replace("__", ".")).write_text(str(value))
        yield directory
    finally:
        remove_cgroup(directory)


def remove_cgroup(directory: Path) -> None:
    """A cgroup can be removed a moment after its last process has gone."""
    for _ in range(100):
        try:
            directory.rmdir()
            return
        except OSError:
            for pid in (directory / "cgroup.procs").read_text().split():
                (directory.parent / "cgroup.procs").write_text(pid)
            time.sleep(0.05)


def enter_network_namespace() -> None:
    """For code that runs in a child made for it."""
    if ctypes.CDLL(None, use_errno=True).unshare(0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
