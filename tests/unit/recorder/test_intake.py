"""Events on their way in: what a source that fails costs, and that it does not keep the loop awake."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from zombiescope.node.systemd.units import UnitEvent
from zombiescope.recorder.clock import WallClock
from zombiescope.recorder.intake import KERNEL_LOG, MARKS, MAX_UNIT_EVENTS, EventIntake
from zombiescope.recorder.rollup import Rollup
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.stage import Barrier
from zombiescope.recorder.tick import Tick
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.event import Event

NOW_US = 1_790_000_000_000_000


class StandInLog:
    """A kernel log on descriptor 7 whose reading raises while `broken`."""

    def __init__(self) -> None:
        self.broken = False
        self.reads = 0

    def fileno(self) -> int:
        return 7

    def held_back(self) -> list[Event]:
        return []

    def read(self) -> list[Event]:
        self.reads += 1
        if self.broken:
            raise OSError(5, "Input/output error")
        return [Event(NOW_US, "kernel_log", "kmsg", "warning", f"line {self.reads}")]


class Bench:
    def __init__(self, node_dir: Path) -> None:
        self.now_s = 10.0
        self.log, self.batch, self.sources = StandInLog(), Batch(), Sources()
        self.barrier = Barrier(self.sources, lambda: NOW_US, lambda: self.now_s)
        rollup, log = Rollup(node_dir, ""), self.log
        self.intake = EventIntake(self.batch, rollup, None, self.barrier, WallClock(), log)  # type: ignore[arg-type]

    def second(self) -> None:
        self.now_s += 1
        self.barrier.run(self.intake.stages(), Tick(0, NOW_US, 1_000_000))

    def texts(self) -> list[str]:
        return [row[4] for row in self.batch._rows.get(schema.EVENTS.number, [])]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_log_that_can_be_polled_is_read_when_it_is_readable_and_not_every_second(bench: Bench) -> None:
    bench.second()
    assert bench.log.reads == 0
    bench.intake.read_kernel_log()
    assert bench.texts() == ["line 1"]
    assert bench.intake.count == 1


def test_a_log_that_fails_is_not_polled_and_is_tried_at_writes_until_it_works(bench: Bench) -> None:
    assert bench.intake.descriptors() == (7, None)
    bench.log.broken = True
    bench.intake.read_kernel_log()
    assert bench.intake.descriptors() == (None, None)
    [missing] = bench.sources.missing
    assert missing.source == KERNEL_LOG
    assert missing.why.startswith("OSError: [Errno 5] Input/output error")
    bench.log.broken = False
    bench.second()
    assert bench.intake.descriptors() == (7, None)
    assert bench.texts() == ["line 2"]
    assert [gap[2] for gap in bench.sources.take_ended()] == [KERNEL_LOG]


def test_marks_that_fail_are_not_polled_either(bench: Bench) -> None:
    marks: Any = SimpleNamespace(fileno=lambda: 9, second=lambda: None, read=lambda _: 1 // 0, take_steps=list)
    bench.intake.marks = marks
    assert bench.intake.descriptors() == (7, 9)
    bench.intake.read_marks()
    assert bench.intake.descriptors() == (7, None)
    marks.read = lambda _: []
    bench.second()
    assert bench.intake.descriptors() == (7, 9)
    assert [gap[2] for gap in bench.sources.take_ended()] == [MARKS]


def test_a_unit_event_that_cannot_be_stored_costs_only_itself(bench: Bench) -> None:
    odd: Any = object()
    for text, fields in (("first", {}), ("odd", {"x": odd}), ("third", {})):
        bench.intake.unit_events.append(UnitEvent(1, "unit_failed", "warning", "a.service", text, fields))
    bench.second()
    bench.second()
    assert bench.texts() == ["first", "third"]


def test_unit_events_that_nobody_takes_do_not_pile_up(bench: Bench) -> None:
    assert bench.intake.unit_events.maxlen == MAX_UNIT_EVENTS
