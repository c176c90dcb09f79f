"""Who is convicted by an experiment, how rarely an innocent one is, and when it is refused: by thousands of draws."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest

from zombiescope.fix import experiment, freezer
from zombiescope.fix.experiment import (
    BASELINE_PERIODS,
    BLOCKS_LEAST,
    BLOCKS_MOST,
    LEFT,
    PERIODS_S,
    POWER,
    SURE,
    Design,
    Experiment,
    UndecidableError,
    design,
    judge,
    p_value,
)
from zombiescope.fix.freezer import Frozen
from zombiescope.fix.step import ActionFailedError

HOW = Design(12, 0.2, 0.95)


@dataclass
class Waits:
    """A measure that is not asked."""

    what: str = "waiting time for core 3"
    unit: str = "s"
    grows: bool = False
    found: list[float | None] = field(default_factory=list)

    def __enter__(self) -> Waits:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self) -> Any:
        return None

    def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
        return [self.found.pop(0) for _ in spans]


# --- the p-value -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 5, 9, 10])
def test_the_p_value_is_the_share_of_all_orders_that_differ_as_much(count: int) -> None:
    chance = random.Random(count)
    values = [round(chance.gauss(0.3, 1), 3) for _ in range(count)]
    sums = [
        sum(sign * value for sign, value in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=count)
    ]
    expected = sum(one >= sum(values) - 1e-9 for one in sums) / len(sums)
    assert p_value(values) == pytest.approx(expected)


def test_where_it_always_falls_the_p_value_is_the_least_that_there_is() -> None:
    assert p_value([1.0] * 8) == 1 / 256
    assert p_value([0.1, 0.2, 0.3] * 6 + [1, 2]) == 1 / 2**20


def test_where_nothing_was_seen_nothing_is_sure() -> None:
    assert p_value([0.0] * 12) == 1.0
    assert judge([(0.0, 0.0)] * 12, HOW, Waits()).word == "unknown"


# --- innocent suspects -----------------------------------------------------------------------------------------------

Noise = Callable[[random.Random], Callable[[], float]]


def even(chance: random.Random) -> Callable[[], float]:
    return lambda: max(0.0, chance.gauss(1.0, 0.3))


def bursts(chance: random.Random) -> Callable[[], float]:
    """Mostly nothing, now and then a lot."""
    return lambda: 10.0 if chance.random() < 0.3 else 0.0


def drift(chance: random.Random) -> Callable[[], float]:
    """It goes up and down over many periods."""
    state = [5.0]

    def step() -> float:
        state[0] = max(0.0, state[0] + chance.gauss(0, 1))
        return state[0]

    return step


def rises(chance: random.Random) -> Callable[[], float]:
    """Each period has more than the one before."""
    count = itertools.count(1)
    return lambda: next(count) + chance.random()


@pytest.mark.parametrize("noise", [even, bursts, drift, rises])
@pytest.mark.parametrize("blocks", [BLOCKS_LEAST, 12, BLOCKS_MOST])
def test_an_innocent_suspect_is_convicted_in_one_of_a_hundred_experiments_at_most(noise: Noise, blocks: int) -> None:
    chance = random.Random(37)
    trials, convicted = 1000, 0
    for _ in range(trials):
        amount = noise(chance)
        pairs = []
        for _ in range(blocks):
            first, second = amount(), amount()
            pairs.append((first, second) if chance.random() < 0.5 else (second, first))
        convicted += judge(pairs, HOW, Waits()).word in ("stopped", "contributes")
    # 3 standard deviations above what the test allows
    assert convicted <= trials * SURE + 3 * (trials * SURE * (1 - SURE)) ** 0.5


def test_one_who_takes_a_part_away_contributes_and_is_no_culprit() -> None:
    chance = random.Random(1)
    pairs = [(1 + chance.random() / 10, 0.7 + chance.random() / 10) for _ in range(16)]
    assert judge(pairs, HOW, Waits()).word == "contributes"


def test_one_without_whom_it_goes_on_is_cleared() -> None:
    chance = random.Random(1)
    pairs = [(1 + chance.random() / 10, 1 + chance.random() / 10) for _ in range(12)]
    answer = judge(pairs, HOW, Waits())
    assert answer.word == "went-on"
    assert "it is not the culprit" in answer.text


def test_where_there_is_more_without_the_culprit_that_convicts_it() -> None:
    pairs = [(1.0, 3.0), (1.2, 3.1)] * 5
    assert judge(pairs, HOW, Waits("training steps", "steps", grows=True)).word == "stopped"
    assert judge(pairs, HOW, Waits()).word != "stopped"


def test_the_answer_has_its_p_value_and_what_was_seen() -> None:
    answer = judge([(1.0, 0.0)] * 8, Design(8, 0.1, 0.99), Waits())
    assert answer.p_value == 1 / 256
    assert "p = 0.0039" in answer.text
    assert answer.document()["blocks"][0] == {"running": 1.0, "frozen": 0.0}
    assert (answer.word, answer.gone) == ("stopped", 1.0)


# --- the power -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [even, bursts, drift])
def test_an_experiment_that_is_not_refused_convicts_the_culprit_as_often_as_it_says(noise: Noise) -> None:
    chance = random.Random(5)
    amount = noise(chance)
    baseline = [amount() for _ in range(BASELINE_PERIODS)]
    how = design(baseline, random.Random(0))
    assert BLOCKS_LEAST <= how.blocks <= BLOCKS_MOST
    assert how.period_s in PERIODS_S
    length = round(how.period_s / PERIODS_S[0])
    amounts = [sum(baseline[at : at + length]) for at in range(0, len(baseline) - length + 1, length)]
    trials = 300
    convicted = sum(
        judge([(chance.choice(amounts), LEFT * chance.choice(amounts)) for _ in range(how.blocks)], how, Waits()).word
        == "stopped"
        for _ in range(trials)
    )
    assert convicted >= trials * POWER * 0.93


def test_a_slow_leak_is_refused_with_how_many_freezes_it_would_take() -> None:
    chance = random.Random(3)
    slow = [1.0 if chance.random() < 0.02 else 0.0 for _ in range(BASELINE_PERIODS)]
    slow[7] = 1.0
    with pytest.raises(UndecidableError, match="it would take about") as refused:
        design(slow, random.Random(0), what="cgroups made")
    assert refused.value.periods is not None
    assert refused.value.periods > BLOCKS_MOST


def test_what_was_not_seen_at_all_is_refused() -> None:
    with pytest.raises(UndecidableError, match="there was none of cgroups made") as refused:
        design([0.0] * BASELINE_PERIODS, random.Random(0), what="cgroups made")
    assert refused.value.periods is None


# --- how it goes -----------------------------------------------------------------------------------------------------


class Switch:
    """Stands for the process that thaws."""

    is_alive = True
    told: ClassVar[list[str]] = []

    def __init__(self, _seconds: float) -> None:
        Switch.told = []

    def __enter__(self) -> Switch:
        return self

    def __exit__(self, *_: object) -> None:
        self.told.append("left")

    def arm(self, _frozen: Frozen, limit_s: float | None = None) -> None:
        self.told.append(f"armed for {limit_s}")

    def disarm(self) -> None:
        self.told.append("disarmed")


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens to the suspect, without one."""
    done: list[str] = []

    def freeze(frozen: Frozen, tell: Callable[[Frozen], None], _limit_s: float) -> Frozen:
        tell(frozen)
        done.append("freeze")
        return frozen

    monkeypatch.setattr(experiment, "DeadMan", Switch)
    monkeypatch.setattr(freezer, "holds_us", lambda _: False)
    monkeypatch.setattr(freezer, "freeze", freeze)
    monkeypatch.setattr(freezer, "thaw", lambda _: done.append("thaw"))
    monkeypatch.setattr(freezer, "is_frozen", lambda _: True)
    return done


