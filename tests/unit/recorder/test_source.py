"""What all sources have in common: when they are read, what is missing, what they cost, and that a file is enough."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.source_bench import SourceBench

from zombiescope.recorder import source as source_module
from zombiescope.recorder import sources
from zombiescope.recorder.source import OpenSources, Source, every
from zombiescope.recorder.stage import Barrier
from zombiescope.recorder.tick import Tick


class Thermometer(Source):
    """What the test says."""

    name = "thermometer"
    grant = "a thermometer"
    every_s = 5.0
    why: str | None = None
    ticks = forgotten = 0

    def tick(self, _: Tick) -> str | None:
        self.ticks += 1
        return self.why

    def forget(self) -> None:
        self.forgotten += 1


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceBench[Thermometer]:
    monkeypatch.setattr(source_module, "SLOW_NS", 10**15)  # however slow this machine is at the moment
    return SourceBench(Thermometer, tmp_path)


def test_every_file_of_the_folder_is_a_source() -> None:
    files = {path.stem for path in Path(sources.__file__).parent.glob("*.py")} - {"__init__"}
    assert {kind.__module__.rsplit(".", 1)[1] for kind in every()} == files
    assert all(kind.name and kind.grant for kind in every())
    assert len({kind.name for kind in every()}) == len(every())


def test_it_is_read_as_often_as_it_says(bench: SourceBench[Thermometer]) -> None:
    for second in range(100, 111):
        bench.tick(second)
    assert bench.source.ticks == 3


def test_what_cannot_be_read_is_missing_until_it_can(bench: SourceBench[Thermometer]) -> None:
    bench.source.why = "no such device"
    bench.tick(100)
    assert bench.missing == [("thermometer", "no such device", "a thermometer")]
    assert bench.source.forgotten == 1
    bench.source.why = None
    bench.tick(105)
    assert bench.missing == []
    assert bench.sources.take_ended() == [(100_000_000, 105_000_000, "thermometer", "no such device")]


def test_what_is_slow_twice_in_a_row_is_read_every_ten_seconds(
    bench: SourceBench[Thermometer], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_module, "SLOW_NS", -1)
    monkeypatch.setattr(Thermometer, "every_s", 0.0)
    read = []
    for second in range(100, 125):
        before = bench.source.ticks
        bench.tick(second)
        read += [second] if bench.source.ticks != before else []
    assert read == [100, 101, 111, 121]


def test_its_cost_is_written_once_a_minute(bench: SourceBench[Thermometer]) -> None:
    for second in range(100, 231, 5):
        bench.tick(second)
    assert [cost[:3] for cost in bench.costs] == [("recorder", "source_cpu_us", "thermometer")] * 2


def test_one_that_raises_is_a_gap_of_its_own(bench: SourceBench[Thermometer], monkeypatch: pytest.MonkeyPatch) -> None:
    # GIVEN two sources, of which one raises
    class Broken(Thermometer):
        name = "broken"

        def tick(self, _: Tick) -> str | None:
            raise RuntimeError("not today")

    monkeypatch.setattr(source_module, "every", lambda: (Broken, Thermometer))
    barrier = Barrier(bench.sources, lambda: 0, lambda: 0.0)
    opened = OpenSources(bench.source.context, bench.sources, barrier, "/")
    barrier.run(opened.stages(), Tick(0, 1_000_000, 1_000_000, online=(0,)))
    # THEN the other is read, and only the broken one is missing
    assert opened.one(Thermometer).ticks == 1
    assert [name for name, _, _ in bench.missing] == ["broken (reader)"]
    opened.close()


def test_one_that_cannot_be_opened_does_not_keep_the_recorder_from_starting(
    bench: SourceBench[Thermometer], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Picky(Thermometer):
        def __init__(self, context: source_module.Context) -> None:
            super().__init__(context)
            if context.root == "/":
                raise OSError("no permission")

    monkeypatch.setattr(source_module, "every", lambda: (Picky,))
    barrier = Barrier(bench.sources, lambda: 0, lambda: 0.0)
    OpenSources(bench.source.context, bench.sources, barrier, "/").close()
    assert [name for name, _, _ in bench.missing] == ["thermometer (start)"]
