"""Who started most of some tasks: samples added up over their ancestors.

A storm is made of children that live for milliseconds, and of their parents, who may be such children, too. Whoever
stands above most of the storm is to blame for it, and of those who do, the lowest: the loop, not the shell in which it
was typed. The children of one short-lived parent can be most of a short window, and of a longer one never; so
one of many is passed over, and the storm has the same culprit in every window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import NamedTuple

from zombiescope.diagnosis.ancestry import Ancestor, Ancestry
from zombiescope.diagnosis.sample_index import SampledTask
from zombiescope.diagnosis.thresholds import MOSTLY_SHARE


class Starter(NamedTuple):
    """The process that started most of some tasks; a thread is started by its own process."""

    pid: int
    task: SampledTask | None
    """None: it was never sampled itself."""
    samples: int
    """Of what it started."""
    share: float
    """Of the samples of tasks whose starter is known."""
    tasks: int
    """All of them, whoever started them."""
    are_threads: bool

    @property
    def started_most(self) -> bool:
        return self.share >= MOSTLY_SHARE


class Lineage:
    def __init__(self, ancestry: Ancestry) -> None:
        self._ancestry = ancestry
        self._above: dict[Hashable, tuple[Ancestor, int]] = {}
        """By identity: who, and how many stand above it."""
        self._samples: Counter[Hashable] = Counter()
        self._known = self._threads = 0

    def add(self, number: int, samples: int, *, is_thread: bool, or_itself: bool) -> None:
        line = self._ancestry.line(number)
        above = line if is_thread or or_itself else line[1:]
        if above or self._ancestry.knows_parent(number):
            self._known += samples
        if not above:
            return
        self._threads += samples if is_thread else 0
        for place, one in enumerate(above):
            key = one.pid if one.life is None else one.life
            self._above[key] = one, len(above) - place
            self._samples[key] += samples

    def starter(self, tasks: int) -> Starter | None:
        if not self._samples:
            return None
        most = [key for key, samples in self._samples.items() if samples >= MOSTLY_SHARE * self._known]
        lowest = sorted(most, key=lambda key: -self._above[key][1])
        key = next((one for one in lowest if not self._passes(one)), None)
        if key is None:
            key = max(self._samples, key=lambda one: (self._samples[one], self._above[one][1]))
        key, samples = self._peers_below(key) or (key, self._samples[key])
        who = self._above[key][0]
        task = None if who.life is None else self._ancestry.task(who.life)
        return Starter(who.pid, task, samples, samples / self._known, tasks, self._threads > self._known / 2)

    def _passes(self, key: Hashable) -> bool:
        """It is itself one of many that come and go."""
        life = self._above[key][0].life
        return life is not None and self._ancestry.is_one_of_many(life)

    def _peers_below(self, key: Hashable) -> tuple[Hashable, int] | None:
        """Processes of one name that last, below the one that was found, and have most of it together: six workers, one
        after the other or beside each other, are who forks, and not the script that ran them all."""
        together: Counter[str] = Counter()
        chief: dict[str, Hashable] = {}
        for one, (who, depth) in self._above.items():
            if who.life is None or depth <= self._above[key][1] or not self._ancestry.lasts(who.life):
                continue
            name = self._ancestry.task(who.life).comm or ""
            together[name] += self._samples[one]
            if name not in chief or self._samples[one] > self._samples[chief[name]]:
                chief[name] = one
        name, samples = max(together.items(), key=lambda each: each[1], default=("", 0))
        return (chief[name], min(samples, self._known)) if samples >= MOSTLY_SHARE * self._known else None
