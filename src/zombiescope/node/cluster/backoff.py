"""How long to wait for an API server that does not answer, and what to say of it: once when it goes, once when it is
back."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from zombiescope.node.cluster import access

FIRST_S = 1.0
LONGEST_S = 60.0
REFUSED_S = 60.0
"""After a 401 or 403: somebody has to mend it, which takes longer than a restart."""


class Backoff:
    """Doubles up to a minute, with jitter: the agents of a thousand nodes must not come back in the same second."""

    def __init__(self, draw: Callable[[], float] = random.random) -> None:
        self._draw = draw
        self._failures = 0

    def worked(self) -> None:
        self._failures = 0

    def delay_s(self, error: BaseException) -> float:
        """What the server asks for is the least that we wait."""
        self._failures += 1
        grown = min(LONGEST_S, FIRST_S * 2.0 ** min(self._failures - 1, 10))
        least = REFUSED_S / 2 if access.status_code(error) in (401, 403) else 0.0
        asked = access.retry_after_s(error) or 0.0
        return float(max(least, min(asked, 10 * LONGEST_S)) + grown * (0.5 + self._draw() / 2))


class Outage:
    """Whether the server is away, and since when. `say` gets one line at the beginning and one at the end."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._since: float | None = None
        self._reason: object = None

    @property
    def lasts_s(self) -> float | None:
        return None if self._since is None else self._clock() - self._since

    def failed(self, error: BaseException, what: str) -> None:
        """Said again only when the reason becomes another one: away, then 403, is two different things to mend."""
        reason = access.status_code(error)
        if self._since is not None and reason == self._reason:
            return
        self._since = self._clock() if self._since is None else self._since
        self._reason = reason
        self._say(f"{what} not possible: {access.brief(error)}{_remedy(reason)}; trying again")

    def worked(self) -> None:
        since, self._since, self._reason = self._since, None, None
        if since is not None:
            self._say(f"the API server answers again after {self._clock() - since:.0f} s")


def _remedy(code: int | None) -> str:
    if code == 401:
        return " (is the token of the service account still valid?)"
    if code == 403:
        return " (the ClusterRole of the chart grants it: docs/kubernetes.md)"
    return ""
