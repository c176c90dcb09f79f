"""The barrier: a source that raises is a gap with its reason, is tried again ever more rarely, and comes back."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import LAST_RETRY_S, MAX_REASON, Barrier, Stage, reason
from zombiescope.recorder.tick import Tick

SECOND_US = 1_000_000


@dataclass
class Bench:
    """A barrier whose clock is turned by hand, and one stage that fails while `broken` says why."""

    broken: Exception | None = None
    now_s: float = 100.0
    sources: Sources = field(default_factory=Sources)
    tries: list[float] = field(default_factory=list)
    forgotten: int = 0

    def __post_init__(self) -> None:
        self.barrier = Barrier(self.sources, lambda: int(self.now_s * 1e6), lambda: self.now_s)
        self.stage = Stage("vmstat (reader)", self.work, self.forget)

    def forget(self) -> None:
        self.forgotten += 1

    def work(self, _: Tick | None = None) -> None:
        self.tries.append(self.now_s)
        if self.broken is not None:
            raise self.broken

    def second(self, *more: Stage) -> None:
        self.barrier.run([self.stage, *more], Tick(0, int(self.now_s * 1e6), SECOND_US))
        self.now_s += 1


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_others_go_on(bench: Bench) -> None:
    bench.broken = ValueError("not a number")
    went_on: list[Tick] = []
    bench.second(Stage("cost", went_on.append))
    assert len(went_on) == 1


def test_it_is_missing_with_its_reason_and_where_it_was_raised(bench: Bench) -> None:
    bench.broken = ValueError("not a number")
    bench.second()
    [missing] = bench.sources.missing
    assert missing.source == "vmstat (reader)"
    assert missing.why.startswith("ValueError: not a number (test_stage.py:")


def test_the_gap_begins_with_the_tick_that_was_lost_and_ends_when_it_works(bench: Bench) -> None:
    bench.second()
    bench.broken = ValueError("not a number")
    bench.second()
    bench.broken = None
    bench.second()
    assert bench.sources.missing == []
    [(from_us, to_us, source, why)] = bench.sources.take_ended()
    assert (from_us, to_us, source) == (100 * SECOND_US, 102 * SECOND_US, "vmstat (reader)")
    assert why.startswith("ValueError")


def test_it_is_tried_again_ever_more_rarely_but_at_least_once_a_minute(bench: Bench) -> None:
    bench.broken = OSError(5, "Input/output error")
    for _ in range(400):
        bench.second()
    steps = [after - before for before, after in zip(bench.tries, bench.tries[1:], strict=False)]
    assert steps[:6] == [1, 2, 4, 8, 16, 32]
    assert set(steps[6:]) == {LAST_RETRY_S}
    # AND it was reported once, and nothing piled up
    assert len(bench.sources.missing) == 1
    assert bench.sources.take_ended() == []


def test_what_it_remembered_is_forgotten_before_it_is_tried_again(bench: Bench) -> None:
    bench.second()
    bench.broken = ValueError("once")
    bench.second()
    assert bench.forgotten == 0
    bench.broken = None
    bench.second()
    bench.second()
    assert bench.forgotten == 1


def test_after_it_worked_a_new_failure_is_a_new_gap_and_tried_soon(bench: Bench) -> None:
    bench.broken = ValueError("first")
    for _ in range(10):
        bench.second()
    bench.broken = None
    for _ in range(8):
        bench.second()
    bench.broken = ValueError("second")
    bench.second()
    bench.tries.clear()
    bench.second()
    assert bench.tries
    assert bench.sources.missing[0].why.startswith("ValueError: second")


def test_a_vital_stage_is_tried_every_time() -> None:
    bench = Bench(ValueError("always"))
    bench.stage = Stage("frames", bench.work, vital=True)
    for _ in range(20):
        bench.second()
    assert len(bench.tries) == 20


@pytest.mark.parametrize("end", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_passes(bench: Bench, end: type[BaseException]) -> None:
    def ends(_: Tick) -> None:
        raise end

    with pytest.raises(end):
        bench.second(Stage("cost", ends))


def test_of_many_records_some_of_which_fail_one_gap_is_made(bench: Bench) -> None:
    for number in range(1000):
        bench.broken = ValueError("odd") if number % 2 else None
        bench.barrier.attempt("tracepoint net:x", bench.work)
    assert len(bench.tries) == 1000
    bench.broken, bench.now_s = None, bench.now_s + 1
    bench.barrier.attempt("tracepoint net:x", bench.work)
    assert [gap[:3] for gap in bench.sources.take_ended()] == [(100 * SECOND_US, 101 * SECOND_US, "tracepoint net:x")]


def test_a_burst_of_failures_counts_as_one(bench: Bench) -> None:
    bench.broken = ValueError("odd")
    for _ in range(1000):
        bench.barrier.attempt("tracepoint net:x", bench.work)
    bench.now_s += 1
    assert bench.barrier.due("tracepoint net:x")


def test_a_reason_can_be_written_whatever_the_message_is() -> None:
    text = reason(ValueError("a\nb \ud83d \x00" + "x" * 5000))
    assert text.isascii()
    assert "\n" not in text
    assert len(text) <= MAX_REASON
    text.encode()
