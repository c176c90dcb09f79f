"""Who started whom among the tasks of a recording, although pids are used again.

A storm of forks goes through all pids within seconds, so the parent of a second ago and a `tr` of now have one pid.
What tells them apart is when they were started: a parent was there before its child. Where that was not recorded
(profiles of others), tasks are numbered in the order in which they were first seen, and the order stands for the time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from zombiescope.diagnosis.thresholds import SAME_START_TICKS, SHORT_LIFE_TICKS, SHORT_LIVED_CHILDREN

if TYPE_CHECKING:
    from zombiescope.diagnosis.sample_index import SampledTask

MOST_GENERATIONS = 32
KTHREADD = 2


@dataclass(slots=True, eq=False)
class Life:
    """One process from its start to its end, with all its threads and names; `numbers` are its tasks."""

    pid: int
    start_ticks: int | None
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ancestor:
    pid: int
    life: Life | None
    """None: it was never sampled itself, so nothing but its pid is known."""


class Ancestry:
    def __init__(self, tasks: Mapping[int, SampledTask]) -> None:
        self._tasks = tasks
        self._lives: defaultdict[int, list[Life]] = defaultdict(list)
        self._life_of: dict[int, Life] = {}
        self._lines: dict[int, tuple[Ancestor, ...]] = {}
        self._parents: dict[int, Ancestor | None] = {}
        """By the first task of a life."""
        for number in sorted(tasks):
            self._add(number, tasks[number])

    def _add(self, number: int, task: SampledTask) -> None:
        if task.pid is None:
            return
        lives = self._lives[task.pid]
        life = self._life(lives, task) if lives else None
        if life is None:
            life = Life(task.pid, task.start_ticks)
            lives.append(life)
        life.numbers.append(number)
        self._life_of[number] = life

    def _life(self, lives: Sequence[Life], task: SampledTask) -> Life | None:
        return next((one for one in lives if self._is_same(one, task)), None)

    def _is_same(self, life: Life, task: SampledTask) -> bool:
        if life.start_ticks is not None and task.start_ticks is not None:
            return abs(life.start_ticks - task.start_ticks) <= SAME_START_TICKS
        return life.start_ticks == task.start_ticks and self._tasks[life.numbers[0]].ppid == task.ppid

    def task(self, life: Life) -> SampledTask:
        """Its main thread rather than another, by the name that it had last."""
        return self._tasks[max(life.numbers, key=lambda number: (self._is_main(number), number))]

    def _is_main(self, number: int) -> bool:
        return self._tasks[number].tid == self._tasks[number].pid

    def line(self, number: int) -> tuple[Ancestor, ...]:
        """The process of a task, its parent and so on; neither pid 1 nor the kernel is anybody. One whose own life
        is not known is told by its pid, and the line ends there."""
        life = self._life_of.get(number)
        if life is None or life.pid <= KTHREADD:
            return ()
        first = life.numbers[0]
        if first not in self._lines:
            self._lines[first] = tuple(self._walk(life))
        return self._lines[first]

    def _walk(self, life: Life) -> list[Ancestor]:
        line = [Ancestor(life.pid, life)]
        while len(line) < MOST_GENERATIONS:
            parent = self.parent(life)
            if parent is None or any(parent.life is one.life and parent.pid == one.pid for one in line):
                break
            line.append(parent)
            if parent.life is None:
                break
            life = parent.life
        return line

    def knows_parent(self, number: int) -> bool:
        """Whether it is known who forked it; that may be pid 1 or the kernel."""
        life = self._life_of.get(number)
        return life is not None and bool(self._parent_pid(life))

    def parent(self, life: Life) -> Ancestor | None:
        """Who forked it; neither pid 1 nor the kernel is anybody."""
        first = life.numbers[0]
        if first not in self._parents:
            pid = self._parent_pid(life) or 0
            self._parents[first] = Ancestor(pid, self._alive_before(pid, life)) if pid > KTHREADD else None
        return self._parents[first]

    def _parent_pid(self, life: Life) -> int | None:
        for number in life.numbers:
            task = self._tasks[number]
            if task.ppid and task.tid == task.pid:
                return task.ppid
        return None

    def _alive_before(self, pid: int, child: Life) -> Life | None:
        """The process with this pid that was there when the child was started."""
        lives = [one for one in self._lives.get(pid, ()) if one is not child]
        if not lives:
            return None
        if child.start_ticks is not None:
            latest = child.start_ticks + SAME_START_TICKS
            lives = [one for one in lives if one.start_ticks is None or one.start_ticks <= latest]
            started = [(one.start_ticks, one.numbers[0], one) for one in lives if one.start_ticks is not None]
            if started:
                return max(started, key=lambda each: each[:2])[2]
        earlier = [one for one in lives if one.numbers[0] < child.numbers[0]]
        return earlier[-1] if earlier else lives[0] if lives else None

    def parent_of(self, task: SampledTask) -> SampledTask | None:
        """Who forked the process of a task, if it was ever sampled."""
        life = self._life(self._lives.get(task.pid or 0, ()), task)
        above = None if life is None else self.parent(life)
        return None if above is None or above.life is None else self.task(above.life)

    def lasts(self, life: Life) -> bool | None:
        """Whether it was seen to start others two seconds after its own start, in all that is known and not only in one
        window; None where times were not recorded."""
        if life.start_ticks is None:
            return None
        return self._last_child_ticks.get(id(life), life.start_ticks) - life.start_ticks >= SHORT_LIFE_TICKS

    def is_one_of_many(self, life: Life) -> bool:
        """One of the short-lived processes that its parent starts again and again."""
        if self.lasts(life) is not False:
            return False
        above = self.parent(life)
        return above is not None and self._children[self._kind(life, above)] >= SHORT_LIVED_CHILDREN

    @cached_property
    def _last_child_ticks(self) -> dict[int, int]:
        last: dict[int, int] = {}
        for life in (one for several in self._lives.values() for one in several):
            above = self.parent(life)
            if above is not None and above.life is not None and life.start_ticks is not None:
                last[id(above.life)] = max(life.start_ticks, last.get(id(above.life), 0))
        return last

    @cached_property
    def _children(self) -> Counter[tuple[int, str | None]]:
        """How many processes of one name each parent started."""
        lives = [one for several in self._lives.values() for one in several]
        found = ((one, self.parent(one)) for one in lives)
        return Counter(self._kind(one, above) for one, above in found if above is not None)

    def _kind(self, life: Life, above: Ancestor) -> tuple[int, str | None]:
        return id(above.life) if above.life is not None else above.pid, self.task(life).comm
