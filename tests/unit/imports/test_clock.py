"""File clocks on the wall."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from zombiescope.imports import clock
from zombiescope.imports.clock import FileClock, named_time, offset_us, sentences

SECOND = 1_000_000
NAMED_AT = int(time.mktime((2026, 3, 1, 12, 0, 0, 0, 0, -1))) * SECOND


def test_a_name_of_switch_output_is_the_time_of_the_last_record() -> None:
    assert named_time("/x/perf.data.2026030112000050") == (NAMED_AT + 500_000, True)


@pytest.mark.parametrize(
    "name", ["perf-host-20260301-12-00-00-120s.data", "perf-20260301T120000.data", "a-2026-03-01_12:00:00"]
)
def test_a_date_within_a_name_is_the_time_of_the_first_sample(name: str) -> None:
    assert named_time(name) == (NAMED_AT, False)


@pytest.mark.parametrize("name", ["perf.data", "perf.data.old", "perf.data.9999999999999999", "x-20261301-12-00-00"])
def test_other_names_say_nothing(name: str) -> None:
    assert named_time(name) is None


def test_trust_goes_from_the_file_over_the_name_to_the_modification_time() -> None:
    bare = FileClock("perf.data", first_us=10 * SECOND, last_us=20 * SECOND)
    assert offset_us([bare]) == [0]
    assert "unknown" in sentences([bare])[0]
    modified = replace(bare, modified_wall_us=1020 * SECOND)
    assert offset_us([modified]) == [1000 * SECOND]
    assert "modification" in sentences([modified])[0]
    named = replace(modified, name="perf.data.2026030112000000")
    assert offset_us([named]) == [NAMED_AT - 20 * SECOND]
    assert "file name" in sentences([named])[0]
    own = replace(named, offset_us=5)
    assert offset_us([own]) == [5]


def test_start_is_the_time_of_the_earliest_sample_and_the_others_keep_their_distance() -> None:
    one = FileClock("a", first_us=10 * SECOND, last_us=20 * SECOND, modified_wall_us=1020 * SECOND)
    two = FileClock("b", first_us=30 * SECOND, last_us=40 * SECOND, modified_wall_us=1040 * SECOND)
    assert offset_us([two, one], 500 * SECOND) == [490 * SECOND, 490 * SECOND]
    assert "--start" in sentences([two, one], 500 * SECOND)[0]


def test_the_own_word_of_a_file_stands_above_start() -> None:
    assert offset_us([FileClock("a", first_us=1, last_us=2, offset_us=7)], 500) == [7]


def test_a_series_of_one_boot_has_one_offset_the_median() -> None:
    late_us = (0, 300_000, 100_000)
    files = [
        FileClock(f"{n}", 120 * n * SECOND, (120 * n + 119) * SECOND, modified_wall_us=(5119 + 120 * n) * SECOND + late)
        for n, late in enumerate(late_us)
    ]
    assert offset_us(files) == [5000 * SECOND + 100_000] * 3


def test_a_reboot_within_the_series_parts_it() -> None:
    before = FileClock("a", first_us=90_000 * SECOND, last_us=90_100 * SECOND, modified_wall_us=190_100 * SECOND)
    after = FileClock("b", first_us=10 * SECOND, last_us=20 * SECOND, modified_wall_us=190_320 * SECOND)
    assert offset_us([after, before]) == [190_300 * SECOND, 100_000 * SECOND]


def test_hosts_have_clocks_of_their_own() -> None:
    one = FileClock("a", 0, 10 * SECOND, modified_wall_us=1000 * SECOND, host="one")
    two = FileClock("b", 0, 10 * SECOND, modified_wall_us=1001 * SECOND, host="two")
    assert offset_us([one, two]) == [990 * SECOND, 991 * SECOND]


def test_no_files() -> None:
    assert clock.offset_us([]) == []
