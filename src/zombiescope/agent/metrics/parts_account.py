"""Every part of zombiescope on this node as metrics, made at each scrape: a scrape sees what is so now.

What a publisher counts begins with its process; what is counted here begins with the agent, and grows by what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zombiescope.agent import node_parts
from zombiescope.agent.metrics import families
from zombiescope.agent.node_parts import BAD
from zombiescope.agent.tally import Tally
from zombiescope.store.health import Part


class PartsAccount:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._before: dict[str, Part] = {}

    def publish(self, parts: Iterable[Part]) -> None:
        shown = [part for part in parts if part.state != "off"]
        self._tally.replace(families.PART_UP, (((part.name,), float(part.state not in BAD)) for part in shown))
        successes = ((part.name, part.last_success) for part in shown)
        self._tally.replace(families.PART_SUCCESS, (((name,), at_s) for name, at_s in successes if at_s is not None))
        for part in shown:
            before = self._before.get(part.name, part)
            self._tally.add(families.PART_WORK, _gained(before, part, lambda one: one.work), part.name)
            self._tally.add(families.PART_FAILURES, self._failed(before, part), part.name)
            self._before[part.name] = part
        self._tally.set(families.RESIDENT, node_parts.helper_bytes(shown), "helpers")

    @staticmethod
    def _failed(before: Part, part: Part) -> int:
        """As it counts itself; one that died or hangs cannot count that."""
        gained = _gained(before, part, lambda one: one.failures)
        return gained or int(part.state in BAD and before.state not in BAD)


def _gained(before: Part, part: Part, of: Callable[[Part], int]) -> int:
    """A publisher that was started again counts from nothing."""
    return of(part) - of(before) if of(part) >= of(before) else of(part)
