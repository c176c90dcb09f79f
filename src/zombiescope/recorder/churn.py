"""What ends again and again: cgroups of one path, containers of one name."""

from __future__ import annotations

from collections import deque

CHURN_SPAN_US = 300_000_000
CHURN_SLOW = 6  # removals in CHURN_SPAN_US: an agent's container that dies every 11 to 20 s makes 15 to 27
CHURN_FAST_SPAN_US = 60_000_000
CHURN_FAST = 20
MAX_NAMES = 1024
MAX_TIMES = 1000


class Churn:
    """Ends of what has the same name: a supervisor that restarts containers inside a healthy unit.

    Bounded: of more names than fit those go first that have been quiet for longest."""

    def __init__(self) -> None:
        self._times: dict[str, deque[int]] = {}
        self._reported_us: dict[str, int] = {}

    def removed(self, path: str, wall_us: int) -> tuple[int, float] | None:
        """Notes an end; (count, seconds) when this is news worth an event."""
        times = self._times.setdefault(path, deque(maxlen=MAX_TIMES))
        times.append(wall_us)
        while times and times[0] < wall_us - CHURN_SPAN_US:
            times.popleft()
        if len(self._times) > MAX_NAMES:
            self._forget(wall_us)
        fast = len(times) >= CHURN_FAST and times[-CHURN_FAST] > wall_us - CHURN_FAST_SPAN_US
        if not fast and len(times) < CHURN_SLOW:
            return None
        if wall_us - self._reported_us.get(path, -CHURN_SPAN_US) < (CHURN_FAST_SPAN_US if fast else CHURN_SPAN_US):
            return None
        self._reported_us[path] = wall_us
        return len(times), (times[-1] - times[0]) / 1e6

    def _forget(self, wall_us: int) -> None:
        for path in [path for path, times in self._times.items() if not times or times[-1] < wall_us - CHURN_SPAN_US]:
            self._drop(path)
        if len(self._times) > MAX_NAMES:
            for path in sorted(self._times, key=lambda path: (len(self._times[path]), self._times[path][-1]))[
                : MAX_NAMES // 2
            ]:
                self._drop(path)

    def _drop(self, path: str) -> None:
        self._times.pop(path, None)
        self._reported_us.pop(path, None)
