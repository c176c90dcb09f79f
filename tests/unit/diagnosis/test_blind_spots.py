"""Holes in the samples: which are our own, which are a core's, and what may stop a whole machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.made import HZ, SECOND, START_US
from tests.helpers.pattern_scenes import lost, paused
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Cause

CALL = "entry_SYSCALL_64_after_hwframe do_syscall_64"
STORM = f"{CALL} kernel_clone copy_process dup_mm copy_page_range"


def kinds(found: Diagnosis) -> set[str]:
    return {symptom.kind for incident in found.incidents for symptom in incident.symptoms}


def causes(found: Diagnosis) -> dict[str, Cause]:
    return {cause.pattern: cause for incident in found.incidents for cause in incident.causes}


def late(scene: Scene, late_us: int) -> Scene:
    """The recorder's own ticks came late, in every second."""
    for second in range(20):
        scene.made.add("cost", time=START_US + (second + 1) * SECOND, tick_late_us=late_us, lost=0)
    return scene


def blind(scene: Scene, source: str) -> Scene:
    scene.made.add("gaps", time=START_US + 5 * SECOND, end=START_US + 11 * SECOND, source=source, why="it raised")
    return scene


def test_samples_that_we_dropped_are_no_hypervisor(tmp_path: Path) -> None:
    # GIVEN a fork storm that fills the rings of all cores, and 0.2% of steal
    scene = paused(lost(Scene().vmstat(), *range(4)))
    scene.hog(STORM, "sh", share=0.9)
    for cpu in range(4):
        scene.mode(cpu, steal=0.002, system=0.9)
    found = scene.diagnose(tmp_path)
    # THEN nobody took the cores away, and nothing stood still
    assert not {"steal", "stall", "machine_stall"} & kinds(found)
    assert not {"steal", "machine-pause"} & causes(found).keys()
    assert any("did not fit into its ring" in said for said in found.not_checked)


def test_a_loss_on_one_core_does_not_explain_the_hole_of_another(tmp_path: Path) -> None:
    scene = lost(Scene().vmstat().mode(2, max_gap_us=300_000).mode(1, max_gap_us=300_000), 1)
    stalls = {one.cpu for incident in scene.diagnose(tmp_path).incidents for one in incident.symptoms}
    assert stalls == {2}


def test_a_loss_is_reported_up_to_a_tick_after_its_hole(tmp_path: Path) -> None:
    scene = Scene().vmstat().mode(2, max_gap_us=300_000)
    for second in (6, 8, 10):
        at_us = START_US + second * SECOND
        scene.made.add("gaps", time=at_us, end=at_us + SECOND, source="stack samples",
                       why=f"{second} records of cpu 2 did not fit into its ring")  # fmt: skip
    assert scene.diagnose(tmp_path).incidents == ()


@pytest.mark.parametrize("source", ["recorder", "stack samples", "stack samples of cpu 2", "per-core time (reader)"])
def test_a_hole_in_a_gap_of_ours_is_no_symptom(tmp_path: Path, source: str) -> None:
    scene = blind(Scene().vmstat().mode(2, max_gap_us=300_000), source)
    assert scene.diagnose(tmp_path).incidents == ()


def test_a_gap_of_another_source_explains_no_hole(tmp_path: Path) -> None:
    scene = blind(Scene().vmstat().mode(2, max_gap_us=300_000), "vmstat")
    assert kinds(scene.diagnose(tmp_path)) == {"stall"}


def test_a_tick_of_ours_that_came_late_is_no_stall(tmp_path: Path) -> None:
    scene = late(Scene().vmstat().mode(2, max_gap_us=300_000), 320_000)
    assert scene.diagnose(tmp_path).incidents == ()
    assert late(paused(Scene().vmstat()), 900_000).diagnose(tmp_path / "all").incidents == ()


def test_a_machine_that_stood_still_makes_us_late_and_is_reported(tmp_path: Path) -> None:
    # GIVEN samples that never came: a recorder that is merely late finds them in the rings
    scene = late(paused(Scene().vmstat()), 900_000)
    for cpu in range(4):
        scene.mode(cpu, samples=HZ // 10, idle_samples=0, idle=0.0, system=0.1)
    assert kinds(scene.diagnose(tmp_path)) == {"machine_stall"}


@pytest.mark.parametrize(
    ("hypervisor", "says", "never"),
    [
        pytest.param(
            {"virtual": True, "name": "KVM"}, "host paused this virtual machine (KVM)", "no hypervisor", id="kvm"
        ),
        pytest.param({"virtual": False, "name": None}, "system management interrupt", "host paused", id="bare metal"),
        pytest.param(None, "either its host paused it, if it is virtual", "no hypervisor", id="not recorded"),
    ],
)
def test_a_machine_that_stood_still_says_what_it_may_be(
    tmp_path: Path, hypervisor: dict[str, Any] | None, says: str, never: str
) -> None:
    scene = paused(Scene().vmstat()).hog(f"{CALL} do_futex", "python", share=0.3)
    if hypervisor is not None:
        scene.node["hypervisor"] = hypervisor
    found = scene.diagnose(tmp_path)
    assert causes(found).keys() == {"machine-pause"}
    cause = causes(found)["machine-pause"]
    assert says in cause.summary
    assert never not in cause.summary
    assert "stop_machine" in cause.summary
    assert cause.confidence <= 0.5
    assert cause.culprit is None
    assert "nothing on this node is to blame" not in cause.summary


def test_steal_is_reported_where_steal_was_counted(tmp_path: Path) -> None:
    scene = Scene().vmstat()
    for cpu in range(4):
        scene.mode(cpu, steal=0.6, max_gap_us=600_000)
    found = scene.diagnose(tmp_path)
    assert kinds(found) == {"steal"}
    assert causes(found)["steal"].confidence > 0.5
