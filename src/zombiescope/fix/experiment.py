"""A randomised experiment: is it this suspect? It is frozen for a fraction of a second, again and again, by chance.

    baseline   how much of the incident's own measure comes in short periods while nothing is frozen
    power      would BLOCKS_MOST pairs of periods convict a culprit without whom it stops? If not, the experiment is
               refused, with the number of periods that it would take
    blocks     each has two periods, one with the suspect frozen and one without, in an order that is drawn; between
               periods there is a pause of random length
    p-value    exact: of all ways in which the orders could have fallen, the share that differs as much or more. An
               innocent suspect is convicted in SURE of the experiments at most, whatever the measure does by itself

A suspect is convicted where the difference is no chance and is most of the measure (GONE); a smaller one contributes.
The suspect goes on whatever happens to us: a switch outside this process (dead_man.py) has it before each freeze, and
lets it go after FREEZE_LIMIT_S even if we only hang. No freeze is longer than PERIODS_S[-1] by our own doing."""

from __future__ import annotations

import errno
import random
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean
from typing import Any, Literal, NamedTuple, Protocol

from zombiescope.fix import freezer
from zombiescope.fix.dead_man import DeadMan
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.step import ActionFailedError

Word = Literal["stopped", "contributes", "went-on", "unknown"]

BLOCKS_LEAST, BLOCKS_MOST = 8, 20
PERIODS_S = (0.1, 0.2, 0.3)
PAUSE_S = (0.1, 0.3)
"""Shortest and longest: what was held back by a freeze comes in it, and not in the next period."""
BASELINE_PERIODS = 60
"""Of the shortest; longer ones are made of them."""
SURE = 0.01
GONE = 0.5
"""Of the measure: what a culprit takes away at least."""
LEFT = 0.1
"""Of the measure, that is expected while a culprit is frozen: what the power is computed for."""
POWER = 0.9
DRAWS = 400
MOST_PERIODS = 100_000
FREEZE_S, FREEZE_LIMIT_S = 0.5, 1.0
"""How long the kernel may take to freeze it; after which time the switch lets it go."""
LOST_MOST = 0.5
"""Of the blocks: those in which it was not there, or did not stay frozen."""


class Measure(Protocol):
    """What the incident is about, so that it can be told for a fraction of a second."""

    @property
    def what(self) -> str:
        """As in "waiting time for core 3"."""

    @property
    def unit(self) -> str: ...

    @property
    def grows(self) -> bool:
        """Whether there is more of it without the culprit (training steps), and not less."""

    def __enter__(self) -> Measure: ...

    def __exit__(self, *_: object) -> None: ...

    def read(self) -> Any:
        """Where it stands at this moment."""

    def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
        """How much there was between two readings each; None where that was not seen. Asked for once or twice."""


@dataclass(frozen=True, slots=True)
class Design:
    blocks: int
    period_s: float
    power: float
    """The chance that a culprit is convicted."""


class UndecidableError(ActionFailedError):
    """No experiment of this size can tell. `periods`: how many freezes it would take; None: more than anybody has."""

    def __init__(self, what: str, periods: int | None) -> None:
        super().__init__(what)
        self.periods = periods


@dataclass(frozen=True, slots=True)
class Answer:
    word: Word
    text: str
    design: Design
    p_value: float
    gone: float | None
    """Share of the measure that went away with the suspect; below 0 where there was more."""
    blocks: tuple[tuple[float, float], ...]
    """Amounts per second (with the suspect running, with it frozen)."""
    what: str
    unit: str

    def document(self) -> dict[str, Any]:
        return {
            "verdict": self.word, "text": self.text, "p_value": self.p_value, "gone": self.gone,
            "power": self.design.power, "period_s": self.design.period_s, "measure": self.what, "unit": self.unit,
            "blocks": [{"running": running, "frozen": frozen} for running, frozen in self.blocks],
        }  # fmt: skip


# --- the statistics --------------------------------------------------------------------------------------------------


def p_value(differences: Sequence[float]) -> float:
    """Of one difference a block, (more while it ran): the share of all 2^n ways to draw the orders in which their sum
    is as large. Exact: the sums of two halves are put together."""
    half = len(differences) // 2
    first, second = (_signed_sums(part) for part in (differences[:half], differences[half:]))
    slack = 1e-9 * sum(map(abs, differences))  # sums of the same numbers in another order
    seen = sum(differences) - slack
    second.sort()
    as_large = sum(len(second) - bisect_left(second, seen - one) for one in first)
    return as_large / (len(first) * len(second))


def _signed_sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [one + sign for one in sums for sign in (value, -value)]
    return sums


