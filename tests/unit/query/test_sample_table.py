"""Samples as a table that fits into a file: nothing is lost while it fits, and what is lost is said."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.boxes import TRAINER_UID, write_boxes
from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.query import heatmap, sample_table, stacks
from zombiescope.query.sample_table import SampleTable
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import Recording, open_recording


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("rec"), cpus=4, seconds=20)


def whole(recording: Recording, filters: Filters | None = None) -> Selection:
    return Selection(recording, recording.start_us, recording.end_us + 1, filters or Filters())


def everything(table: SampleTable) -> int:
    return sum(array.nbytes for array in table.arrays.values())


def made(selection: Selection, limit: int = 10**9, **options: Any) -> SampleTable:
    return sample_table.build([selection], limit, everything, **options)


def paths(table: SampleTable) -> list[tuple[str, ...]]:
    """The names of each node's stack, outermost first; node 0 is the root."""
    parent = np.cumsum(table.arrays["node_parent"].astype(np.int64))
    found: list[tuple[str, ...]] = [()]
    for above, function in zip(parent.tolist(), table.arrays["node_fn"].tolist(), strict=True):
        found.append((*found[above], table.scalars["names"][function]))
    return found


def read_back(table: SampleTable) -> Counter[tuple[int, int, str | None, tuple[str, ...]]]:
    """(millisecond, core, comm, stack) of every sample."""
    ticks = np.cumsum(table.arrays["time"].astype(np.int64)) + round(table.scalars["start"] * 1000)
    stack, found = paths(table), table.arrays
    task, node = (found["pair_task"][found["pair"]], found["pair_node"][found["pair"]]) if "pair" in found else (
        found["task"], found["node"])  # fmt: skip
    return Counter(
        (at, cpu, table.scalars["tasks"][who][0], stack[end])
        for at, cpu, who, end in zip(ticks.tolist(), found["cpu"].tolist(), task.tolist(), node.tolist(), strict=True)
    )


def recorded(selection: Selection) -> Counter[tuple[int, int, str | None, tuple[str, ...]]]:
    rows = selection.recording.table("tasks", *selection.span, ("task", "comm")).to_pylist()
    comm = {row["task"]: row["comm"] for row in rows}
    found: Counter[tuple[int, int, str | None, tuple[str, ...]]] = Counter()
    for time_us, cpu, stack, task in selection.columns("time", "cpu", "stack", "task"):
        row = selection.stacks.rows_of(stack)
        for at, core, which, who in zip(time_us.tolist(), cpu.tolist(), row.tolist(), task.tolist(), strict=True):
            names = tuple(function.name for function in selection.stacks.of(which))
            found[at // 1000, core, comm[who], names] += 1
    return found


@pytest.mark.parametrize("few", [0, 10**6])
def test_what_fits_is_all_there(written: Written, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(sample_table, "FEW_PAIRS", few)
    with open_recording(written.dir) as recording:
        selection = whole(recording)
        table = made(selection)
        assert ("pair" in table.arrays) == (few == 0), "pairs by one number, or task and node apart"
        assert table.scalars["step"] == 1
        assert table.scalars["total"] == written.samples
        assert read_back(table) == recorded(selection)
        assert "whole" not in table.arrays


def test_tasks_are_named_in_full(written: Written) -> None:
    with open_recording(written.dir) as recording:
        table = made(whole(recording, Filters(comms=("kubelet",))))
    assert {(comm, pid, unit) for comm, pid, _, unit, _ in table.scalars["tasks"]} == {
        ("kubelet", 1201, "kubelet.service")
    }


def test_what_does_not_fit_is_thinned_and_the_whole_stays_exact(written: Written) -> None:
    with open_recording(written.dir) as recording:
        selection = whole(recording)
        full = made(selection)
        limit = 40_000
        table = made(selection, limit)
        assert everything(full) > limit >= everything(table)
        step = table.scalars["step"]
        assert step > 1
        assert len(table.arrays["time"]) == -(-written.samples // step)
        assert int(table.arrays["whole"].sum()) == written.samples
        maps = table.scalars["maps"]
        for name, rows in (("map_subsecond", maps["rows"]), ("map_core", len(maps["cores"]))):
            cells = np.cumsum(table.arrays[name].reshape(-1, rows), axis=0)
            assert int(cells.sum()) == written.samples, name
        assert np.array_equal(
            np.cumsum(table.arrays["map_core"].reshape(-1, len(maps["cores"])), axis=0),
            heatmap.by_core(selection).values,
        )


def test_frames_too_narrow_for_one_sample_end_in_their_callers(written: Written) -> None:
    with open_recording(written.dir) as recording:
        selection = whole(recording)
        table = made(selection, 40_000)
        pruned = table.scalars["pruned"]
        assert pruned["branches"] > 0
        assert pruned["below_ratio"] == pytest.approx(table.scalars["step"] / written.samples)
        assert len(paths(table)) < len(paths(made(selection)))


def test_two_spans_share_one_table(written: Written) -> None:
    spans = [(START_US, START_US + 2 * SECOND), (START_US + 10 * SECOND, START_US + 12 * SECOND)]
    with open_recording(written.dir) as recording:
        known = stacks.load(recording, spans)
        held = [Selection(recording, *span, known=known) for span in spans]
        table = sample_table.build(held, 10**9, everything)
        assert table.scalars["held"] == [[start / 1e6, end / 1e6] for start, end in spans]
        assert read_back(table) == recorded(held[0]) + recorded(held[1])


def test_a_window_to_compare_with_is_counted_by_node(written: Written) -> None:
    with open_recording(written.dir) as recording:
        selection = whole(recording)
        base = Selection(recording, START_US, START_US + 5 * SECOND, known=selection.stacks).counts()
        table = made(selection, base=base)
        assert int(table.arrays["base"].sum()) == int(base.sum()) > 0


def test_no_sample_is_a_table_too(tmp_path: Path) -> None:
    idle = write_recording(tmp_path / "idle", seconds=3, busy=0.0, incident=False)
    with open_recording(idle.dir) as recording:
        table = made(whole(recording))
    assert (table.scalars["total"], len(table.arrays["time"])) == (0, 0)


def test_tasks_of_containers_are_named_by_them(tmp_path: Path) -> None:
    with open_recording(write_boxes(tmp_path / "boxes")) as recording:
        table = made(whole(recording))
    tasks = {row[0]: row[5:] for row in table.scalars["tasks"]}
    assert tasks["python3"] == ["main", "registry.local:5000/trainer:2", "ml/train-0", TRAINER_UID]
    assert tasks["kubelet"] == [], "what is not known takes no room"
