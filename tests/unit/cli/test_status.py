"""`zombiescope status --condition`: one line and an exit code for node-problem-detector and Slurm."""

from __future__ import annotations

from typing import Any

import pytest
from tests.helpers.cli import Cli

from zombiescope.agent.condition import NO, UNKNOWN, YES, verdict

LEAK = {
    "id": "a1", "from": 1.0, "state": "open", "severity": "critical", "symptoms": [{"kind": "core_saturated"}],
    "causes": [{"pattern": "zombie-memcg", "summary": "kubelet walks 68,440 dead memory cgroups " * 4}],
}  # fmt: skip
WELL = {"recorder": ("ok", ""), "live diagnosis": ("ok", "")}


def document(*incidents: dict[str, Any], died: float | None = None, **parts: tuple[str, str]) -> dict[str, Any]:
    states = {**WELL, **{name.replace("_", " "): said for name, said in parts.items()}}
    listed = [{"name": name, "state": state, "why": why} for name, (state, why) in states.items()]
    return {"recorders": [{"died": died, "incidents": list(incidents), "parts": listed}]}


@pytest.mark.parametrize(
    ("name", "incident", "expected"),
    [
        ("any", LEAK, YES),
        ("CgroupLeak", LEAK, YES),
        ("CoreStarvation", LEAK, YES),
        ("UnitCrashLoop", LEAK, NO),
        ("any", {**LEAK, "state": "closed"}, NO),
        ("any", {**LEAK, "severity": "info"}, NO),
    ],
)
def test_an_open_incident_means_its_conditions(name: str, incident: dict[str, Any], expected: int) -> None:
    code, line = verdict(document(incident), name)
    assert code == expected
    assert len(line) <= 80
    assert ("kubelet walks" in line) == (expected == YES)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"recorders": []}, "no recorder"),
        (document(died=5.0), "no recorder"),
        (document(live_diagnosis=("failed", "it died of SIGSEGV")), "SIGSEGV"),
        (document(live_diagnosis=("off", "")), "off"),
        (document(recorder=("hung", "silent for 12 s")), "silent"),
    ],
)
def test_where_no_diagnosis_works_nobody_knows(given: dict[str, Any], why: str) -> None:
    code, line = verdict(given, "any")
    assert code == UNKNOWN
    assert why in line


def test_an_incident_that_was_found_is_one_although_the_diagnosis_died_since() -> None:
    assert verdict(document(LEAK, live_diagnosis=("failed", "it died")), "any")[0] == YES


def test_the_command_ends_with_the_code_and_prints_one_line(cli: Cli) -> None:
    done = cli("status", "--condition", "any", ZOMBIESCOPE_RUNTIME_DIR=str(cli.home))
    assert (done.code, done.err, done.out.count("\n")) == (2, "", 1)
    wrong = cli("status", "--condition", "Tired")
    assert wrong.code == 2
    assert "CoreStarvation" in wrong.err
