"""What the pages of these tests show: a recording of this machine with a real hog in it, and a server over it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import loads

from tests.helpers.recorder_process import RecorderProcess

QUIET_S = 5
HOG_S = 5
DEADLINE_S = 60.0
COMMAND = (sys.executable, "-m", "zombiescope.cli.main")

# Random bytes are made in the kernel, with the same function names since 5.19: no fault of this machine is needed. In
# real time where that is allowed, so that it has its core whatever else runs here.
HOG = """
import os, sys, time
try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
except PermissionError: pass
open('/proc/self/comm', 'w').write('hog')
os.sched_setaffinity(0, {int(sys.argv[1])})
source = open('/dev/urandom', 'rb', buffering=0); room = bytearray(1 << 20)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end: source.readinto(room)
"""
HOT = "random"
"""A part of the names of the kernel's functions that the hog runs in."""


@dataclass(frozen=True, slots=True)
class Recorded:
    directory: Path
    start: float
    """Unix seconds, as all times here."""
    end: float
    hog_from: float
    hog_to: float
    core: int

    @property
    def guilty(self) -> tuple[float, float]:
        """Whole seconds in which nothing but the hog ran on its core."""
        return self.hog_from + 0.5, self.hog_to - 0.5


def record(place: Path) -> Recorded:
    """Some seconds of ordinary work, the hog beside it on the last core, and ordinary work again."""
    core = max(os.sched_getaffinity(0))
    recorder = RecorderProcess(place)
    try:
        with loads.running(loads.MIXED):
            recorder.wait_for_frames(1)
            start = time.time()
            recorder.wait_for_frames(QUIET_S)
            hog_from = time.time()
            subprocess.run([sys.executable, "-c", HOG, str(core), str(HOG_S)], check=True, timeout=HOG_S + 60)
            hog_to = time.time()
            recorder.wait_for_frames(QUIET_S)
        recorder.stop()
    finally:
        recorder.kill()
    return Recorded(place, start, time.time(), hog_from, hog_to, core)


def free_port(address: str = "127.0.0.1") -> int:
    with socket.socket() as made:
        made.bind((address, 0))
        return int(made.getsockname()[1])


TOKEN = "the-token-of-these-tests"


class Server:
    """`zombiescope serve`, as a person starts it."""

    def __init__(
        self,
        directory: Path | None,
        *,
        more: Sequence[Path] = (),
        options: Sequence[str] = (),
        listen: str | None = None,
        prefix: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`more`: further recordings that it shows; `options`: such as --fleet ROOT, where there is no directory."""
        self.listen = listen or f"127.0.0.1:{free_port()}"
        shown = [str(place) for place in (directory, *more) if place is not None]
        self._command = [*prefix, *COMMAND, "serve", *shown, *options, "--listen", self.listen]
        self._environment = dict(environment or {})
        self._process: subprocess.Popen[str] | None = None
        self.said: list[str] = []
        self.token = TOKEN
        """One that a server which is started again has too."""
        self.start()

    def start(self) -> None:
        environment = os.environ | {"ZOMBIESCOPE_TOKEN": self.token} | self._environment
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.said = []
        out = self._process.stdout
        assert out is not None
        threading.Thread(target=lambda: self.said.extend(out), daemon=True).start()
        self._wait()

    @property
    def url(self) -> str:
        """As it was printed; with the token, where there is one."""
        found = re.search(r"http://\S+", "".join(self.said))
        assert found, self.said
        return found[0]

    @property
    def origin(self) -> str:
        return f"http://{self.listen}"

    def ended(self) -> str | None:
        """How it ended by itself, with its last words; None while it runs."""
        code = self._process.poll() if self._process is not None else None
        return None if code is None else f"the server ended with {code}: {''.join(self.said)[-2000:]}"

    def kill(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()
            self._process = None

    def pause(self) -> None:
        """It accepts connections still, and answers nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _wait(self) -> None:
        """It says that Ctrl-C stops it once its socket is open."""
        end = time.monotonic() + DEADLINE_S
        while "Ctrl-C" not in "".join(self.said):
            assert self._process is not None
            assert self._process.poll() is None, "".join(self.said)
            assert time.monotonic() < end, f"no server at {self.listen}: {''.join(self.said)}"
            time.sleep(0.02)


def answer(url: str) -> bytes:
    asked = urllib.request.Request(url, headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked, timeout=DEADLINE_S) as response:
        body: bytes = response.read()
        return body
