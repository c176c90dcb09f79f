"""A clock that is set forward, set back, and set back to where it was, through the whole recorder, by the seam of its
clock: the machine's own is left alone."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.helpers.replay import IDLE, SECOND_NS, Replay, Runs, Task

from zombiescope.recorder import clock
from zombiescope.recorder.recorder import Recorder
from zombiescope.store.reader import open_recording

AGENT = Task("agent", 2811, "/system.slice/agent.service")
SECONDS = 24


def on(_: int, __: float) -> Runs:
    return Runs(AGENT, ("do_syscall_64",))


def spent(_: int, __: int) -> Mapping[str, int]:
    return {"system": 60, "idle": 40}


class Wall:
    """The replay's clock, and how far somebody has set it."""

    def __init__(self, replay: Replay, patch: pytest.MonkeyPatch) -> None:
        replay.keep_time(patch)
        began_ns, self.set_ns, self.slept_ns = replay.now_ns, 0, 0

        def gettime_ns(which: int) -> int:
            if which == time.CLOCK_MONOTONIC:
                return replay.now_ns
            unix_ns = replay.start_unix * SECOND_NS - began_ns + self.set_ns
            return replay.now_ns + self.slept_ns + (unix_ns if which == time.CLOCK_REALTIME else 0)

        names = ("CLOCK_MONOTONIC", "CLOCK_REALTIME", "CLOCK_BOOTTIME")
        clocks = {name: getattr(time, name) for name in names}
        patch.setattr(clock, "time", SimpleNamespace(clock_gettime_ns=gettime_ns, **clocks))


@pytest.mark.parametrize(
    "steps",
    [
        {8: 3600.0},
        {8: -3600.0},
        {8: -5.0},
        {6: -600.0, 12: 600.0},
        {6: 600.0, 12: -600.0},
        {4: -0.2, 6: 0.3, 8: -0.1, 10: 86400.0, 12: -86400.0},
    ],
)
def test_every_tick_is_there_once_and_every_step_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: dict[int, float]
) -> None:
    replay = Replay(tmp_path, 2, 19, on, spent, ["do_syscall_64", *IDLE.path], (AGENT,), 12, ["/system.slice"])
    wall = Wall(replay, monkeypatch)

    def happens(_: Replay, __: Recorder, second: int) -> None:
        wall.set_ns += int(steps.get(second, 0.0) * SECOND_NS)

    place = replay.record(SECONDS, happens, segment_s=4.0)
    with open_recording(place) as opened:
        assert opened.damage == []
        rows = opened.table("cost").num_rows
        told = sorted(row["fields"] for row in opened.table("events").to_pylist() if row["kind"] == "clock_step")
        samples = opened.table("samples").num_rows
        gaps = [gap for gap in opened.gaps() if gap.source == "ticks"]
    assert rows == SECONDS + 1
    assert len(told) == len(steps)
    assert samples == 2 * 19 * SECONDS
    assert gaps == []


@pytest.mark.parametrize("set_s", [0.0, -7.0])
def test_a_machine_that_slept_has_a_gap_of_that_length_and_its_clock_was_not_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, set_s: float
) -> None:
    """`set_s`: and then somebody set the clock."""
    replay = Replay(tmp_path, 2, 19, on, spent, ["do_syscall_64", *IDLE.path], (AGENT,), 12, ["/system.slice"])
    wall = Wall(replay, monkeypatch)
    asleep: list[float] = []

    def happens(_: Replay, __: Recorder, second: int) -> None:
        if second == 9:
            asleep.append(replay.start_unix + second)
            wall.slept_ns, wall.set_ns = 61 * SECOND_NS, int(set_s * SECOND_NS)

    place = replay.record(SECONDS, happens, segment_s=4.0)
    with open_recording(place) as opened:
        assert opened.damage == []
        told = [row["text"] for row in opened.table("events").to_pylist() if row["kind"] == "clock_step"]
        [gap] = [gap for gap in opened.gaps() if gap.source == "ticks"]
        rows = opened.table("cost").num_rows
    assert (gap.to_us - gap.from_us) / 1e6 == pytest.approx(61, abs=0.01)
    assert gap.from_us / 1e6 == pytest.approx(asleep[0], abs=1.5)
    assert "suspended for 61.0 s" in gap.why
    assert told == (["the clock was set 7.000 s back"] if set_s else [])
    assert rows == SECONDS + 1
