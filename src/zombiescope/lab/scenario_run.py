"""A scenario as the command sees it: get it ready, let it go, end it.

with stage(scenario) as running:   # ready; everything that takes long is done
    running.go()                   # from now on it hurts
    ...
                                   # gone afterwards, with all that it made
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from zombiescope.base import python as _python
from zombiescope.lab.failure import LabError
from zombiescope.lab.scenario import LONGEST_S, Scenario

CLEANED_S = 90.0


class ScenarioRun:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.began_us = 0

    @property
    def pid(self) -> int:
        """Of the supervisor."""
        return self._process.pid

    def go(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise LabError(f"the scenario ended before it began: {self._last_words()}") from error
        self._expect("going")
        self.began_us = time.time_ns() // 1000

    def ended(self) -> bool:
        return self._process.poll() is not None

    def stop(self) -> None:
        """Ends it and waits until all of it is removed."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLEANED_S)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
        if self._process.stderr is None or self._process.stderr.closed:
            return  # stopped before
        said = self._last_words()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._process.returncode:
            raise LabError(f"the scenario was not cleaned up: {said}", "zombiescope lab clean")

    def _expect(self, word: str) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline() != f"{word}\n":
            self._process.wait()
            raise LabError(f"the scenario could not be started: {self._last_words()}")

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        said = self._process.stderr.read().strip().splitlines()
        return said[-1] if said else f"exit {self._process.returncode}"


@contextmanager
def stage(scenario: Scenario, seconds: float | None = None) -> Iterator[ScenarioRun]:
    """`seconds` is how long it may hurt at most; for healthy loads as long as one likes."""
    most = min(scenario.seconds, LONGEST_S) if scenario.kind == "fault" else scenario.seconds
    scenario.build()
    process = subprocess.Popen(  # noqa: S603  our own interpreter, our own module
        _python.module("zombiescope.lab.supervisor", scenario.id, str(round(seconds or most) + 5)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_python.environment(),
        start_new_session=True,  # Ctrl-C is for the command, which ends it in order
    )
    running = ScenarioRun(process)
    try:
        running._expect("ready")
        yield running
    except BaseException:
        with suppress(LabError):
            running.stop()
        raise
    running.stop()


# --- run file ---------------------------------------------------------------------------------------------------------
# scenario.json beside a recording that was kept: which scenario it is of, and when it hurt.

FILE = "scenario.json"


def write_span(place: Path, scenario: str, from_us: int, to_us: int) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / FILE).write_text(json.dumps({"scenario": scenario, "from_us": from_us, "to_us": to_us}) + "\n")


def read_span(place: Path) -> tuple[int, int] | None:
    """From the onset to the end of the fault; None for a recording that does not say."""
    try:
        document = json.loads((place / FILE).read_text())
        return int(document["from_us"]), int(document["to_us"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