def power(baseline: Sequence[float], blocks: int, chance: random.Random, *, grows: bool = False) -> float:
    """How often a culprit is convicted, drawn from how the measure varied by itself."""
    convicted = 0
    for _ in range(DRAWS):
        pairs = [(chance.choice(baseline), LEFT * chance.choice(baseline)) for _ in range(blocks)]
        if grows:  # what is starved now is what is left of it: without the culprit there is as much again, or more
            pairs = [(running, 2 * chance.choice(baseline)) for running, _ in pairs]
        word = _word(pairs, grows=grows)[0]
        convicted += word == "stopped"
    return convicted / DRAWS


def design(baseline: Sequence[float], chance: random.Random, *, what: str = "it", grows: bool = False) -> Design:
    """The smallest experiment that is likely to convict a culprit. `baseline`: amounts of consecutive periods of
    PERIODS_S[0]. Raises UndecidableError."""
    found: Design | None = None
    for period_s in PERIODS_S:
        amounts = _joined(baseline, round(period_s / PERIODS_S[0]))
        for blocks in range(BLOCKS_LEAST, BLOCKS_MOST + 1, 2):
            likely = power(amounts, blocks, chance, grows=grows)
            if likely >= POWER and (found is None or blocks * period_s < found.blocks * found.period_s):
                found = Design(blocks, period_s, likely)
                break
    if found is None:
        raise _undecidable(_joined(baseline, round(PERIODS_S[-1] / PERIODS_S[0])), what)
    return found


def _joined(amounts: Sequence[float], count: int) -> list[float]:
    return [sum(amounts[at : at + count]) for at in range(0, len(amounts) - count + 1, count)]


def _undecidable(amounts: Sequence[float], what: str) -> UndecidableError:
    """How many freezes of the longest kind it would take: by the normal approximation of the same test."""
    mean = fmean(amounts)
    most = f"{BLOCKS_MOST} freezes of {PERIODS_S[-1] * 1000:.0f} ms cannot decide"
    if mean <= 0:
        return UndecidableError(f"{most}: there was none of {what} in {len(amounts)} periods without a freeze", None)
    variance = fmean([(one - mean) ** 2 for one in amounts]) * (1 + LEFT * LEFT)
    needed = round((2.33 + 1.29) ** 2 * variance / ((1 - LEFT) * mean) ** 2) + 1
    needed = max(needed, BLOCKS_MOST + 1)
    if needed > MOST_PERIODS:
        return UndecidableError(f"{most}: {what} varies too much by itself", None)
    hours = needed * (2 * PERIODS_S[-1] + 2 * fmean(PAUSE_S)) / 3600
    lasts = f"{hours:.1f} hours" if hours >= 1 else f"{max(2, round(hours * 60))} minutes"
    return UndecidableError(
        f"{most}: {what} comes too slowly; it would take about {needed:,} freezes, which is {lasts}", needed
    )


def judge(pairs: Sequence[tuple[float, float]], how: Design, measure: Measure) -> Answer:
    """Of (running, frozen) in each block."""
    word, chance, gone = _word(pairs, grows=measure.grows)
    times = f"{len(pairs)} freezes of {how.period_s * 1000:.0f} ms"
    share = "" if gone is None else f"{abs(gone) * 100:.0f}%"
    less = "more" if measure.grows else "less" if measure.unit == "s" else "fewer"
    texts: dict[Word, str] = {
        "stopped": f"it is the culprit: {share} {less} {measure.what} while it was frozen, in {times}",
        "contributes": f"it is not the culprit alone: {share} {less} {measure.what} while it was frozen, in {times}",
        "went-on": f"it is not the culprit: {measure.what} stayed while it was frozen, in {times}",
        "unknown": f"not known: {measure.what} varied too much in {times}",
    }
    text = f"{texts[word]} (p = {chance:.2g})"
    rounded = tuple((round(running, 6), round(frozen, 6)) for running, frozen in pairs)
    return Answer(
        word, text, how, chance, None if gone is None else round(gone, 4), rounded, measure.what, measure.unit
    )


def _word(pairs: Sequence[tuple[float, float]], *, grows: bool) -> tuple[Word, float, float | None]:
    sign = -1 if grows else 1
    chance = p_value([sign * (running - frozen) for running, frozen in pairs])
    running, frozen = (sum(each) for each in zip(*pairs, strict=True))
    if running <= 0:
        return "unknown", chance, None
    gone = sign * (running - frozen) / running
    if chance <= SURE:
        return ("stopped" if gone >= GONE else "contributes"), chance, gone
    # The same test, the other way round: would a culprit have left so much of it?
    if not grows and p_value([left - (1 - GONE) * usual for usual, left in pairs]) <= SURE:
        return "went-on", chance, gone
    if grows and p_value([(1 + GONE) * usual - more for usual, more in pairs]) <= SURE:
        return "went-on", chance, gone
    return "unknown", chance, gone


# --- doing it --------------------------------------------------------------------------------------------------------

