"""Cores that interrupt each other: told by the rate for each core, by the larger counter, and only when it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest
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


@pytest.mark.parametrize(("label", "per_s", "cpus"), [("TLB", 9_000, 2), ("TLB", 21_000, 8), ("RES", 90_000, 2)])
def test_few_for_each_core_or_mere_wake_ups_are_no_symptom(tmp_path: Path, label: str, per_s: int, cpus: int) -> None:
    scene = Scene(cpus=cpus).vmstat().interrupts(label, per_s).hog(FLUSH, "unmapper", share=0.35, from_s=0, to_s=20)
    assert scene.diagnose(tmp_path).incidents == ()


def test_what_two_counters_tell_is_told_once(tmp_path: Path) -> None:
    scene = Scene(cpus=2).vmstat().interrupts("TLB", 21_000).interrupts("CAL", 21_500)
    scene.hog(FLUSH, "unmapper", share=0.55, from_s=0, to_s=20)
    (incident,) = scene.diagnose(tmp_path).incidents
    assert len(incident.symptoms) == 1
