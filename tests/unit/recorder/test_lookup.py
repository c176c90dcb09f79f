"""Questions about processes: answered in a thread that may hang or fail, and never at the loop's cost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from zombiescope.kernel import process
from zombiescope.recorder import worker
from zombiescope.recorder.lookup import MAX_QUEUED, AddressQuestion, Lookup, TaskAnswer, TaskQuestion, best_cgroup

DEADLINE_S = 10.0


class StandInSymbols:
    """Names addresses after their process; one that is `held` keeps its asker waiting."""

    def __init__(self) -> None:
        self.held = threading.Event()
        self.held.set()
        self.waiting = threading.Event()
        self.denied: dict[str, int] = {}
        self.forgotten: list[int] = []

    def forget(self, pid: int) -> None:
        self.forgotten.append(pid)

    def resolve_at(self, pid: int, addresses: list[int], _: object) -> list[Any]:
        if pid == 13:
            raise ValueError("an odd file")
        if pid == 99:
            self.waiting.set()
            self.held.wait(DEADLINE_S)
        return [f"{pid}+{address}" for address in addresses]


@pytest.fixture
def symbols() -> StandInSymbols:
    return StandInSymbols()


@pytest.fixture
def lookup(symbols: StandInSymbols) -> Iterator[Lookup]:
    made = Lookup(None, resolver=lambda: symbols)  # type: ignore[arg-type, return-value]
    yield made
    symbols.held.set()
    made.stop()


def question(pid: int, space: int = 1) -> AddressQuestion:
    return AddressQuestion(0, space, pid, [5], None)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.001)


def answers(lookup: Lookup, count: int) -> list[Any]:
    taken: list[Any] = []

    def enough() -> bool:
        taken.extend(lookup.take())
        return len(taken) >= count

    until(enough)
    return [answer.frames for answer in taken]


def test_a_question_that_raises_costs_itself_and_is_reported_once(lookup: Lookup) -> None:
    for pid in (1, 13, 2):
        lookup.ask(question(pid))
    assert answers(lookup, 2) == [["1+5"], ["2+5"]]
    with pytest.raises(ValueError, match="an odd file"):
        lookup.raise_failure()
    lookup.raise_failure()


def test_one_that_hangs_is_left_behind_and_reported_for_as_long_as_it_lasts(
    lookup: Lookup, symbols: StandInSymbols, monkeypatch: pytest.MonkeyPatch
) -> None:
    symbols.held.clear()
    lookup.ask(question(99))
    assert symbols.waiting.wait(DEADLINE_S)
    assert lookup.newly_stuck() is None
    monkeypatch.setattr(worker, "STUCK_S", 0.0)
    assert lookup.newly_stuck() == question(99)
    # THEN another worker answers
    lookup.ask(question(1))
    assert answers(lookup, 1) == [["1+5"]]
    until(lookup.settled)
    # AND it is news only once
    assert lookup.newly_stuck() is None
    # AND the late answer counts
    symbols.held.set()
    assert answers(lookup, 1) == [["99+5"]]


def test_more_questions_than_fit_are_refused(lookup: Lookup, symbols: StandInSymbols) -> None:
    symbols.held.clear()
    lookup.ask(question(99))
    assert symbols.waiting.wait(DEADLINE_S)
    for _ in range(MAX_QUEUED + 7):
        lookup.ask(question(1))
    assert lookup.refused == 7


def test_a_pid_that_runs_another_program_is_asked_anew(lookup: Lookup, symbols: StandInSymbols) -> None:
    for space in (1, 1, 2):
        lookup.ask(question(7, space))
    answers(lookup, 3)
    assert symbols.forgotten == [7]


@pytest.mark.parametrize(
    ("cgroups", "best"),
    [
        ({6: "/job", 1: "/system.slice/a.service"}, "/job"),
        ({6: "/", 1: "/system.slice/a.service"}, "/system.slice/a.service"),
        ({1: "/x"}, "/x"),
        ({}, None),
    ],
)
def test_of_several_hierarchies_the_one_that_says_most(cgroups: dict[int, str], best: str | None) -> None:
    assert best_cgroup(cgroups, 6) == best


def test_another_process_that_has_the_pid_now_is_not_taken_for_the_one_that_was_meant(lookup: Lookup) -> None:
    # GIVEN questions about a process that was forked when this one was, and about one that was forked long before
    own = process.read(os.getpid())
    assert own is not None
    for started in (own.start_time_ticks, own.start_time_ticks - 500, None):
        lookup.ask(TaskQuestion(0, 1, os.getpid(), os.getpid(), "x", 4001, "/hint", started))
    answers: list[TaskAnswer] = []

    def all_came() -> bool:
        answers.extend(answer for answer in lookup.take() if isinstance(answer, TaskAnswer))
        return len(answers) == 3

    until(all_came)
    same, other, unknown = answers
    for answer in (same, unknown):
        assert answer.process is not None
        assert answer.process.start_time_ticks == own.start_time_ticks
    assert (other.process, other.cgroup) == (None, "/hint")


class Panic(BaseException):
    """What a library in Rust raises when it gives up."""


@pytest.mark.parametrize("fault", [ValueError, Panic, SystemExit])
def test_no_number_of_faults_ends_it(fault: type[BaseException]) -> None:
    class Odd(StandInSymbols):
        def resolve_at(self, pid: int, addresses: list[int], _: object) -> list[Any]:
            if pid == 13:
                raise fault("an odd file")
            return [f"{pid}+{address}" for address in addresses]

    lookup = Lookup(None, resolver=Odd)  # type: ignore[arg-type]
    try:
        for _ in range(3 * worker.MAX_STUCK):
            lookup.ask(question(13))
            lookup.ask(question(1))
            assert answers(lookup, 1) == [["1+5"]]
            with pytest.raises((ValueError, RuntimeError), match="an odd file"):
                lookup.raise_failure()
        assert lookup.newly_stuck() is None
    finally:
        lookup.stop()


def test_symbols_that_cannot_be_opened_are_tried_again() -> None:
    tries: list[int] = []

    def resolver() -> StandInSymbols:
        tries.append(1)
        if len(tries) < 4:
            raise OSError("not yet")
        return StandInSymbols()

    lookup = Lookup(None, resolver=resolver)  # type: ignore[arg-type]
    try:
        for pid in range(1, 5):
            lookup.ask(question(pid))
        assert answers(lookup, 1) == [["4+5"]]
    finally:
        lookup.stop()


def test_one_that_came_back_no_longer_counts_as_stuck(
    lookup: Lookup, symbols: StandInSymbols, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five disks that were slow for a moment, over weeks, must not leave it without a thread."""
    for turn in range(2 * worker.MAX_STUCK):
        symbols.held.clear()
        symbols.waiting.clear()
        lookup.ask(question(99))
        assert symbols.waiting.wait(DEADLINE_S)
        with monkeypatch.context() as patch:
            patch.setattr(worker, "STUCK_S", 0.0)
            assert lookup.newly_stuck() == question(99), f"turn {turn}"
        symbols.held.set()
        assert answers(lookup, 1) == [["99+5"]]
        until(lambda: lookup.stuck == 0)
        assert lookup.newly_stuck() is None
        lookup.ask(question(1))
        assert answers(lookup, 1) == [["1+5"]]
