"""Views of whole parts come from summaries and show what counting the samples shows: any window, part or damage."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.query import heatmap
from zombiescope.query.selection import Filters, Selection
from zombiescope.query.stacks import Function
from zombiescope.store import columns, compact
from zombiescope.store.reader import Recording, open_recording

FROM_US = START_US + 300_123
LENGTH_US = 40 * SECOND
CPUS = 3

WINDOW = st.tuples(st.integers(-SECOND, LENGTH_US + SECOND), st.integers(-SECOND, LENGTH_US + SECOND)).map(
    lambda pair: (FROM_US + min(pair), FROM_US + max(pair) + 1)
)
WHOLE_SECONDS = (START_US + 1 * SECOND, START_US + 30 * SECOND)


def made(directory: Path) -> Written:
    """Three parts of ten seconds, and ten seconds that are still a log."""
    written = write_recording(directory, cpus=CPUS, seconds=40, segment_s=5, start_us=FROM_US)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compact, "PART_US", 10 * SECOND)
        compact.compact(written.node_dir, [path.name for path in written.segments[:6]])
    return written


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with open_recording(made(tmp_path_factory.mktemp("rec")).dir) as opened:
        yield opened


def samples(recording: Recording, start_us: int, end_us: int) -> tuple[columns.Ints, columns.Ints]:
    rows = recording.table("samples", start_us, end_us, ("time", "cpu"))
    return columns.numbers(rows.column("time")), columns.numbers(rows.column("cpu"))


def by_stack(recording: Recording, start_us: int, end_us: int) -> dict[tuple[str, ...], int]:
    """Counted row by row, by name."""
    frames = {row["frame"]: row["name"] for row in recording.table("frames").to_pylist()}
    stacks = {
        row["stack"]: tuple(frames[frame] for frame in row["frames"]) for row in recording.table("stacks").to_pylist()
    }
    found: dict[tuple[str, ...], int] = {}
    for stack in recording.table("samples", start_us, end_us, ("stack",)).column("stack").to_pylist():
        found[stacks[stack]] = found.get(stacks[stack], 0) + 1
    return found


def counted(selection: Selection) -> dict[tuple[str, ...], int]:
    counts = selection.counts()
    known = selection.stacks
    return {
        tuple(function.name for function in known.of(row)): int(counts[row]) for row in np.flatnonzero(counts).tolist()
    }


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=WINDOW, rows=st.sampled_from([50, 100, 49, 1, 25]))
def test_any_window_of_the_sub_second_map(recording: Recording, window: tuple[int, int], rows: int) -> None:
    drawn = heatmap.subsecond(Selection(recording, *window), rows)
    time_us, _ = samples(recording, *window)
    expected = np.zeros(drawn.values.shape, int)
    np.add.at(expected, ((time_us - drawn.start_us) // SECOND, time_us % SECOND * rows // SECOND), 1)
    assert drawn.values.tolist() == expected.tolist()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=WINDOW, column_us=st.sampled_from([SECOND, 3 * SECOND, 700_000]))
def test_any_window_of_the_core_map(recording: Recording, window: tuple[int, int], column_us: int) -> None:
    drawn = heatmap.by_core(Selection(recording, *window), column_us)
    time_us, cpu = samples(recording, *window)
    assert drawn.cores == tuple(range(CPUS))
    expected = np.zeros(drawn.values.shape, int)
    np.add.at(expected, ((time_us - drawn.start_us) // column_us, cpu), 1)
    assert drawn.values.tolist() == expected.tolist()


@pytest.fixture(autouse=True)
def as_of_a_long_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short ones are drawn by the exact time of each sample."""
    monkeypatch.setattr(heatmap, "READ_SAMPLES", 0)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(window=WINDOW)
def test_any_window_of_stacks(recording: Recording, window: tuple[int, int]) -> None:
    assert counted(Selection(recording, *window)) == by_stack(recording, *window)


