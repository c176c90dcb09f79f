"""From how the pass over the built-in recording ended to the outcome of the self-test.

Runs in the standby process, which forks for the pass. Whatever happens in the fork, the standby process goes on and
serves passes: some may work where this one did not.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

from zombiescope.diagnosis.selftest import built_in
from zombiescope.diagnosis.selftest.outcome import (
    AGAIN,
    MEMORY,
    OWN_ENVIRONMENT,
    REINSTALL,
    Outcome,
    libraries,
    named,
    signal_name,
)

LIMIT_S = 20.0
"""A pass takes 0.3 CPU-seconds: one that is not over after this hangs, or the machine leaves it next to no CPU."""

Apart = Callable[[Callable[[], dict[str, Any]], float], dict[str, Any]]
"""Runs something in a fork within some seconds and answers what it answered, its `exit` code and its `cpu_us`."""


def run(apart: Apart) -> dict[str, Any]:
    """The self-test; the answer is the document of its outcome. Raises nothing."""
    began = time.monotonic()
    try:
        ended = apart(_answer, LIMIT_S)
    except OSError as error:
        ended = {"why": f"the process for it could not be started: {error.strerror}"}
    seconds = time.monotonic() - began
    return judged(ended, seconds).document()


def _answer() -> dict[str, Any]:
    from zombiescope.diagnosis.selftest import one_pass  # with all libraries, which the standby process loads in steps

    return one_pass.answer()


def judged(ended: dict[str, Any], seconds: float) -> Outcome:
    """What it means that the pass ended so."""
    versions = libraries()
    why, fix = _complaint(ended, seconds, named(versions))
    found = ended.get("found")
    return Outcome(
        ok=not why,
        why=why,
        fix=fix,
        found=found if isinstance(found, dict) else None,
        seconds=round(seconds, 3),
        cpu_us=ended.get("cpu_us"),
        libraries=versions,
    )


def _complaint(ended: dict[str, Any], seconds: float, environment: str) -> tuple[str, str]:
    """Why it failed and what fixes that; nothing when it passed."""
    if "damaged" in ended:
        return f"this installation is damaged: {ended['damaged']}", REINSTALL
    if "memory" in ended:
        return f"a diagnosis pass ran out of memory ({ended['memory']})", MEMORY
    if "found" in ended and not ended.get("exit"):
        return _difference(ended["found"], environment)
    if ended.get("why"):
        return f"a diagnosis pass failed with {environment}: {ended['why']}", OWN_ENVIRONMENT
    return _death(int(ended.get("exit") or 0), seconds, int(ended.get("cpu_us") or 0), environment)


def _difference(found: dict[str, Any], environment: str) -> tuple[str, str]:
    try:
        wanted = built_in.expected()
    except built_in.DamagedError as error:
        return f"this installation is damaged: {error.what}", REINSTALL
    wrong = [
        f"{name} {found.get(name)} instead of {value}" for name, value in wanted.items() if found.get(name) != value
    ]
    if not wrong:
        return "", ""
    return f"a diagnosis pass gave a wrong answer with {environment}: {', '.join(wrong)}", OWN_ENVIRONMENT


def _death(code: int, seconds: float, cpu_us: int, environment: str) -> tuple[str, str]:
    """Of a pass that gave no answer."""
    if code == -signal.SIGKILL and seconds >= LIMIT_S:
        used = f"it used {cpu_us / 1e6:.1f} CPU-seconds"
        return f"a diagnosis pass did not end within {LIMIT_S:g} s with {environment} ({used})", AGAIN
    if code == -signal.SIGKILL:
        return "a diagnosis pass was killed (SIGKILL), as the kernel does when memory runs out", MEMORY
    if code < 0:
        return f"a diagnosis pass died of {signal_name(-code)} with {environment}", OWN_ENVIRONMENT
    return f"a diagnosis pass exited with code {code} and gave no answer with {environment}", OWN_ENVIRONMENT
