"""How each part of the agent is: what /readyz lists and the log says once, when it changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

State = Literal["starting", "ok", "degraded", "failed", "off"]


@dataclass(frozen=True, slots=True)
class Condition:
    state: State
    text: str
    since_s: float
    """Unix time."""


class Health:
    """Safe to use from every thread. `log` is called with a line when a state or its text changes."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._conditions: dict[str, Condition] = {}

    def say(self, name: str, state: State, text: str = "") -> None:
        with self._lock:
            before = self._conditions.get(name)
            if before is not None and (before.state, before.text) == (state, text):
                return
            since_s = before.since_s if before is not None and before.state == state else time.time()
            self._conditions[name] = Condition(state, text, since_s)
        if state in ("degraded", "failed"):
            self._log(f"{name}: {text or state}")
        elif before is not None and before.state in ("degraded", "failed"):
            self._log(f"{name}: works again" + (f": {text}" if text else ""))

    def forget(self, name: str) -> None:
        with self._lock:
            self._conditions.pop(name, None)

    def conditions(self) -> dict[str, Condition]:
        with self._lock:
            return dict(sorted(self._conditions.items()))
