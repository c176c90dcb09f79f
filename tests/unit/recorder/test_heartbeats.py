"""What becomes of a part that fails: an event, a gap, a line, a file for others; and once more when it works again."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

from zombiescope.recorder.heartbeats import SOURCE, Heartbeats
from zombiescope.recorder.piped_process import PipedProcess
from zombiescope.recorder.sources import Sources
from zombiescope.store import health
from zombiescope.store.event import Event
from zombiescope.store.health import Part

WELL = Part("GPU reader", "ok", 1.0, work=3)
CRASHED = replace(WELL, state="failed", why="crashed: SIGSEGV", failures=1)


class Bench:
    def __init__(self) -> None:
        self.part: Part | Exception = WELL
        self.sources, self.events, self.lines = Sources(), list[Event](), list[str]()
        self.beats = Heartbeats(self.sources, self.events.append)
        self.beats.say = self.lines.append
        self.beats.add("GPU reader", self._part, "GPUs are not recorded", source="gpu")

    def _part(self) -> Part:
        if isinstance(self.part, Exception):
            raise self.part
        return self.part

    def judge(self, part: Part | Exception, at_us: int = 1) -> Part:
        self.part = part
        return self.beats.judge(at_us)[0]


def test_a_part_that_fails_is_reported_once_and_once_more_when_it_works() -> None:
    bench = Bench()
    bench.judge(WELL, 1)
    assert (bench.events, bench.sources.missing, bench.lines) == ([], [], [])
    for at_us in (2, 4, 6):
        bench.judge(CRASHED, at_us)
    (event,) = bench.events
    assert (event.at_us, event.kind, event.severity) == (2, "helper_failed", "warning")
    assert event.text == "the GPU reader crashed: SIGSEGV"
    assert event.fields == {"part": "GPU reader", "state": "failed", "why": "crashed: SIGSEGV", "failures": 1}
    bench.judge(replace(CRASHED, state="ok"), 8)
    assert bench.sources.take_ended() == [(2, 8, "gpu", event.text)]
    assert [line[9:].partition(":")[0] for line in bench.lines] == ["warning", "info"]
    assert "until it works again GPUs are not recorded" in bench.lines[0]


def test_a_failure_between_two_looks_is_reported_too() -> None:
    bench = Bench()
    bench.judge(WELL, 5)
    bench.judge(replace(CRASHED, state="ok"), 9)
    assert [event.text for event in bench.events] == ["the GPU reader crashed: SIGSEGV"]
    assert bench.sources.missing == []
    assert bench.sources.take_ended() == [(5, 9, "gpu", "the GPU reader crashed: SIGSEGV")]
    assert [line[9:] for line in bench.lines] == ["warning: the GPU reader crashed: SIGSEGV; it works again"]


def test_a_process_that_fails_and_recovers_between_two_looks_keeps_the_heartbeat_going() -> None:
    bench = Bench()
    process = PipedProcess("helper")
    bench.beats.add_process(process, "nothing is recorded", source="help")
    process.pulse.works()
    bench.judge(WELL, 5)
    process.pulse.fails("crashed: SIGSEGV")
    process.pulse.works()
    bench.judge(WELL, 9)
    bench.judge(WELL, 11)
    assert [event.text for event in bench.events] == ["the helper crashed: SIGSEGV"]
    assert bench.sources.take_ended() == [(5, 9, "help", "the helper crashed: SIGSEGV")]


def test_a_reason_that_another_gave_since_stays() -> None:
    bench = Bench()
    bench.judge(CRASHED)
    bench.sources.lacks("gpu", "the driver refuses", "a permission", 2)
    bench.judge(WELL, 3)
    assert bench.sources.why("gpu") == "the driver refuses"


def test_a_part_that_cannot_be_judged_has_failed_and_costs_no_other() -> None:
    bench = Bench()
    bench.beats.add("another", lambda: Part("another", "ok", 1.0))
    assert bench.judge(RuntimeError("odd")).why == "cannot be judged: RuntimeError: odd"
    assert [part.state for part in bench.beats.judge(1)] == ["failed", "ok"]


def test_what_others_read_is_published_and_withdrawn(tmp_path: Path) -> None:
    bench, runtime = Bench(), tmp_path / "run"
    runtime.mkdir()
    bench.beats.publish_in(runtime, tmp_path / "node=n")
    path = health.path_of(runtime, os.getpid())
    bench.beats.second(1)
    end_s = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert {part.name for part in health.parts_of(tmp_path / "node=n", [runtime])} == {"recorder", "GPU reader"}
    bench.beats.close()
    assert not path.exists()


def test_a_file_that_cannot_be_written_is_a_missing_source_and_disturbs_nobody(tmp_path: Path) -> None:
    bench = Bench()
    bench.beats.publish_in(tmp_path / "nowhere", tmp_path / "node=n")
    end_s = time.monotonic() + 20
    while bench.sources.why(SOURCE) is None:
        assert time.monotonic() < end_s
        bench.beats._publish((WELL,), 1)
        time.sleep(0.01)
    assert "No such file or directory" in (bench.sources.why(SOURCE) or "")
    bench.beats.close()
