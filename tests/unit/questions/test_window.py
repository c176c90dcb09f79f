"""Which moments the window options mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from zombiescope.base.errors import QuestionError
from zombiescope.questions.window import Window, WindowQuestion, clock, zone_of


def us(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1e6)


@dataclass
class Recorded:
    """A night in Berlin: 22:00 to 03:00, summer time."""

    node: dict[str, Any] = field(default_factory=lambda: {"timezone": "Europe/Berlin", "interval_s": 1.0})
    start_us: int = us("2026-06-01T22:00:00+02:00")
    end_us: int = us("2026-06-02T03:00:00+02:00")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("02:30:00", "2026-06-02T02:30:00+02:00"),
        ("2:30", "2026-06-02T02:30:00+02:00"),
        ("23:30:00.5", "2026-06-01T23:30:00.5+02:00"),
        ("2026-06-01T23:30:00", "2026-06-01T23:30:00+02:00"),
        ("2026-06-01 23:30:00Z", "2026-06-01T23:30:00+00:00"),
        ("1780351200.25", "2026-06-02T00:00:00.25+02:00"),
        ("@1780351200", "2026-06-02T00:00:00+02:00"),
        ("@1780351200.25", "2026-06-02T00:00:00.25+02:00"),
        ("+30s", "2026-06-01T22:00:30+02:00"),
        ("+1h30m", "2026-06-01T23:30:00+02:00"),
    ],
)
def test_a_moment_is_read_in_every_form(text: str, moment: str) -> None:
    assert WindowQuestion(from_=text).choose(Recorded()).start_us == us(moment)


def test_a_time_of_day_is_on_the_last_day_unless_only_the_day_before_has_it() -> None:
    # GIVEN a recording that ends at three in the morning
    # THEN 23:30 can only be yesterday's, while 21:00 is in neither day and stays on the last
    assert WindowQuestion(from_="23:30").choose(Recorded()).start_us == us("2026-06-01T23:30:00+02:00")
    with pytest.raises(QuestionError, match="is after the recording ends"):
        WindowQuestion(from_="21:00").choose(Recorded())


def test_utc_reads_and_prints_in_utc() -> None:
    window = WindowQuestion(from_="2026-06-01T21:00:00", utc=True).choose(Recorded())
    assert window.start_us == us("2026-06-01T21:00:00+00:00")
    assert window.zone is UTC


def test_without_options_the_window_is_the_whole_recording_and_its_last_row() -> None:
    recorded = Recorded()
    window = WindowQuestion().choose(recorded)
    assert (window.start_us, window.end_us) == (recorded.start_us, recorded.end_us + 1)


def test_last_counts_from_the_end_and_from_to_where_both_are_given() -> None:
    recorded = Recorded()
    assert WindowQuestion(last="5m").choose(recorded).start_us == recorded.end_us + 1 - 300_000_000
    window = WindowQuestion(last="5m", to="02:00").choose(recorded)
    assert (window.start_us, window.end_us) == (
        us("2026-06-02T01:55:00+02:00"),
        us("2026-06-02T02:00:00+02:00"),
    )


@pytest.mark.parametrize(("interval_s", "width_us"), [(0.1, 1_000_000), (1.0, 1_000_000), (10.0, 10_000_000)])
def test_at_is_one_second_or_one_tick_where_ticks_are_longer(interval_s: float, width_us: int) -> None:
    recorded = Recorded(node={"timezone": "Europe/Berlin", "interval_s": interval_s})
    window = WindowQuestion(at="02:00:00").choose(recorded)
    assert window.end_us - window.start_us == width_us


@pytest.mark.parametrize(
    "options",
    [
        {"at": "02:00", "last": "5m"},
        {"at": "02:00", "to": "03:00"},
        {"last": "5m", "from_": "02:00"},
        {"from_": "02:00", "to": "01:00"},
        {"from_": "noon"},
        {"from_": "25:00:00"},
        {"last": "5"},
    ],
)
def test_windows_that_mean_nothing_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(QuestionError):
        WindowQuestion(**options).choose(Recorded())  # type: ignore[arg-type]  # every option here is a string


@pytest.mark.parametrize(
    ("timezone", "shown"),
    [
        ("Europe/Berlin", "14:00:00"),
        ("+02:00", "14:00:00"),
        ("-0330", "08:30:00"),
        ("Mars/Olympus", "12:00:00"),
        (None, "12:00:00"),
    ],
)
def test_an_unknown_zone_is_utc(timezone: str | None, shown: str) -> None:
    assert clock(us("2026-06-01T12:00:00+00:00"), zone_of({"timezone": timezone})) == shown


def test_a_heading_names_the_second_day_only_where_there_is_one() -> None:
    recorded = Recorded()
    zone = zone_of(recorded.node)
    assert (
        Window(recorded.start_us, recorded.end_us, zone).heading() == "2026-06-01 22:00:00 – 2026-06-02 03:00:00 CEST"
    )
    assert (
        Window(recorded.start_us, recorded.start_us + 1_000_000, zone).heading()
        == "2026-06-01 22:00:00 – 22:00:01 CEST"
    )