@pytest.mark.parametrize("filters", [Filters(mode="kernel"), Filters(mode="user"), Filters(cpus=frozenset({1}))])
def test_filters_see_the_same_samples_with_and_without_summaries(tmp_path: Path, filters: Filters) -> None:
    node_dir = made(tmp_path).node_dir
    whole = (FROM_US, FROM_US + LENGTH_US)
    with open_recording(tmp_path) as recording:
        with_them = counted(Selection(recording, *whole, filters))
    without_summaries(node_dir)
    with open_recording(tmp_path) as recording:
        assert counted(Selection(recording, *whole, filters)) == with_them != {}


def without_summaries(node_dir: Path) -> None:
    """As an older version wrote parts."""
    for path in node_dir.glob("date=*/part-*.json"):
        manifest = json.loads(path.read_text())
        del manifest["tables"]["heat"], manifest["tables"]["stack_counts"]
        path.write_text(json.dumps(manifest))
    for path in [*node_dir.glob("date=*/heat-*"), *node_dir.glob("date=*/stack_counts-*")]:
        path.unlink()


Views = tuple[list[list[int]], list[list[int]], dict[tuple[str, ...], int]]


def views(recording: Recording, window: tuple[int, int] = (FROM_US, FROM_US + LENGTH_US)) -> Views:
    selection = Selection(recording, *window)
    drawn = heatmap.subsecond(selection), heatmap.by_core(selection)
    return drawn[0].values.tolist(), drawn[1].values.tolist(), counted(selection)


def test_whole_parts_are_drawn_without_their_samples(tmp_path: Path) -> None:
    """The proof that summaries are what is read: the samples can be gone."""
    node_dir = made(tmp_path).node_dir
    with open_recording(tmp_path) as recording:
        before = views(recording)
    middle = sorted(node_dir.glob("date=*/samples-*.parquet"))[1]
    middle.unlink()
    with open_recording(tmp_path) as recording:
        assert views(recording) == before
        assert recording.damage == []
        heatmap.subsecond(Selection(recording, FROM_US, FROM_US + LENGTH_US), rows=49)
        assert recording.damage != [], "49 rows do not come from hundredths"


def test_parts_of_an_older_version_are_counted(tmp_path: Path) -> None:
    node_dir = made(tmp_path).node_dir
    with open_recording(tmp_path) as recording:
        before = views(recording)
    without_summaries(node_dir)
    with open_recording(tmp_path) as recording:
        assert views(recording) == before
        assert recording.damage == []


def test_a_damaged_summary_costs_time_and_no_sample(tmp_path: Path) -> None:
    node_dir = made(tmp_path).node_dir
    with open_recording(tmp_path) as recording:
        before = views(recording)
    for table in ("heat", "stack_counts"):
        path = sorted(node_dir.glob(f"date=*/{table}-*.parquet"))[1]
        data = bytearray(path.read_bytes())
        data[len(data) // 4] ^= 0x10
        path.write_bytes(data)
    with open_recording(tmp_path) as recording:
        assert views(recording) == before
        assert {entry.file.split("/")[1].split("-")[0] for entry in recording.damage} == {"heat", "stack_counts"}


def test_an_import_is_never_drawn_from_summaries(tmp_path: Path) -> None:
    """Idle samples are among its samples and not in its views."""
    node_dir = made(tmp_path).node_dir
    node = json.loads((node_dir / "node.json").read_text())
    node["imported"] = {"events": ["cpu-clock"], "idle_samples": 3}
    (node_dir / "node.json").write_text(json.dumps(node))
    with open_recording(tmp_path) as recording:
        assert not Selection(recording, FROM_US, FROM_US + LENGTH_US).countable
    for path in [*node_dir.glob("date=*/heat-*"), *node_dir.glob("date=*/stack_counts-*")]:
        path.unlink()
    with open_recording(tmp_path) as recording:
        views(recording)
        assert recording.damage == []


def test_a_stack_of_several_parts_is_one(recording: Recording) -> None:
    known = Selection(recording, FROM_US, FROM_US + LENGTH_US).stacks
    runs = [tuple(known.of(row)) for row in range(known.count)]
    assert len(set(runs)) == len(runs)
    assert len(set(known.functions)) == len(known.functions)
    assert runs[-1] == (Function("?", None, "unknown"),)
