"""Cores that interrupt each other: told by the rate of one core, by the larger counter, and only when it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
from tests.helpers.scenes import SYSCALL, Scene

MPROTECT = f"{' '.join(SYSCALL)} __x64_sys_mprotect do_mprotect_pkey tlb_finish_mmu flush_tlb_mm_range {{}}"
FLUSH = MPROTECT.format("on_each_cpu_cond_mask smp_call_function_many_cond")


def test_it_is_found_and_explained_although_nobody_fills_a_core(tmp_path: Path) -> None:
    # GIVEN a sender with 0.55 of a CPU in the kernel, as measured
    scene = Scene(cpus=2).vmstat().interrupts("TLB", 21_000).hog(FLUSH, "unmapper", share=0.55, from_s=0, to_s=20)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert {symptom.kind for symptom in incident.symptoms} == {"interrupt_storm"}
    cause = incident.causes[0]
    assert (cause.pattern, cause.hog.comm) == ("tlb-shootdown", "unmapper")


@pytest.mark.parametrize("cpus", [8, 96, 192])
def test_one_core_of_many_is_enough(tmp_path: Path, cpus: int) -> None:
    scene = Scene(cpus=cpus).vmstat().interrupts("TLB", 21_000).hog(FLUSH, "unmapper", share=0.55, from_s=0, to_s=20)
    (incident,) = scene.diagnose(tmp_path).incidents
    (storm,) = incident.symptoms
    assert (storm.facts["core"], storm.facts["cores"]) == (0, 1)
    assert storm.text.startswith("core 0 was interrupted by other cores 21,000 times a second")


def test_what_many_cores_take_together_is_no_storm_of_one(tmp_path: Path) -> None:
    # GIVEN 96 cores with 4,000 a second each
    scene = Scene(cpus=96).vmstat()
    number = scene.made.series("interrupts", "TLB")
    for second in range(20):
        for cpu in range(96):
            scene.made.interrupt(START_US + (second + 1) * SECOND, number, cpu, 4_000)
    assert scene.diagnose(tmp_path).incidents == ()


@pytest.mark.parametrize(("before", "storms"), [(2_000, 1), (9_500, 0)])
def test_what_a_core_always_takes_is_its_usual(tmp_path: Path, before: int, storms: int) -> None:
    scene = Scene(cpus=16).vmstat().hog(FLUSH, "unmapper", share=0.55, from_s=0, to_s=20)
    number = scene.made.series("interrupts", "CAL")
    for second in range(20):
        scene.made.interrupt(START_US + (second + 1) * SECOND, number, 3, before if second < 8 else 12_000)
    found = [one for incident in scene.diagnose(tmp_path).incidents for one in incident.symptoms]
    assert len([one for one in found if one.kind == "interrupt_storm"]) == storms


@pytest.mark.parametrize(("label", "per_s", "cpus"), [("TLB", 9_000, 2), ("TLB", 9_000, 8), ("RES", 90_000, 2)])
def test_few_for_each_core_or_mere_wake_ups_are_no_symptom(tmp_path: Path, label: str, per_s: int, cpus: int) -> None:
    scene = Scene(cpus=cpus).vmstat().interrupts(label, per_s).hog(FLUSH, "unmapper", share=0.35, from_s=0, to_s=20)
    assert scene.diagnose(tmp_path).incidents == ()


def test_what_two_counters_tell_is_told_once(tmp_path: Path) -> None:
    scene = Scene(cpus=2).vmstat().interrupts("TLB", 21_000).interrupts("CAL", 21_500)
    scene.hog(FLUSH, "unmapper", share=0.55, from_s=0, to_s=20)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert len(incident.symptoms) == 1
