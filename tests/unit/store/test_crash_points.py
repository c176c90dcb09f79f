"""Killed at every single step that a recorder takes on its disk, in the middle of writes too, and a disk that is full
at every one of them: the recording opens, at most two seconds are missing, and frozen windows never."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.helpers.crash_points import FROZEN_AT, SECOND, SECONDS, START_US

from zombiescope.store.freeze import list_frozen
from zombiescope.store.reader import open_recording

POINTS = 220
"""More than there are: the last ones end by themselves, which shows that all were tried."""


def attacked(place: Path, how: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "tests.helpers.crash_points", str(place), how, "1", str(POINTS)]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=root, timeout=200)
    return [json.loads(line) for line in done.stdout.splitlines()]


def seconds_of(place: Path) -> list[int]:
    """The marks that can be read, in order."""
    with open_recording(place) as opened:
        for table in ("events", "samples", "gaps", "cost", "minutes", "unit_hours"):
            opened.table(table)
        return [int(row["text"]) for row in opened.table("events").to_pylist()]


def test_the_recording_opens_and_at_most_two_seconds_are_missing(tmp_path: Path) -> None:
    for how in ("kill", "tear"):
        outcomes = attacked(tmp_path / how, how)
        killed = [one for one in outcomes if one["code"] == -9]
        assert len(killed) >= 100
        assert outcomes[-1]["code"] == 0
        for one in killed:
            place, reached = tmp_path / how / str(one["number"]), one["reached"]
            if reached < 2:
                continue  # no second is there to be lost
            found = seconds_of(place)
            # Retention took whole segments from the start, but for the frozen ones; at the end at most two are missing.
            assert found[-1] >= reached - 2, one
            assert found == sorted(set(found)), one
            if reached >= FROZEN_AT:
                assert set(range(2, 7)) <= set(found), one
                assert len(list_frozen(place / "node=lab")) == 1, one


def test_a_disk_that_is_full_at_any_step_loses_nothing(tmp_path: Path) -> None:
    outcomes = attacked(tmp_path, "full")
    assert {one["code"] for one in outcomes} == {0}
    for one in outcomes:
        place = tmp_path / str(one["number"])
        found = seconds_of(place)
        # THEN every second that retention may not take is there
        assert set(range(2, 7)) <= set(found), one
        assert set(range(SECONDS - 12, SECONDS + 1)) <= set(found), one
        assert len(list_frozen(place / "node=lab")) == 1, one
        with open_recording(place) as opened:
            assert opened.damage == [], one
            assert opened.end_us >= START_US + SECONDS * SECOND
            minutes = opened.table("minutes").to_pylist()
        assert sum(row["seconds"] for row in minutes) == SECONDS, one
