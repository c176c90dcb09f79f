"""A hog that no pattern explains: the report carries what an engineer needs next, and a lost core is a warning."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.made import SECOND, START_US
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


def test_its_calls_files_and_callers_are_in_the_report(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(SYSCALL, "oddity", unit="oddity.service")
    known = {"pid": 1201, "calls_per_s": 12_000, "reads_per_s": 0, "files": ["/dev/odd0", "socket:[4711]"]}
    scene.event("hog_files", "looked", at_s=8, severity="info", **known)
    scene.event("hog_files", "another", at_s=8, severity="info", pid=4, calls_per_s=1, files=["/etc/passwd"])
    (incident,) = scene.diagnose(tmp_path).incidents
    told = " | ".join(step.does for step in incident.causes[0].fix.steps)
    assert "it makes 12,000 system calls a second" in told
    assert "it works on /dev/odd0, socket:[4711]" in told
    assert "the native function that makes the call: main" in told
    assert "/etc/passwd" not in told


def test_the_python_line_that_makes_the_call_is_in_the_report(tmp_path: Path) -> None:
    scene = Scene().vmstat().hog(SYSCALL, "oddity")
    node = scene.made
    frames = [node.frame("poll", "python", "/opt/app/poller.py"), node.frame("ioctl", "python", "/usr/lib/x.py")]
    until_us = START_US + 10 * SECOND
    node.python(START_US + 6 * SECOND, task_tid=1201, frames=frames, lines=(88, 7), until_us=until_us, looks=40)
    (incident,) = scene.diagnose(tmp_path).incidents
    told = " | ".join(step.does for step in incident.causes[0].fix.steps)
    assert "Python: ioctl (/usr/lib/x.py:7)" in told
