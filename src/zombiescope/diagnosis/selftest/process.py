"""`zombiescope selftest`: a standby process started as the recorder starts it, and the outcome that it reports.

The standby process runs the self-test when it has loaded its libraries and ends with its input, which is closed from
the start. What kills it while it loads is reported here; this process imports none of those libraries.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zombiescope.base import json as _json
from zombiescope.base import python as _python
from zombiescope.diagnosis.selftest.outcome import (
    AGAIN,
    MEMORY,
    OWN_ENVIRONMENT,
    Outcome,
    libraries,
    named,
    signal_name,
)

MODULE = "zombiescope.diagnosis.standby"
LIMIT_S = 60.0
"""For loading the libraries and for the self-test, which has a limit of its own."""
_STDERR_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Finished:
    outcome: Outcome
    total_seconds: float
    """From the start of the process to its end, loading included."""


def run(limit_s: float = LIMIT_S) -> Finished:
    """Raises OSError when no process can be started."""
    began = time.monotonic()
    # The folder of a recording is asked for and, without a pass to do, never opened.
    command = _python.module(MODULE, str(Path(__file__).parent))
    process = subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_python.forking_environment(),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit_s)
        outcome = _reported(out) or _died(process.returncode, err.decode(errors="replace"))
    except subprocess.TimeoutExpired:
        outcome = _failed(f"the live diagnosis did not start within {limit_s:g} s with {named(libraries())}", AGAIN)
    finally:
        _end(process)
    return Finished(outcome, time.monotonic() - began)


def _end(process: subprocess.Popen[bytes]) -> None:
    """With the fork of a pass that hangs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _reported(out: bytes) -> Outcome | None:
    """The outcome in the line that says `ready`, if there is one."""
    for line in out.splitlines():
        try:
            said: Any = _json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and said.get("ready") and isinstance(said.get("selftest"), dict):
            return Outcome.of(said["selftest"])
    return None


def _died(code: int, err: str) -> Outcome:
    environment = named(libraries())
    last = (err.strip().splitlines() or ["it printed nothing"])[-1][:_STDERR_CHARACTERS]
    if code == -signal.SIGKILL:
        return _failed("the live diagnosis was killed (SIGKILL) when it started", MEMORY)
    if code < 0:
        return _failed(
            f"the live diagnosis died of {signal_name(-code)} when it started with {environment}", OWN_ENVIRONMENT
        )
    return _failed(f"the live diagnosis could not start with {environment} (exit code {code}): {last}", OWN_ENVIRONMENT)


def _failed(why: str, fix: str) -> Outcome:
    return Outcome(ok=False, why=why, fix=fix, libraries=libraries())
