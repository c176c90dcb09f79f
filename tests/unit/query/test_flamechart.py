"""Which function ran when: boxes of samples in a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.helpers.page_server import PageServer, page_server
from tests.helpers.recordings import SECOND, START_US, Written, write_recording

from zombiescope.query.flamechart import _boxes, _ends, chart
from zombiescope.query.selection import Filters, Selection
from zombiescope.query.stacks import Function, Stacks
from zombiescope.store.reader import open_recording


def made(*stacks: str) -> Stacks:
    """Stacks of functions of one letter, and the one of samples that have none."""
    letters = sorted(set("".join(stacks)))
    flat = [letters.index(letter) for stack in stacks for letter in stack]
    ends = np.cumsum([len(stack) for stack in stacks])
    functions = tuple(Function(letter, None, "user") for letter in letters)
    return Stacks(functions, np.array(flat, np.int32), ends - [len(stack) for stack in stacks], ends)


def test_a_frame_is_one_box_while_it_and_its_callers_stay() -> None:
    known = made("ab", "abc", "ac")
    time_us = np.array([0, 10, 20, 30])
    ends = _ends(time_us, 10)
    function, depth, first, last = _boxes(known, np.array([0, 1, 1, 2]), time_us, ends)
    boxes = {("abc"[f], int(d), int(a), int(b)) for f, d, a, b in zip(function, depth, first, last, strict=True)}
    assert boxes == {("a", 0, 0, 3), ("b", 1, 0, 2), ("c", 2, 1, 2), ("c", 1, 3, 3)}


def test_a_gap_ends_every_box() -> None:
    known = made("ab")
    time_us = np.array([0, 10, 100])
    ends = _ends(time_us, 10)
    assert ends.tolist() == [10, 20, 110]
    _, depth, first, last = _boxes(known, np.array([0, 0, 0]), time_us, ends)
    assert sorted(zip(depth.tolist(), first.tolist(), last.tolist(), strict=True)) == [
        (0, 0, 1), (0, 2, 2), (1, 0, 1), (1, 2, 2),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("rec") / "flight", cpus=4, seconds=60)


def test_no_sample_is_lost_and_boxes_lie_in_their_callers(written: Written) -> None:
    with open_recording(written.dir) as recording:
        selection = Selection(recording, recording.start_us, recording.end_us + 1, Filters(cpus=frozenset({3})))
        found = chart(selection, 99, 1_000_000)
        counted = int(selection.counts().sum())
    outer = found.depth == 0
    assert int(found.samples[outer].sum()) == counted
    assert found.left_off == 0
    order = np.lexsort((found.depth, found.start_us))
    assert (order == np.arange(len(order))).all()
    for depth in range(1, int(found.depth.max()) + 1):
        mine, above = found.depth == depth, found.depth == depth - 1
        at = np.searchsorted(found.start_us[above], found.start_us[mine], "right") - 1
        assert (found.start_us[above][at] <= found.start_us[mine]).all()
        assert (found.end_us[above][at] >= found.end_us[mine]).all()


def test_the_lost_core_is_one_long_box(written: Written, tmp_path: Path) -> None:
    assert written.incident is not None
    with page_server(str(written.dir), home=tmp_path) as server:
        header, arrays = _chart(server, written)
    walk = header["names"].index("memcg_numa_stat_show")
    longest = int(np.argmax(np.where(arrays["name"] == walk, arrays["end"] - arrays["start"], 0)))
    assert arrays["end"][longest] - arrays["start"][longest] == pytest.approx(6, abs=0.2)
    assert arrays["samples"][longest] > 500
    assert header["rows_left_off"] == 0


def _chart(server: PageServer, written: Written) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    assert written.incident is not None
    whole, few = (
        server.api("flamechart", cpu=written.incident.cpu, from_=START_US / 1e6, to=written.end_us / 1e6, nodes=nodes)
        for nodes in (100_000, 10)
    )
    header, arrays = few.columns
    assert header["rows_left_off"] > 0
    assert len(arrays["name"]) == 10
    return whole.columns


def test_an_empty_window_has_no_box(written: Written) -> None:
    with open_recording(written.dir) as recording:
        nobody = Selection(recording, START_US, START_US + SECOND, Filters(cpus=frozenset({77})))
        assert len(chart(nobody, 99, 10).function) == 0
