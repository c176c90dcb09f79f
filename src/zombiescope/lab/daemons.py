"""Daemons of the distribution that run for the laboratory: started with a log, waited for, and ended."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from zombiescope.lab import programs
from zombiescope.lab.failure import LabError

UP_S = 90.0
GONE_S = 10.0


class Daemons:
    """Ended in the reverse order of their start, however the block ends."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._started: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> Daemons:
        return self

    def __exit__(self, *_: object) -> None:
        for _name, process in reversed(self._started):
            process.terminate()
            try:
                process.wait(GONE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, program: str | Path, *arguments: str) -> None:
        name = Path(program).name
        with (self._logs / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(  # noqa: S603  a program of the distribution, or one that we built from it
                [programs.find(str(program)), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._started.append((name, process))

    def wait_until(self, ready: Callable[[], bool]) -> None:
        """What was started last answers; its last line is the error when it does not."""
        name, process = self._started[-1]
        end = time.monotonic() + UP_S
        while not ready():
            if process.poll() is not None or time.monotonic() > end:
                said = (self._logs / f"{name}.log").read_text(errors="replace").strip().splitlines()
                raise LabError(f"{name} did not come up: {said[-1][-300:] if said else 'it logged nothing'}")
            time.sleep(0.1)
