"""The command line, on a machine where no recorder runs unless a test starts one.

`cli(...)` runs the entry point in this process and saves half a second of imports. `cli.process(...)` starts a process:
for tests about start-up, signals, what a command loads, or a command that becomes another program.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn
from unittest import mock

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGWINCH)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


@dataclass(frozen=True)
class Cli:
    home: Path

    def __call__(self, *arguments: str, **environment: str) -> Done:
        """In this process, with an environment, a directory and standard streams of its own."""
        from zombiescope.cli import main

        with (
            _surroundings(arguments, self.home, self.environment(**environment)),
            _captured(1, "stdout") as out,
            _captured(2, "stderr") as err,
        ):
            return Done(main.run(arguments), out(), err())

    def process(self, *arguments: str, **environment: str) -> Done:
        """In a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "zombiescope.cli.main", *arguments],
            capture_output=True, text=True, timeout=60, check=False, cwd=self.home,
            env=self.environment(**environment),
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ZOMBIESCOPE", "XDG"))}
        source = Path(__file__).parents[2] / "src"
        return kept | {
            "PYTHONPATH": str(source), "HOME": str(self.home),
            "ZOMBIESCOPE_RUNTIME_DIR": str(self.home / "run"),
            "COLUMNS": "80", "LINES": "25", **more,
        }  # fmt: skip


@contextlib.contextmanager
def _surroundings(arguments: tuple[str, ...], home: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """What a process has of its own, and what a command may change in it."""
    place, handlers = Path.cwd(), {number: signal.getsignal(number) for number in _SIGNALS}
    zone = os.environ.get("TZ")
    with (
        open(os.devnull) as nothing,
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.object(sys, "argv", ["zombiescope", *arguments]),
        mock.patch.object(sys, "stdin", nothing),
        mock.patch.multiple(os, execv=_become, execve=_become, execvp=_become, execvpe=_become, _exit=_become),
    ):
        os.chdir(home)
        try:
            _use_zone(zone, environment.get("TZ"))
            yield
        finally:
            os.chdir(place)
            for number, handler in handlers.items():
                signal.signal(number, handler)
    _use_zone(environment.get("TZ"), zone)


def _use_zone(before: str | None, now: str | None) -> None:
    if before != now:
        time.tzset()


def _become(*_: object) -> NoReturn:
    raise AssertionError("this command ends the process or becomes another program: call cli.process")


@contextlib.contextmanager
def _captured(number: int, name: str) -> Iterator[Callable[[], str]]:
    """A file in the place of standard output or standard error, for children too; gives what was written."""
    getattr(sys, name).flush()
    with tempfile.TemporaryFile() as file:
        before = os.dup(number)
        os.dup2(file.fileno(), number)
        errors = "backslashreplace" if name == "stderr" else "strict"
        try:
            with (
                open(number, "w", encoding="utf-8", errors=errors, closefd=False) as stream,
                mock.patch.object(sys, name, stream),
            ):

                def written() -> str:
                    stream.flush()
                    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode()

                yield written
        finally:
            os.dup2(before, number)
            os.close(before)