Wait = Callable[[float], None]


class _Span(NamedTuple):
    """A period: the measure's readings at both ends, and when they were taken."""

    first: Any
    from_s: float
    last: Any
    to_s: float


@dataclass(slots=True)
class Experiment:
    """With one suspect. `wait`: sleeps; `chance`: draws the orders and the pauses."""

    frozen: Frozen
    measure: Measure
    chance: random.Random = field(default_factory=random.SystemRandom)
    wait: Wait = time.sleep
    clock: Callable[[], float] = time.monotonic
    lost: int = 0
    """Blocks in which the suspect was not there, or did not stay frozen."""

    def run(self, tell: Callable[[Design], None] = lambda _: None) -> Answer:
        """Raises ActionFailedError; what was frozen goes on then, too."""
        if freezer.holds_us(self.frozen):
            raise ActionFailedError("it carries the session that this runs in, and would freeze with it")
        with self.measure:
            planning = random.Random(0)  # noqa: S311  how it is planned is no secret, and the same twice
            how = design(self._baseline(), planning, what=self.measure.what, grows=self.measure.grows)
            tell(how)
            pairs = self._blocks(how)
        return judge(pairs, how, self.measure)

    def _baseline(self) -> list[float]:
        readings = [self._read()]
        for _ in range(BASELINE_PERIODS):
            self.wait(PERIODS_S[0])
            readings.append(self._read())
        found = self._rates([_Span(*first, *last) for first, last in pairwise(readings)])
        known = [one for one in found if one is not None]
        if len(known) < BASELINE_PERIODS // 2:
            raise ActionFailedError(f"{self.measure.what} cannot be measured now")
        return known

    def _blocks(self, how: Design) -> list[tuple[float, float]]:
        """(running, frozen) of each block that held."""
        longest_s = 2 * how.blocks * (how.period_s + PAUSE_S[1] + FREEZE_S) / LOST_MOST + 10
        spans: list[tuple[_Span, _Span]] = []
        with DeadMan(longest_s) as switch:
            while len(spans) < how.blocks:
                made = self._block(how, switch)
                if made is None:
                    self.lost += 1
                    if self.lost > LOST_MOST * how.blocks:
                        raise ActionFailedError("it was not there, or did not stay frozen, in too many of the periods")
                else:
                    spans.append(made)
        running = self._rates([one for one, _ in spans])
        frozen = self._rates([other for _, other in spans])
        pairs = [(a, b) for a, b in zip(running, frozen, strict=True) if a is not None and b is not None]
        if len(pairs) < BLOCKS_LEAST:
            raise ActionFailedError(f"{self.measure.what} was measured in {len(pairs)} of {how.blocks} blocks only")
        return pairs

    def _read(self) -> tuple[Any, float]:
        return self.measure.read(), self.clock()

    def _rates(self, spans: Sequence[_Span]) -> list[float | None]:
        """Amounts per second: on a loaded machine we are late, and no period is as long as another."""
        amounts = self.measure.amounts([(span.first, span.last) for span in spans])
        return [
            None if amount is None else amount / max(1e-6, span.to_s - span.from_s)
            for amount, span in zip(amounts, spans, strict=True)
        ]

    def _block(self, how: Design, switch: DeadMan) -> tuple[_Span, _Span] | None:
        found: dict[bool, _Span | None] = {}
        for is_frozen in self.chance.sample((False, True), 2):
            self.wait(self.chance.uniform(*PAUSE_S))
            found[is_frozen] = self._frozen_period(how, switch) if is_frozen else self._period(how)
        running, frozen = found[False], found[True]
        return None if running is None or frozen is None else (running, frozen)

    def _period(self, how: Design) -> _Span:
        first = self._read()
        self.wait(how.period_s)
        return _Span(*first, *self._read())

    def _frozen_period(self, how: Design, switch: DeadMan) -> _Span | None:
        """None where it was not there, or did not stay frozen."""
        if not switch.is_alive:
            raise ActionFailedError("the dead man's switch was ended, so nothing more is frozen")
        now = self.frozen
        try:
            now = freezer.freeze(self.frozen, lambda one: switch.arm(one, FREEZE_LIMIT_S), FREEZE_S)
            span = self._period(how)
            held = freezer.is_frozen(now)
        except TimeoutError as error:
            raise ActionFailedError(f"{error}: a task of it waits in the kernel") from error
        except RuntimeError as error:
            raise ActionFailedError(str(error)) from error
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):
                raise ActionFailedError(f"it could not be frozen, and continues: {error}") from error
            return None
        finally:
            with suppress(OSError):
                freezer.thaw(now)
            switch.disarm()
        return span if held else None


def expected_s(how: Design) -> float:
    """How long the blocks take, about."""
    return 2 * how.blocks * (how.period_s + fmean(PAUSE_S))
