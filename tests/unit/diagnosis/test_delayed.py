"""A measured delay stands in the chain of an incident; nearness alone does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import FROM_S, SYSCALL, TO_S, Scene
from tests.helpers.schedule import ran, softirq_waited, waited, watched

from zombiescope.diagnosis.incident import Cause, Link

FROM_US, TO_US = START_US + FROM_S * SECOND, START_US + TO_S * SECOND
AGENT, TRAIN = 1201, 4711


@pytest.fixture
def scene() -> Scene:
    """agent holds core 1 in the kernel for six seconds, and nothing says why."""
    return Scene(kernel="6.8.0").hog(" ".join((*SYSCALL, "__x64_sys_ioctl", "odd_ioctl")), comm="agent", cpu=1)


def first(scene: Scene, place: Path) -> Cause:
    (incident,) = scene.diagnose(place).incidents
    return incident.causes[0]


def delays_of(cause: Cause) -> list[Link]:
    return [link for link in cause.chain if link.step == "delay"]


def held(scene: Scene, *, to_us: int = TO_US) -> None:
    watched(scene.made, 1, FROM_US, to_us)
    ran(scene.made, 1, scene.made.task(AGENT, "agent"), FROM_US, to_us)


def test_a_measured_delay_is_a_link_with_its_number_and_the_summary_says_it(scene: Scene, tmp_path: Path) -> None:
    held(scene)
    waited(scene.made, 1, scene.made.task(TRAIN, "train.py"), FROM_US + SECOND, FROM_US + 5 * SECOND)
    cause = first(scene, tmp_path)
    (link,) = delays_of(cause)
    assert (link.value, link.value_unit, link.source, link.at_us) == (4000.0, "ms", "schedule", FROM_US + SECOND)
    assert link.path[-1:] == ("odd_ioctl",)
    assert "train.py" in link.fact
    assert link.fact.partition(", in ")[0] in cause.summary


def test_a_starved_card_is_told_first(scene: Scene, tmp_path: Path) -> None:
    held(scene)
    waited(scene.made, 1, scene.made.task(TRAIN, "train.py"), FROM_US, TO_US)
    softirq_waited(scene.made, 1, 3, FROM_US + SECOND, FROM_US + 3 * SECOND, "eth0")
    card, train = delays_of(first(scene, tmp_path))
    assert (card.value, train.value) == (2000.0, 6000.0)
    assert "eth0" in card.fact


def test_who_waited_for_somebody_else_was_not_delayed_by_the_hog(scene: Scene, tmp_path: Path) -> None:
    held(scene)
    other = scene.made.task(77, "other")
    watched(scene.made, 0, FROM_US, TO_US)
    ran(scene.made, 0, other, FROM_US, TO_US)
    waited(scene.made, 0, scene.made.task(TRAIN, "train.py"), FROM_US, TO_US)
    (link,) = delays_of(first(scene, tmp_path))
    assert link.value == 0.0, "nobody waited for the hog, and that was watched"


def test_nobody_waited_is_only_said_of_a_core_that_was_watched_for_most_of_it(scene: Scene, tmp_path: Path) -> None:
    held(scene, to_us=FROM_US + SECOND)
    assert delays_of(first(scene, tmp_path)) == []


def test_without_a_snapshot_nothing_is_said(scene: Scene, tmp_path: Path) -> None:
    assert delays_of(first(scene, tmp_path)) == []
