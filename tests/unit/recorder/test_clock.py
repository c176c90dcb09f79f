"""Wall time for monotonic stamps, and what a set clock does to it."""

from __future__ import annotations

import time

import pytest

from zombiescope.recorder import clock
from zombiescope.recorder.clock import WallClock


def test_wall_time_is_the_clock_on_the_wall() -> None:
    here = WallClock()
    before_us = time.time_ns() // 1000
    now_us = here.now_us()
    assert before_us - 1_000 <= now_us <= time.time_ns() // 1000 + 1_000  # two clocks, read one after the other
    assert not here.stepped()
    assert here.adopt() is None


def test_a_step_is_told_once_and_earlier_stamps_keep_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # A mock: only root may set the clock, and nobody should for a test. The real thing runs under libfaketime.
    here = WallClock()
    stamp = time.monotonic_ns()
    before = here.wall_us(stamp)
    real = clock.read_offset_ns
    monkeypatch.setattr(clock, "read_offset_ns", lambda: real() + 3_600_000_000_000)
    assert here.stepped()
    assert here.wall_us(stamp) == before
    step = here.adopt()
    assert step is not None
    assert step.seconds == pytest.approx(3600, abs=0.1)
    assert here.adopt() is None
    assert here.wall_us(stamp) - before == pytest.approx(3_600_000_000, abs=100_000)


def test_what_was_slept_is_age_and_what_was_set_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention counts from the earliest that it may be: a machine that slept for a day is a day older."""
    here, hour = WallClock(), 3_600_000_000_000
    offset, slept = clock.read_offset_ns, clock.read_slept_ns
    monkeypatch.setattr(clock, "read_offset_ns", lambda: offset() + 3 * hour)
    monkeypatch.setattr(clock, "read_slept_ns", lambda: slept() + 2 * hour)
    step = here.adopt()
    assert step is not None
    assert step.seconds == pytest.approx(3600, abs=0.1)
    assert step.slept_us == pytest.approx(7_200_000_000, abs=100_000)
    now = here.now_us()
    assert now - here.certain_us(now) == pytest.approx(3_600_000_000, abs=100_000)
