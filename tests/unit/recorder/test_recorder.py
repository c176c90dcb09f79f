"""Every stage of the recorder may raise: the rest is recorded, and the gap has a reason and an end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.replay import IDLE, Replay, Runs, Task

from zombiescope.kernel import pstore
from zombiescope.recorder.compactor import ChildProcess
from zombiescope.recorder.ledger import Ledger
from zombiescope.recorder.recorder import Recorder
from zombiescope.recorder.stage import Stage
from zombiescope.store.gaps import Gap
from zombiescope.store.node_directory import Lock
from zombiescope.store.reader import open_recording

AGENT = Task("agent", 2811, "/system.slice/agent.service")
SECONDS, BROKEN_FROM, BROKEN_TO = 36, 2, 14
RESET = "[1214881.000000] ena 0000:00:05.0: Device reset completed successfully, Driver info: ENA v2.11.0g"
BROKEN = "ValueError: broken by a test"

STAGES = (
    "stack samples (counts)", "per-core time (reader)", "rollups", "counters", "disks (reader)",
    "waiting tasks (reader)", "shared memory (reader)", "alarm",
    "schedule (reader)", "schedule (snapshot)", "memory cgroups (reader)",
    "cgroup statistics", "cgroup gauges", "lost records", "cost",
    "systemd (events)", "kernel log (reader)", "marks", "what services tell", "stack samples", "task shares",
    "containers", "gpu (reader)", "quiet processes (reader)", "python stacks (reader)", "whole stacks (reader)",
    "closer looks (reader)", "gaps",
    "process lookup", "rollup file", "frames", "disk (reader)", "housekeeping",
    "live diagnosis", "page (reader)", "heartbeats (reader)", "systemd (reader)", "node file", "upkeep", "state file",
    "kernel symbols (reader)", "new segment of samples", "new segment of counters", "new segment of cgroups",
    "new segment of containers", "new segment of GPUs", "new segment of mounts", "new segment of Python stacks",
    "new segment of whole stacks", "cgroup pressure (reader)", "new segment of disks", "new segment of cgroup pressure",
)  # fmt: skip

Happens = Callable[[Replay, Recorder, int], None]


def stage_lists(recorder: Recorder) -> Iterator[list[Stage]]:
    yield recorder._tick_stages
    yield recorder._write_stages
    yield recorder.housekeeping._stages
    for stages in (recorder.segments.finish, recorder.segments.renew):
        assert isinstance(stages, list)
        yield stages


def broken(_: object) -> None:
    raise ValueError("broken by a test")


def on(cpu: int, _: float) -> Runs:
    return Runs(AGENT, ("do_syscall_64", "cgroup_mkdir")) if cpu == 0 else IDLE


def spent(cpu: int, _: int) -> Mapping[str, int]:
    return {"system": 60, "idle": 40} if cpu == 0 else {"idle": 100}


@pytest.fixture
def replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Replay:
    functions = ["do_syscall_64", "cgroup_mkdir", *IDLE.path]
    made = Replay(tmp_path, 2, 19, on, spent, functions, (AGENT,), 12, ["/system.slice"])
    made.keep_time(monkeypatch)
    monkeypatch.setattr(ChildProcess, "start", lambda *_: None)
    return made


class Recorded:
    """What a replay leaves: the recorder, and its recording."""

    def __init__(self, replay: Replay, happens: Happens, seconds: int = SECONDS) -> None:
        self._happens = happens
        self.place = replay.record(seconds, self._each, diagnose=True, segment_s=4.0)
        with open_recording(self.place) as opened:
            self.gaps: list[Gap] = opened.gaps()
            tables = ("cores", "cost", "events", "samples")
            self.tables: dict[str, list[dict[str, Any]]] = {name: opened.table(name).to_pylist() for name in tables}

    def _each(self, replay: Replay, recorder: Recorder, second: int) -> None:
        self.recorder = recorder
        self._happens(replay, recorder, second)

    def gaps_of(self, source: str) -> list[Gap]:
        return [gap for gap in self.gaps if gap.source == source]

    def rows(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table]


def breaks(source: str) -> Happens:
    """The stage of this name raises for some seconds."""
    whole: dict[int, list[Stage]] = {}

    def happens(_: Replay, recorder: Recorder, second: int) -> None:
        for number, stages in enumerate(stage_lists(recorder)):
            if second == BROKEN_FROM:
                whole[number] = list(stages)
                stages[:] = [replace(one, run=broken) if one.source == source else one for one in stages]
            elif second == BROKEN_TO:
                stages[:] = whole[number]

    return happens


def test_every_stage_is_in_the_list(replay: Replay) -> None:
    seen: set[str] = set()
    Recorded(replay, lambda _, made, __: seen.update(one.source for each in stage_lists(made) for one in each), 1)
    assert seen == set(STAGES)


@pytest.mark.parametrize("source", STAGES)
def test_a_stage_that_raises_is_a_gap_and_the_rest_is_recorded(replay: Replay, source: str) -> None:
    start_us = replay.start_unix * 1_000_000
    recorded = Recorded(replay, breaks(source))
    # THEN there is a gap with the reason, which lies where the stage was broken, and which has ended
    gaps = [gap for gap in recorded.gaps_of(source) if gap.why.startswith(BROKEN)]
    assert gaps
    assert min(gap.from_us for gap in gaps) >= start_us + (BROKEN_FROM - 1) * 1_000_000
    assert max(gap.to_us for gap in gaps) < start_us + (SECONDS - 1) * 1_000_000
    assert source not in {one.source for one in recorder_missing(recorded)}
    # AND what other stages bring is there, second by second
    if source != "cost":
        assert len(recorded.rows("cost")) == SECONDS + 1
    if source != "per-core time (reader)":
        assert len(recorded.rows("cores")) == 2 * SECONDS
    if source not in ("stack samples", "new segment of samples"):
        assert len(recorded.rows("samples")) == 19 * SECONDS
    assert {gap.source for gap in recorded.gaps if gap.why.startswith(BROKEN)} == {source}


def recorder_missing(recorded: Recorded) -> list[Any]:
    return recorded.recorder.sources.missing


def test_cores_that_could_not_be_read_bring_no_row_of_many_seconds(replay: Replay) -> None:
    recorded = Recorded(replay, breaks("per-core time (reader)"))
    assert {row["system_ms"] for row in recorded.rows("cores") if row["cpu"] == 0} == {600}


def test_a_record_that_its_handler_cannot_read_costs_only_itself(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Ledger.mkdir

    def choosy(self: Ledger, key: int, path: str, creator: Any) -> None:
        if path.endswith("odd"):
            raise KeyError(path)
        mkdir(self, key, path, creator)

    monkeypatch.setattr(Ledger, "mkdir", choosy)

    def happens(replay: Replay, recorder: Recorder, second: int) -> None:
        if second in (1, 4):
            replay.makes_cgroup(recorder, AGENT, 900 + second, "/system.slice/even")
        if second == 1:
            replay.makes_cgroup(recorder, AGENT, 990, "/system.slice/odd")
            replay.says(recorder, RESET)

    recorded = Recorded(replay, happens, 8)
    [gap] = recorded.gaps_of("tracepoint cgroup:cgroup_mkdir")
    assert "KeyError: '/system.slice/odd'" in gap.why
    assert 2_000_000 < gap.to_us - gap.from_us < 4_000_000
    assert recorded.recorder.cgroups.ledger.created == 2
    assert [event["kind"] for event in recorded.rows("events")] == ["nic_reset"]
    assert len(recorded.rows("samples")) == 19 * 8


def test_a_drain_that_raises_is_tried_at_every_tick_and_nothing_polls_meanwhile(
    replay: Replay, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled: list[bool] = []

    def happens(_: Replay, recorder: Recorder, second: int) -> None:
        polled.append(not recorder.barrier.failing("stack samples"))
        if second == 2:
            monkeypatch.setattr(recorder.rings, "drain", lambda: broken(None))
        elif second == 4:
            monkeypatch.undo()
            replay.keep_time(monkeypatch)

    recorded = Recorded(replay, happens, 12)
    assert not all(polled)
    assert polled[-1]
    assert recorded.gaps_of("stack samples")
    assert len(recorded.rows("cores")) == 2 * 12
    assert len(recorded.rows("samples")) == 19 * 12


def test_the_end_is_reached_whatever_raises(replay: Replay) -> None:
    def happens(_: Replay, recorder: Recorder, second: int) -> None:
        if second == 2:
            for part in (recorder.rollup, recorder.kernel_log, recorder.cgroups, recorder.lookup):
                for name in ("close", "stop"):
                    if hasattr(part, name):
                        setattr(part, name, lambda *_: broken(None))

    recorded = Recorded(replay, happens, 3)
    Lock(recorded.recorder.node_dir, 0).release()  # the next recorder may start
    assert len(recorded.rows("cores")) == 2 * 3


def test_a_crash_before_this_boot_is_on_record_once(replay: Replay, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = pstore.Crash(1, "Fatal exception in interrupt", "ena_destroy_device", "/sys/fs/pstore/dmesg-erst-1")
    monkeypatch.setattr(pstore, "before_this_boot", lambda *_: [crash])

    def happens(_: Replay, recorder: Recorder, second: int) -> None:
        if second == 1:  # as the next recorder of this boot does, which finds the state of this one
            recorder._tell_crashes({"boot": "this"}, 1, "/")

    recorded = Recorded(replay, happens, 3)
    (text,) = [row["text"] for row in recorded.rows("events") if row["kind"] == "panic_before"]
    assert "Fatal exception in interrupt, in ena_destroy_device (/sys/fs/pstore/dmesg-erst-1)" in text