def running(measure: Waits, waited: list[float] | None = None, late: float = 1.0) -> Experiment:
    """`late`: how much longer than asked a wait takes, on the average."""
    waits, chance, now = [] if waited is None else waited, random.Random(4), [0.0]

    def wait(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds * (1 if late == 1.0 else chance.uniform(1, 2 * late - 1))

    return Experiment(Frozen("freeze", "/x"), measure, random.Random(2), wait, lambda: now[0])


def test_on_a_loaded_machine_where_periods_are_of_any_length_amounts_are_compared_by_the_second(
    stage: list[str],
) -> None:
    """An amount grows with the time that we were late; taken as it is, an innocent one would be convicted by that."""

    class Grows(Waits):
        def read(self) -> Any:
            return made.clock()

        def amounts(self, spans: Sequence[tuple[Any, Any]]) -> list[float | None]:
            return [last - first for first, last in spans]

    made = running(Grows(), late=6.0)
    answer = made.run()
    assert answer.word == "went-on"
    assert {round(one, 6) for pair in answer.blocks for one in pair} == {1.0}
    assert stage


def test_each_freeze_is_armed_before_it_short_and_taken_back(stage: list[str]) -> None:
    waited: list[float] = []
    answer = running(Waits(found=[*[1.0] * BASELINE_PERIODS, *[1.0] * 8, *[0.0] * 8]), waited).run()
    assert answer.word == "stopped"
    assert stage == ["freeze", "thaw"] * 8
    assert Switch.told == [*["armed for 1.0", "disarmed"] * 8, "left"]
    assert max(waited) <= PERIODS_S[-1]


def test_one_that_ends_while_it_is_frozen_costs_a_block_and_too_many_end_the_experiment(
    stage: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(freezer, "is_frozen", lambda _: False)
    with pytest.raises(ActionFailedError, match="did not stay frozen"):
        running(Waits(found=[1.0] * BASELINE_PERIODS)).run()
    assert stage.count("freeze") == stage.count("thaw")


def test_without_its_switch_nothing_more_is_frozen(stage: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Switch, "is_alive", False)
    with pytest.raises(ActionFailedError, match="switch"):
        running(Waits(found=[1.0] * BASELINE_PERIODS)).run()
    assert stage == []


def test_a_refused_experiment_freezes_nobody(stage: list[str]) -> None:
    with pytest.raises(UndecidableError):
        running(Waits(found=[0.0] * BASELINE_PERIODS)).run()
    assert stage == []


def test_what_cannot_be_measured_is_said_before_anybody_is_frozen(stage: list[str]) -> None:
    with pytest.raises(ActionFailedError, match="cannot be measured"):
        running(Waits(found=[None] * BASELINE_PERIODS)).run()
    assert stage == []
