"""A hog that no pattern explains: the report carries what an engineer needs next, and a lost core is a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.scenes import Scene

from zombiescope.diagnosis.diagnose import _lost_a_core
from zombiescope.diagnosis.pattern import FALLBACK
from zombiescope.diagnosis.symptom import Symptom
from zombiescope.diagnosis.symptoms import kernel_hog

SYSCALL = "entry_SYSCALL_64_after_hwframe do_syscall_64 __x64_sys_ioctl odd_driver_ioctl odd_driver_walk"


def test_the_program_its_unit_and_its_system_call_are_in_the_report(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(SYSCALL, "oddity", unit="oddity.service", exe="/opt/oddity")
    scene.made.task(1201, "oddity", tid=1202, cmdline="/opt/oddity --poll 1ms")  # another thread, asked in time
    (incident,) = scene.diagnose(tmp_path).incidents
    cause = incident.causes[0]
    assert cause.pattern == FALLBACK
    told = " | ".join(step.does for step in cause.fix.steps)
    assert "/opt/oddity --poll 1ms" in told
    assert "oddity.service" in told
    assert "calls ioctl" in told
    assert "odd_driver_walk" in told


@pytest.mark.parametrize(
    ("cores", "seconds", "new", "lost"),
    [(1.0, 12, True, True), (0.95, 10, True, True), (0.5, 60, True, False), (1.0, 5, True, False),
     (1.0, 60, False, False)],
)  # fmt: skip
def test_as_much_as_a_core_for_ten_seconds_is_a_warning(cores: float, seconds: int, *, new: bool, lost: bool) -> None:
    symptom = Symptom(kernel_hog.DETECTOR, 0, seconds * 1_000_000, "", facts={"ratio": cores, "new": new})
    assert _lost_a_core(symptom) is lost
