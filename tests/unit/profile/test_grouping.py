"""Flame graphs by owner: every sample is below the unit, container, pod, image or task that it is of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.boxes import write_boxes
from tests.helpers.recordings import write_recording

from zombiescope._errors import QuestionError
from zombiescope.documents import flamegraph
from zombiescope.profile.grouping import GroupedBy
from zombiescope.questions.sides import window
from zombiescope.questions.views import FlamegraphQuestion
from zombiescope.recording.reader import Recording, open_recording

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
def test_whose_a_stack_is_stands_below_it(boxes: Recording, by: GroupedBy, names: set[str]) -> None:
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


def test_a_comparison_is_not_grouped(boxes: Recording) -> None:
    with pytest.raises(QuestionError):
        flamegraph.answer(boxes, FlamegraphQuestion(by="pod", against=window("+0s..+10s")))
