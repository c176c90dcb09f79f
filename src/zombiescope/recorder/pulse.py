"""What is known of the life of one part of the recorder: whether it works, since when, and what failed last.

A part that failed has failed until it does what it is for again; one that hangs is well again when it answers. Times
are Unix seconds, for people."""

from __future__ import annotations

import time

from zombiescope.store.health import Part, State


class Pulse:
    def __init__(self, name: str) -> None:
        self.name = name
        self.state: State = "off"
        self.since = time.time()
        self.last_success: float | None = None
        self.work = self.failures = 0
        self.why = "not needed yet"
        self.fix = ""
        self._is_on_trial = False
        """Started again after a failure: only work shows that it works."""

    def starts(self) -> None:
        """It runs. One that failed or hung has yet to show that it works."""
        self._is_on_trial = self.state in ("failed", "hung")
        if self.state == "off":
            self._become("ok", "")

    def works(self) -> None:
        """It did what it is for."""
        self._is_on_trial = False
        self.last_success = time.time()
        self.work += 1
        self._become("ok", self.why if self.state != "off" else "")

    def answers(self) -> None:
        """It lives; whether it does its work is another matter."""
        if self.state == "hung" and not self._is_on_trial:
            self._become("ok", self.why)

    def fails(self, why: str, fix: str = "") -> None:
        self.failures += 1
        self._become("failed", why, fix)

    def hangs(self, why: str, fix: str = "", silent_s: float = 0.0) -> None:
        """It did not answer for so long."""
        is_news = self.state != "hung"
        self._become("hung", why, fix)
        if is_news:
            self.failures += 1
            self.since -= silent_s

    def rests(self, why: str) -> None:
        """It is not needed, or not wanted. A failure that was not followed by a success stays known."""
        if self.state not in ("failed", "off"):
            self._become("off", why)

    def is_off(self, why: str) -> None:
        """It cannot be had here, whatever was before."""
        self._become("off", why)

    def part(self, pid: int | None = None, rss_bytes: int | None = None) -> Part:
        return Part(
            self.name, self.state, self.since, self.last_success, self.work, self.why, self.fix, self.failures, pid,
            rss_bytes,
        )  # fmt: skip

    def _become(self, state: State, why: str, fix: str = "") -> None:
        if state != self.state:
            self.since = time.time()
        self.state, self.why, self.fix = state, why, fix
