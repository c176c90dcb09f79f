"""How far back a pass of the live diagnosis looks: less after one that was slow or did not end in its time.

A pass costs about as much as its window is long, and one that takes more than a minute is killed. On a machine that has
hardly any CPU left for it (a pod with a small quota, an emulated processor) a pass over two minutes never ends, however
often it is tried, and whatever is wrong there is never named. The last ten seconds cost a quarter of that, and say as
well what is wrong now: of what was before, earlier passes know.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOWS_US = ((30_000_000, 120_000_000), (15_000_000, 60_000_000), (8_000_000, 25_000_000), (4_000_000, 12_000_000))
"""(before what is suspicious, at most in all), the longest first. Measured on the founding case: a pass over 120 s took
0.6 s of CPU, over 40 s 0.4, over 20 s 0.33, over 10 s 0.17; each named the same cause with the same confidence."""
FASTER = 2
"""Levels, after one that was killed: that took a minute, in which nothing was diagnosed."""
SLOW_US = 20_000_000
"""An answer that is older than this is late: better about less."""
QUICK_US = 5_000_000
"""After a pass that took no longer, the next one may look at more."""


@dataclass(slots=True)
class PassWindow:
    """asked() and then worked() or failed(), for each pass."""

    level: int = 0
    _asked_us: int | None = None

    def asked(self, now_us: int, since_us: int) -> int:
        """From when on to look at what has been suspicious since then."""
        self._asked_us = now_us
        before_us, most_us = WINDOWS_US[self.level]
        return max(since_us - before_us, now_us - most_us)

    def failed(self) -> None:
        """The pass was killed, or died."""
        self._shorter(FASTER)

    def worked(self, now_us: int) -> None:
        took_us = 0 if self._asked_us is None else now_us - self._asked_us
        if took_us > SLOW_US:
            self._shorter(1)
        elif 0 <= took_us <= QUICK_US:  # a clock that was set back says nothing
            self.level = max(self.level - 1, 0)
        self._asked_us = None

    def _shorter(self, levels: int) -> None:
        self._asked_us = None
        self.level = min(self.level + levels, len(WINDOWS_US) - 1)
