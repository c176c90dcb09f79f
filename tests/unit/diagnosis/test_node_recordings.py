"""Faults on a whole node with systemd and cgroup v2, recorded in a machine of `lab node` (Linux 6.1, emulated)."""

from __future__ import annotations

from pathlib import Path

from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.diagnosis.incident import Cause
from zombiescope.store.reader import open_recording

RECORDINGS = Path(__file__).parents[2] / "fixtures" / "recordings"


def first_causes(name: str) -> list[Cause]:
    with open_recording(RECORDINGS / f"{name}.zscope") as recording:
        found = diagnose(recording, recording.start_us, recording.end_us + 1)
    return [incident.causes[0] for incident in found.incidents if incident.causes]


def test_the_founding_case_with_a_real_systemd_ends_in_the_unit_that_leaks_and_in_its_end() -> None:
    (cause,) = [one for one in first_causes("node-zombie-unit") if one.pattern == "zombie-memcg"]
    unit = "zombiescope-lab-zombie-unit-agent.service"
    assert cause.culprit is not None
    assert cause.hog is not None
    assert (cause.hog.comm, cause.culprit.unit) == ("walker", unit)
    assert cause.confidence > 0.9
    assert any(step.command == f"systemctl disable --now {unit}" for step in cause.fix.steps)


def test_what_is_killed_at_its_limit_is_named_with_the_cgroup_and_not_the_console_that_prints_it() -> None:
    causes = first_causes("node-oom-loop")
    (cause,) = [one for one in causes if one.pattern == "oom-kill"]
    assert cause.culprit is not None
    assert cause.culprit.comm == "grower"
    assert (cause.culprit.cgroup or "").endswith("/limited")
    assert "oom-console" not in {one.pattern for one in causes}
