"""Flame graphs by owner: every sample is below the unit, container, pod, image or task that it is of."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.boxes import write_boxes
from tests.helpers.made import START_US, Node, write_segment
from tests.helpers.recordings import write_recording

from zombiescope.documents import flamegraph, stacks, who
from zombiescope.query.levels import Level
from zombiescope.questions.sides import window
from zombiescope.questions.views import FlamegraphQuestion, StacksQuestion, TracksQuestion, WhoQuestion
from zombiescope.questions.window import WindowQuestion
from zombiescope.store.reader import Recording, open_recording

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def boxes(tmp_path: Path) -> Iterator[Recording]:
    with open_recording(write_boxes(tmp_path / "boxes")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("owner", {"ml/train-0/main", "web", "kubelet.service"}),
        ("container", {"ml/train-0/main", "web", "no container"}),
        ("pod", {"ml/train-0", "no pod"}),
        ("image", {"registry.local:5000/trainer:2", "nginx:1.25", "no image"}),
        ("comm", {"python3", "nginx", "kubelet"}),
    ],
)
def test_whose_a_stack_is_stands_below_it(boxes: Recording, by: Level, names: set[str]) -> None:
    document = flamegraph.answer(boxes, FlamegraphQuestion(by=by)).document()
    groups = {child["name"]: child for child in document["root"]["children"]}
    assert set(groups) == names
    assert sum(child["value"] for child in groups.values()) == document["total"] == 180
    for child in groups.values():
        assert [each["name"] for each in child["children"]] == ["main"]
        assert sum(each["value"] for each in child["children"]) == child["value"]


def test_grouping_loses_no_sample_and_no_stack(tmp_path: Path) -> None:
    """Over parts with ids of their own, and with samples whose task or stack is not known."""
    written = write_recording(tmp_path / "rec", cpus=4, seconds=40)
    with open_recording(written.dir) as recording:
        plain = flamegraph.answer(recording, FlamegraphQuestion(prune=0.0)).document()
        by_comm = flamegraph.answer(recording, FlamegraphQuestion(prune=0.0, by="comm")).document()
    assert by_comm["total"] == plain["total"] == written.samples
    sums: dict[str, int] = {}
    for group in by_comm["root"]["children"]:
        for child in group["children"]:
            sums[child["name"]] = sums.get(child["name"], 0) + child["value"]
    assert sums == {child["name"]: child["value"] for child in plain["root"]["children"]}


def test_processes_and_threads_are_told_apart_by_number(boxes: Recording) -> None:
    levels: tuple[Level, ...] = ("process", "thread")
    for by in levels:
        document = flamegraph.answer(boxes, FlamegraphQuestion(by=by)).document()
        names = {child["name"] for child in document["root"]["children"]}
        assert all(re.fullmatch(r"\S+ \[\d+\]", name) for name in names)
        assert {name.split(" ")[0] for name in names} == {"python3", "nginx", "kubelet"}


def test_an_inverted_graph_keeps_the_owner_as_its_root(boxes: Recording) -> None:
    plain = flamegraph.answer(boxes, FlamegraphQuestion(by="comm")).document()["root"]
    turned = flamegraph.answer(boxes, FlamegraphQuestion(by="comm", invert=True)).document()["root"]
    assert {child["name"]: child["value"] for child in turned["children"]} == {
        child["name"]: child["value"] for child in plain["children"]
    }
    assert all(child["kind"] == "owner" for child in turned["children"])
    assert {leaf["name"] for child in turned["children"] for leaf in child["children"]} != {"main"}


def test_a_comparison_is_of_the_same_owners(boxes: Recording) -> None:
    document = flamegraph.answer(boxes, FlamegraphQuestion(by="comm", against=window("+0s..+30s"))).document()
    alone = flamegraph.answer(boxes, FlamegraphQuestion(window=WindowQuestion(to="+30s"), by="comm")).document()
    before = {child["name"]: child["base"] for child in document["root"]["children"]}
    assert before == {child["name"]: child["value"] for child in alone["root"]["children"]}


def test_who_ran_is_the_root_level_as_a_table(boxes: Recording) -> None:
    tree = flamegraph.answer(boxes, FlamegraphQuestion(by="owner", prune=0.0)).document()
    found = who.answer(boxes, WhoQuestion(by="owner"))
    assert {row["name"]: row["samples"] for row in found["who"]} == {
        child["name"]: child["value"] for child in tree["root"]["children"]
    }
    assert found["total"] == 180
    assert sum(row["ratio"] for row in found["who"]) == pytest.approx(1)
    assert [row["samples"] for row in found["who"]] == sorted((row["samples"] for row in found["who"]), reverse=True)
    trainer = next(row for row in found["who"] if row["name"] == "ml/train-0/main")
    assert (trainer["comm"], trainer["pod"], trainer["image"]) == (
        "python3", "ml/train-0", "registry.local:5000/trainer:2",
    )  # fmt: skip
    first = who.answer(boxes, WhoQuestion(by="owner", top=1))
    assert first["others"] == {"groups": 2, "samples": 180 - first["who"][0]["samples"]}


def test_stacks_has_the_same_table(boxes: Recording) -> None:
    document = stacks.answer(boxes, StacksQuestion(by="unit")).document()
    assert document["who"] == who.answer(boxes, WhoQuestion(by="unit"))["who"]


def test_tracks_add_up_to_who_ran(boxes: Recording) -> None:
    made = who.tracks(boxes, TracksQuestion(by="process", columns=7))
    table = {row["name"]: row for row in who.answer(boxes, WhoQuestion(by="process"))["who"]}
    columns = made.scalars["columns"]
    for number, track in enumerate(made.scalars["tracks"]):
        cut = slice(number * columns, (number + 1) * columns)
        assert int(made.arrays["samples"][cut].sum()) == table[track["name"]]["samples"] == track["samples"]
        kernel = int(made.arrays["kernel"][cut].sum())
        assert kernel == round(table[track["name"]]["kernel_ratio"] * track["samples"])
    few = who.tracks(boxes, TracksQuestion(by="process", top=1))
    assert (len(few.scalars["tracks"]), few.scalars["others"]) == (1, len(table) - 1)


def test_programs_are_named_by_their_scripts_and_one_that_runs_on_many_cores_is_one(tmp_path: Path) -> None:
    node = Node()
    stack = node.stack([node.frame("f")])
    ran = {
        "train.py": [node.task(pid, "python3", cmdline=f"python3 train.py --rank {pid}") for pid in (10, 11)],
        "hf.py": [node.task(12, "python3", cmdline="/usr/bin/python3 /job/hf.py")],
        "kworker": [node.task(pid, f"kworker/{pid}:1") for pid in (20, 21)],
        "trainer": [node.task(30, "trainer"), node.task(30, "pt_data_worker", tid=31)],
    }
    for number, task in enumerate(task for tasks in ran.values() for task in tasks):
        node.sample(START_US + number, 0, task, stack)
    write_segment(tmp_path, node.tables)
    with open_recording(tmp_path) as recording:
        document = flamegraph.answer(recording, FlamegraphQuestion(by="program", prune=0.0)).document()
    found = {child["name"]: child["value"] for child in document["root"]["children"]}
    assert found == {name: len(tasks) for name, tasks in ran.items()}
