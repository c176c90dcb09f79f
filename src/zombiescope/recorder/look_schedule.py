"""When to look at what is suspicious: soon if it is new, ever more rarely while it lasts, hardly if it is usual here.

Every suspicion has a name ("core 3", "unit kubelet.service"), a schedule of its own and an end of its own: a unit that
is in the kernel all day keeps nobody from looking at the core that is lost in the afternoon. One look covers whatever
is suspicious at that moment.

* It is looked at 3 s after it arose, then 7, 20, 60, 300, 600 ... s after the last look, while there is news of it.
* What was looked at is known. When it comes again within the minute (two, five, ten minutes, the more often it does)
  it is looked at only if it lasts longer than it used to. A core that is held for 6 s is always looked at.
* A kind that turned out to be nothing is known likewise: on a node where a container is started every second, each of
  them is a new name.
* What takes a CPU more than when it was last looked at is looked at again.
* A weak suspicion (half a CPU in the kernel, a full core), which many healthy nodes have, is looked at once in ten
  minutes, and all of them together once a minute, and more rarely when they turn out to be nothing.
* It ends when there was nothing of it for 12 s: with a last look, if an incident is open or something is not seen yet.

Looks cost CPU time. Those that can wait (later looks at the same thing) wait until they are within 0.3% of one core;
those that cannot are at least 3 s apart, and 5 s once that is spent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

# --- budget -----------------------------------------------------------------------------------------------------------
# What looks may cost: 0.3% of one core for those that can wait, so that a healthy hour stays below 0.5%.

RATIO = 0.003
MOST_US = 4_000_000
"""CPU time that is saved up for a node on which nothing was looked at for long."""
GAP_US = 3_000_000
SPENT_GAP_US = 5_000_000


@dataclass(slots=True)
class LookBudget:
    left_us: float = MOST_US
    _last_us: int | None = None

    def second(self, now_us: int) -> None:
        """Time passes; a clock that was set back gives nothing."""
        if self._last_us is not None:
            self.left_us = min(MOST_US, self.left_us + RATIO * max(0, now_us - self._last_us))
        self._last_us = now_us

    def spend(self, cpu_us: int) -> None:
        self.left_us = max(-MOST_US, self.left_us - cpu_us)

    @property
    def allows(self) -> bool:
        """Whether a look may be taken that could wait."""
        return self.left_us > 0

    @property
    def gap_us(self) -> int:
        """Between any two looks, those that cannot wait included."""
        return GAP_US if self.left_us > 0 else SPENT_GAP_US


# --- look schedule ----------------------------------------------------------------------------------------------------

Kept = TypeVar("Kept")

FIRST_LOOK_US = 3_000_000
LOOKS_US = (7_000_000, 20_000_000, 60_000_000, 300_000_000, 600_000_000)
OVER_US = 12_000_000
KNOWN_US = (60_000_000, 120_000_000, 300_000_000, 600_000_000)
USUAL_MOST_US = 4_000_000
LONGER = 1.5
WORK_MOST_US = 60_000_000
WORK = frozenset({"unit", "node", "calls", "quota", "crowd"})
"""Of these, a name may work for long and be known for it: what goes wrong beside it takes more, or takes a core."""
MORE_CPUS = 0.9
MORE_FOR = 3
MOST = 256
"""Of names and of kinds; whoever makes up names makes us forget, not grow."""
WEAK_US = 60_000_000
WEAK_MOST_US = 600_000_000


@dataclass(frozen=True, slots=True)
class LookAnswer:
    cpu_us: int
    new: int = 0
    """Incidents that nobody knew before."""
    still_open: int = 0
    serious: int = 0
    """Of the open ones, those that are a warning or worse."""


@dataclass(slots=True)
class Habit:
    """What is known of a name, or of a kind, from looks at it."""

    run_us: int = 0
    level: float = 0.0
    times: int = 0
    until_us: int = 0

    def learn(self, now_us: int, each: Suspicion, most_us: int) -> None:
        self.run_us = max(self.run_us, min(each.run_us, most_us))
        self.level = max(self.level, each.known_level)
        self.until_us = now_us + (KNOWN_US[-1] if each.weak else KNOWN_US[min(self.times, len(KNOWN_US) - 1)])
        self.times += 1


@dataclass(slots=True)
class Suspicion:
    """From its first second to 12 s after its last."""

    kind: str
    weak: bool
    since_us: int
    run_since_us: int
    """Where the seconds in a row began, of which the last is the last one."""
    last_us: int
    last_turn: int
    next_us: int
    peak: float = 0.0
    """CPUs, in its worst second."""
    known_level: float = 0.0
    looks: int = 0
    looked_us: int = 0
    run_looked: bool = False
    more: int = 0
    """Seconds in a row with a CPU more than was looked at."""

    @property
    def run_us(self) -> int:
        return self.last_us - self.run_since_us

    def again(self, now_us: int, turn: int, level: float) -> None:
        if turn - self.last_turn > 1:
            self.run_since_us, self.run_looked = now_us, False
        self.last_us, self.last_turn = now_us, turn
        self.peak = max(self.peak, level)
        self.more = self.more + 1 if level >= self.known_level + MORE_CPUS else 0


@dataclass(slots=True)
class LookSchedule:
    """suspect() whenever something is suspicious, due() once a second, answered() when a look is over."""

    budget: LookBudget = field(default_factory=LookBudget)
    alive: dict[str, Suspicion] = field(default_factory=dict)
    _names: dict[str, Habit] = field(default_factory=dict)
    _kinds: dict[str, Habit] = field(default_factory=dict)
    _looked_at: list[Suspicion] = field(default_factory=list)
    _turn: int = 0
    """Grows with each due(): what is suspicious in two turns in a row lasts, however late they come."""
    _last_look_us: int = 0
    _weak_us: int = 0
    _weak_gap_us: int = WEAK_US
    _open: int = 1
    """Incidents that go on, as far as is known: as long as nobody answered, there may be one."""
    _serious: int = 1

    @property
    def since_us(self) -> int | None:
        """When the oldest suspicion that is alive began."""
        return min((each.since_us for each in self.alive.values()), default=None)

    def suspect(self, now_us: int, name: str, level: float = 0.0, *, weak: bool = False) -> None:
        each = self.alive.get(name)
        if each is not None:
            each.again(now_us, self._turn, level)
            each.weak = each.weak and weak
            return
        _forget_one(self.alive, lambda one: one.last_us)
        habit = self._names.get(name)
        known_level = level if habit is None else habit.level
        kind = name.partition(" ")[0]
        first_us = now_us + FIRST_LOOK_US
        self.alive[name] = Suspicion(kind, weak, now_us, now_us, now_us, self._turn, first_us, level, known_level)

    # --- whether to look --------------------------------------------------------------------------------------------

    def due(self, now_us: int) -> int | None:
        """Since when there is something to look at now; None when there is nothing."""
        self.budget.second(now_us)
        over = [name for name, each in self.alive.items() if now_us - each.last_us >= OVER_US]
        ended = [self.alive.pop(name) for name in over]
        wanted = [each for each in ended if self._wants_a_last_look(each)]
        wanted += [each for name, each in self.alive.items() if self._wants(name, each, now_us)]
        self._turn += 1
        if not wanted or now_us - self._last_look_us < self.budget.gap_us:
            self._keep_for_later(over, ended, wanted)
            return None
        self._looked(now_us, wanted)
        return min(each.since_us for each in wanted)

    def _lasts(self, each: Suspicion) -> bool:
        return self._turn - each.last_turn <= 1

    def _keep_for_later(self, names: list[str], ended: list[Suspicion], wanted: list[Suspicion]) -> None:
        """A last look that comes too soon after another one is not lost."""
        for name, each in zip(names, ended, strict=True):
            if any(each is one for one in wanted):
                self.alive[name] = each

    def _wants_a_last_look(self, each: Suspicion) -> bool:
        """If an incident may be over, or not all of it was seen."""
        if not each.looks:
            return False
        unseen = each.last_us > each.looked_us and not each.weak
        return bool(self._serious) or (self.budget.allows and bool(self._open or unseen))

    def _wants(self, name: str, each: Suspicion, now_us: int) -> bool:
        if each.weak:
            return self._wants_weakly(name, each, now_us)
        if each.more >= MORE_FOR and self._lasts(each):
            return True
        if self._lasts_longer_than_usual(name, each, now_us):
            return True
        if not each.looks:
            return now_us >= each.next_us and self._is_new(name, each, now_us)
        news = now_us >= each.next_us and each.last_us > each.looked_us
        return news and (each.looks == 1 or self.budget.allows)

    def _lasts_longer_than_usual(self, name: str, each: Suspicion, now_us: int) -> bool:
        if each.run_looked or not self._lasts(each):
            return False
        usual_us = max((habit.run_us for habit in self._known(name, each.kind, now_us)), default=0)
        return each.run_us >= max(FIRST_LOOK_US, round(LONGER * usual_us))

    def _is_new(self, name: str, each: Suspicion, now_us: int) -> bool:
        """Not known; or an event, of which each may be about something else."""
        if not any(self._known(name, each.kind, now_us)):
            heard = self._kinds.get(each.kind)
            return heard is None or self.budget.allows
        return each.kind == "event" and self.budget.allows

    def _wants_weakly(self, name: str, each: Suspicion, now_us: int) -> bool:
        if now_us < max(each.next_us, self._weak_us) or not self.budget.allows:
            return False
        habit = self._names.get(name)
        if each.looks:
            return each.last_us > each.looked_us
        return habit is None or now_us >= habit.until_us

    def _known(self, name: str, kind: str, now_us: int) -> Iterator[Habit]:
        for habit in (self._names.get(name), self._kinds.get(kind)):
            if habit is not None and now_us < habit.until_us:
                yield habit

    # --- after a look -----------------------------------------------------------------------------------------------

    def _looked(self, now_us: int, wanted: list[Suspicion]) -> None:
        self._last_look_us = now_us
        self._looked_at = wanted
        if all(each.weak for each in wanted):
            self._weak_us = now_us + self._weak_gap_us
        for name, each in self.alive.items():
            asked = any(each is one for one in wanted)
            if asked or now_us - each.since_us >= FIRST_LOOK_US:
                self._mark(name, each, now_us, asked=asked)

    def _mark(self, name: str, each: Suspicion, now_us: int, *, asked: bool) -> None:
        if asked and self._lasts_longer_than_usual(name, each, now_us):
            each.looks = 0  # not what it was before: looked at as something new
        pause_us = LOOKS_US[min(each.looks, len(LOOKS_US) - 1)]
        if asked or each.next_us <= now_us + pause_us // 2:
            each.next_us = now_us + pause_us
            each.looks += 1
        each.looked_us, each.more = now_us, 0
        each.run_looked = each.run_looked or each.run_us >= FIRST_LOOK_US
        each.known_level = max(each.known_level, each.peak)
        if name not in self._names:
            _forget_one(self._names, lambda habit: habit.until_us)
        most_us = WORK_MOST_US if each.kind in WORK else USUAL_MOST_US
        self._names.setdefault(name, Habit()).learn(now_us, each, most_us)

    def answered(self, now_us: int, answer: LookAnswer) -> None:
        """What the last look cost and found. While a serious incident goes on, no kind is nothing."""
        self.budget.spend(answer.cpu_us)
        self._open, self._serious = answer.still_open, answer.serious
        looked_at, self._looked_at = self._looked_at, []
        if looked_at and all(each.weak for each in looked_at):
            self._weak_gap_us = WEAK_US if answer.new else min(2 * self._weak_gap_us, WEAK_MOST_US)
        if answer.new or answer.serious:
            return
        for each in looked_at:
            if not each.weak:
                self._kinds.setdefault(each.kind, Habit()).learn(now_us, each, USUAL_MOST_US)

    def unseen(self) -> int | None:
        """Since when there is something that no look has seen."""
        return min((each.since_us for each in self.alive.values() if each.last_us > each.looked_us), default=None)


def _forget_one(kept: dict[str, Kept], age: Callable[[Kept], int]) -> None:
    """Makes room for one more."""
    if len(kept) >= MOST:
        del kept[min(kept, key=lambda name: age(kept[name]))]
