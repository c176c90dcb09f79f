"""What a diagnosis reads: each thing once, one window's samples at a time, and nothing that it does not need."""

from __future__ import annotations

import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import HZ, SECOND, START_US, Node, write_segment

from zombiescope.diagnosis import diagnose as long_windows
from zombiescope.diagnosis import moments, sample_grid
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.sample_grid import SampleGrid
from zombiescope.query import stacks
from zombiescope.store.reader import Recording, open_recording

SEGMENT_S = 30
SEGMENTS = 4
HANGS_S = (10, 40, 50, 70, 100, 110)
"""A core is lost for two seconds, over and over: places to look at, several of them in one segment."""


def write(directory: Path) -> Path:
    for number in range(SEGMENTS):
        node = Node()
        walk = node.stack([node.frame(name) for name in ("do_syscall_64", "vfs_read", "mem_cgroup_iter")])
        task = node.task(1201, "walker")
        for second in range(number * SEGMENT_S, (number + 1) * SEGMENT_S):
            at_us = START_US + second * SECOND
            held = any(begin <= second < begin + 2 for begin in HANGS_S)
            for sample in range(HZ if held else 3):
                node.sample(at_us + sample * SECOND // HZ, 1, task, walk)
            node.core(at_us + SECOND, 1, system=1000 if held else 30, samples=HZ, expected_samples=HZ)
            node.count(at_us + SECOND, node.series("vmstat", "pgfault"), 1000)
            node.census(at_us + SECOND, 200, 9000 + second, created=second, removed=second)
        write_segment(directory, node.tables, start_us=START_US + number * SEGMENT_S * SECOND, seq=number)
    return directory


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recording]:
    """Two minutes that are long enough to be looked through piece by piece."""
    monkeypatch.setattr(long_windows, "WINDOW_LONG_US", SECOND)
    monkeypatch.setattr(moments, "MOMENT_AROUND_US", 2 * SECOND)
    monkeypatch.setattr(moments, "MOMENT_BRIDGE_S", 1)
    with open_recording(write(tmp_path)) as opened:
        yield opened


def looks(recording: Recording, **more: Any) -> int:
    """Diagnoses all of it; how many places it looked at."""
    told: list[tuple[int, int]] = []
    found = diagnose(
        recording, recording.start_us, recording.end_us + 1, progress=lambda *way: told.append(way), **more
    )
    assert found.incidents
    (many,) = {of for _, of in told}
    assert [done for done, _ in told] == list(range(many))
    return many


def test_the_names_of_stacks_are_loaded_once_for_looks_in_the_same_segment(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[object] = []
    load = stacks.load

    def count(*way: Any) -> stacks.Stacks:
        loaded.append(way)
        return load(*way)

    monkeypatch.setattr(stacks, "load", count)
    assert looks(recording) > len(loaded) > 0


def test_tasks_of_a_part_are_made_once(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[str] = Counter()
    batches = Recording.batches

    def count(self: Recording, name: str, *way: Any, **more: Any) -> Any:
        read[name] += 1
        return batches(self, name, *way, **more)

    monkeypatch.setattr(Recording, "batches", count)
    assert looks(recording) > SEGMENTS
    assert read["tasks"] <= SEGMENTS
    assert read["series"] <= SEGMENTS


def test_samples_of_one_window_at_a_time_are_in_memory(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    alive: list[weakref.ref[SampleGrid]] = []
    spans: Counter[tuple[int, int]] = Counter()
    most = 0
    load = sample_grid.load

    def watch(recording: Recording, start_us: int, end_us: int, *way: Any) -> SampleGrid:
        nonlocal most
        spans[start_us, end_us] += 1
        grid = load(recording, start_us, end_us, *way)
        alive.append(weakref.ref(grid))
        most = max(most, sum(one() is not None for one in alive))
        return grid

    monkeypatch.setattr(sample_grid, "load", watch)
    assert looks(recording) <= len(spans)
    assert set(spans.values()) == {1}, "no time is read twice"
    assert most <= 4, "the window, and the moments before it that it is compared with"


def test_what_walks_memory_cgroups_is_read_once_however_often_it_is_asked(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = Facts(recording, START_US, START_US + 60 * SECOND)
    first = facts.cgroups_at(START_US + 12 * SECOND)
    read: Counter[str] = Counter()
    batches = Recording.batches
    monkeypatch.setattr(
        Recording, "batches", lambda self, name, *way, **more: read.update([name]) or batches(self, name, *way, **more)
    )
    for second in range(13, 50):
        facts.cgroups_at(START_US + second * SECOND)
    assert first.memory is not None
    assert read["samples"] == read["stacks"] == 0


def test_that_memory_cgroups_were_counted_is_known_without_a_sample(
    recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a sample was read")

    monkeypatch.setattr(Recording, "batches", refuse)
    assert Facts(recording, START_US, START_US + 60 * SECOND).counts_cgroups


def test_no_diagnosis_imports_pandas(tmp_path: Path) -> None:
    """It costs half a second and sixty megabytes, gives nothing here, and is on every training node."""
    program = f"""
import sys
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.store.reader import open_recording
with open_recording({str(write(tmp_path))!r}) as recording:
    found = diagnose(recording, recording.start_us, recording.end_us + 1)
assert found.incidents
sys.exit("pandas" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
