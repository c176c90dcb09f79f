"""The isolation test: the suspect is frozen for some minutes, and what the recorder counts meanwhile is the answer.

Three windows are compared: before, frozen, after. What the suspect does must stop while it is frozen and begin again
afterwards; either alone may be chance. Too little before to miss it while it was frozen is "not known", and so is
whatever was not recorded.

The suspect goes on whatever happens to us: a switch outside this process (dead_man.py) has it before it is frozen.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from zombiescope.fix import freezer
from zombiescope.fix.dead_man import DeadMan
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.step import ActionFailedError

Word = Literal["stopped", "went-on", "unknown"]

FEWEST = 5.0
"""Events that must be expected while it is frozen before their absence means anything: by chance none come in 0.7% of
such windows."""
FEW, MANY = 0.1, 0.5
"""Shares of what was expected: at most the first is none, at least the second is as before."""
GRIP_S = 30.0
"""How long it is tried to freeze somebody who is hardly ever there."""
GRACE_S = 60.0
"""What the switch waits beyond the trial: for us to measure and let go first."""


@dataclass(frozen=True, slots=True)
class Amount:
    """What was counted in a window; None where it was not recorded."""

    count: float | None
    seconds: float

    @property
    def per_second(self) -> float | None:
        return None if self.count is None or self.seconds <= 0 else max(0.0, self.count) / self.seconds


@dataclass(frozen=True, slots=True)
class Answer:
    word: Word
    text: str
    before: Amount
    frozen: Amount
    after: Amount

    def document(self) -> dict[str, Any]:
        windows = {"before": self.before, "frozen": self.frozen, "after": self.after}
        return {
            "verdict": self.word,
            "text": self.text,
            "per_second": {name: amount.per_second for name, amount in windows.items()},
        }


def judge(before: Amount, frozen: Amount, after: Amount, what: str = "the leak") -> Answer:
    word, text = _judged(before, frozen, after, what)
    return Answer(word, text, before, frozen, after)


def _judged(before: Amount, frozen: Amount, after: Amount, what: str) -> tuple[Word, str]:
    usual, now, later = before.per_second, frozen.per_second, after.per_second
    if usual is None or now is None:
        return "unknown", "not known: the recorder did not count it before or while it was frozen"
    if usual * frozen.seconds < FEWEST:
        return "unknown", f"not known: before, {what} was too slow to be missed in {frozen.seconds:.0f} s; try longer"
    if now >= MANY * usual:
        return "went-on", f"{what} continued while it was frozen: it is not the culprit, or not the only one"
    if now > FEW * usual:
        return "unknown", f"not known: {what} became slower while it was frozen, and did not stop"
    if later is None or later * after.seconds < 1 or later < FEW * usual:
        return "unknown", f"not known: {what} stopped while it was frozen, and has not begun again since"
    return "stopped", f"{what} stopped while it was frozen and began again"


class Counter(Protocol):
    """What the suspect is suspected of, counted from some beginning."""

    def at(self, wall_s: float) -> float | None:
        """Up to this moment; None where it was not recorded."""


Wait = Callable[[float], None]


def run(frozen: Frozen, seconds: float, counter: Counter, settle_s: float = 3.0, wait: Wait = time.sleep) -> Answer:
    """Freezes it for so long. `settle_s`: what the recorder is behind, so the frozen window begins that much later.
    Raises ActionFailedError; what was frozen goes on then, too."""
    if freezer.holds_us(frozen):
        raise ActionFailedError("it carries the session that this runs in, and would freeze with it")
    started = time.time()
    with DeadMan(seconds + GRACE_S) as switch:
        try:
            now = _grip(frozen, switch)
            begun = time.time()
            _hold(now, switch, seconds, wait)
            ended = time.time()
        except (OSError, RuntimeError) as error:
            raise ActionFailedError(f"it could not be kept frozen, and is running again: {error}") from error
    wait(seconds + settle_s)
    return judge(
        _amount(counter, started - seconds, started),
        _amount(counter, begun + settle_s, ended),
        _amount(counter, ended, time.time() - settle_s),
    )


def _grip(frozen: Frozen, switch: DeadMan) -> Frozen:
    """Frozen with somebody in it: what crashes again and again may end, and take its cgroup along, while it is gripped.
    RuntimeError where it never stays; OSError."""
    end = time.monotonic() + GRIP_S
    while True:
        now = frozen
        try:
            now = freezer.freeze(frozen, switch.arm)
            if freezer.is_frozen(now) and freezer.pids(now.directory):
                return now
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise
        freezer.thaw(now)
        if time.monotonic() > end:
            raise RuntimeError(f"no process stayed in {frozen.directory} long enough to be frozen")
        time.sleep(0.01)


def _hold(frozen: Frozen, switch: DeadMan, seconds: float, wait: Wait) -> None:
    """Until the time is over; sooner where it does not stay frozen, or the switch is gone."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        wait(min(1.0, left))
        if not switch.is_alive:
            freezer.thaw(frozen)
            raise RuntimeError("the watchdog that thaws it was killed, so it was thawed at once")
        if not freezer.is_frozen(frozen):
            raise RuntimeError("it was thawed or ended by someone else")


def _amount(counter: Counter, start: float, end: float) -> Amount:
    first, last = counter.at(start), counter.at(end)
    return Amount(None if first is None or last is None else last - first, end - start)
