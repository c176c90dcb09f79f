"""Durations and sizes, read and written."""

from __future__ import annotations

import pytest
import typer

from zombiescope.cli import quantities


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20s", 20),
        ("250ms", 0.25),
        ("5m", 300),
        ("5min", 300),
        ("12h", 43200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("0.5s", 0.5),
        ("2 h", 7200),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert quantities.duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "20", "s", "5 parsecs", "-5s", "1h and 2m", "1e3s"])
def test_what_is_no_duration_is_refused_with_the_right_forms(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write it as 250ms, 20s"):
        quantities.duration_s(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2_000_000_000),
        ("512MB", 512_000_000),
        ("1GiB", 1 << 30),
        ("1gib", 1 << 30),
        ("10 kB", 10_000),
        ("4096", 4096),
        ("1.5MB", 1_500_000),
    ],
)
def test_sizes_are_decimal_unless_they_say_i(text: str, size: int) -> None:
    assert quantities.size_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GB", "2XB", "-1GB", "2GBs"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="write it as 512MB"):
        quantities.size_bytes(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.25, "250 ms"),
        (6.04, "6.0 s"),
        (59.4, "59 s"),
        (60, "1 m 00 s"),
        (7500, "2 h 05 m"),
        (90000, "1 d 01 h"),
        (None, "?"),
    ],
)
def test_durations_are_written_with_their_two_largest_units(seconds: float | None, text: str) -> None:
    assert quantities.human_s(seconds) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1_430_000_000, "1.43 GB"),
        (3.2e15, "3.2e+03 TB"),
        (None, "?"),
    ],
)
def test_sizes_are_written_with_three_digits(size: float | None, text: str) -> None:
    assert quantities.human_bytes(size) == text
