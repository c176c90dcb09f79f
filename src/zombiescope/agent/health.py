"""How each service of the agent is: what the log says once, when it changes, and the part that is derived of it.

A service is one condition here, and one part (store/health.py) everywhere else: in the heartbeat file, /readyz,
/metrics, Events and the webhook. `PART_STATES` says which state becomes which; "hung" is no state that a service can
give itself: it is derived when the beat that the service promised does not come.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from zombiescope.store import health
from zombiescope.store.health import Part

State = Literal["starting", "ok", "degraded", "failed", "off"]
PART_STATES: dict[State, health.State] = {
    "starting": "ok", "ok": "ok", "degraded": "ok", "failed": "failed", "off": "off",
}  # fmt: skip
"""A degraded service works: the peer that it needs does not. That is listed in /readyz, and is no dead part."""
_SENTENCES: dict[State, str] = {"failed": "failed: ", "degraded": "is degraded: "}
"""A part says what is wrong as a sentence that begins with its name."""
MARGIN_S = 3.0
"""A beat may be so late. With a loop of five seconds, a hang is reported within ten."""
RESTART = "systemctl restart zombiescope"


@dataclass(frozen=True, slots=True)
class Condition:
    state: State
    text: str
    since_s: float
    """Unix time."""
    last_success_s: float | None = None
    work: int = 0
    failures: int = 0
    last_failure: str = ""
    beat_s: float = 0.0
    due_s: float | None = None
    """By when the next beat has to come, as `beat_s` in monotonic seconds. None: nobody waits for one."""

    def part(self, name: str, now_s: float) -> Part:
        told = Part(
            name, PART_STATES[self.state], self.since_s, self.last_success_s, self.work, failures=self.failures,
            why=self.last_failure if self.state == "ok" else _SENTENCES.get(self.state, "") + self.text,
        )  # fmt: skip
        if self.due_s is None or now_s <= self.due_s + MARGIN_S:
            return told
        silent_s = now_s - self.beat_s
        why = f"has done nothing for {silent_s:.0f} s"
        return replace(told, state="hung", since=time.time() - silent_s, why=why, fix=RESTART)


class Health:
    """Safe to use from every thread. `log` is called with a line when a state or its text changes."""

    def __init__(self, log: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._lock = threading.Lock()
        self._conditions: dict[str, Condition] = {}
        self.recorder_down: str | None = None
        """Why the recorder does not run, as the supervisor reports it."""
        self.recorder_restarts = 0

    def say(self, name: str, state: State, text: str = "") -> None:
        with self._lock:
            before = self._conditions.get(name)
            same = before is not None and (before.state, before.text) == (state, text)
            if same and state != "failed":
                return
            self._conditions[name] = _next(before, state, text)
        if same:
            return
        if state in ("degraded", "failed"):
            self._log(f"{name}: {text or state}")
        elif before is not None and before.state in ("degraded", "failed"):
            self._log(f"{name}: works again" + (f": {text}" if text else ""))

    def beat(self, name: str, within_s: float) -> None:
        """It lives, and beats again within this time."""
        now_s = self._clock()
        self._update(name, lambda one: replace(one, beat_s=now_s, due_s=now_s + within_s))

    def worked(self, name: str, times: int = 1) -> None:
        """It did what it is for."""
        self._update(name, lambda one: replace(one, last_success_s=time.time(), work=one.work + times))

    def excuse(self, late_s: float) -> None:
        """The whole process did not run for this long: no service is to blame for it."""
        with self._lock:
            for name, one in self._conditions.items():
                if one.due_s is not None:
                    self._conditions[name] = replace(one, due_s=one.due_s + late_s)

    def forget(self, name: str) -> None:
        with self._lock:
            self._conditions.pop(name, None)

    def conditions(self) -> dict[str, Condition]:
        with self._lock:
            return dict(sorted(self._conditions.items()))

    def parts(self) -> list[Part]:
        """Each service as a part; one that breaks its promise to beat is hung."""
        now_s = self._clock()
        return [one.part(name, now_s) for name, one in self.conditions().items()]

    def _update(self, name: str, changed: Callable[[Condition], Condition]) -> None:
        with self._lock:
            if name in self._conditions:
                self._conditions[name] = changed(self._conditions[name])


def _next(before: Condition | None, state: State, text: str) -> Condition:
    known = before or Condition(state, text, time.time())
    since_s = known.since_s if known.state == state else time.time()
    failed = state == "failed"
    return replace(
        known, state=state, text=text, since_s=since_s, failures=known.failures + failed,
        last_failure=_SENTENCES["failed"] + text if failed else known.last_failure,
        due_s=None if state in ("failed", "off") else known.due_s,
    )  # fmt: skip
