"""Every report shows the same plan: what a step touches, its risk, its way back, how it is verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.diagnosis.test_zombie_memcg import cause_of, incident_of, new

from zombiescope.diagnosis import patterns
from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.incident import Fix
from zombiescope.diagnosis.pattern import Pattern
from zombiescope.diagnosis.report.document import incident as incident_document
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.diagnosis.report.terminal import lines


def found(directory: Path) -> Diagnosis:
    scene = new().leak("/system.slice/ecs.service", 68_000, 500, 500, "systemd", "ecs.service")
    return Diagnosis("lab", 0, 1, (incident_of(cause_of(scene, directory)),), ())


def test_the_terminal_shows_the_whole_plan_on_request(tmp_path: Path) -> None:
    shown = list(lines(found(tmp_path), str, wordy=True))
    at = next(at for at, line in enumerate(shown) if ("systemctl disable --now ecs.service", "green") in line.text)
    below = shown[at + 1 : at + 6]
    assert [line.head[0][0].strip() for line in below] == ["does", "touches", "risk", "undo", "verify"]
    assert [line.text[0][0] for line in below][3:] == [
        "systemctl enable --now ecs.service",
        "systemctl is-active ecs.service",
    ]
    assert {style for line in below for _, style in (*line.head, *line.text)} == {"dim"}
    looks = next(at for at, line in enumerate(shown) if line.text and "zombiescope cgroups" in line.text[0][0])
    assert "undo" not in shown[looks + 1].head[0][0]


def test_the_terminal_answers_before_it_argues_and_ends_with_the_next_command(tmp_path: Path) -> None:
    diagnosis = found(tmp_path)
    shown = [line.plain.strip() for line in lines(diagnosis, str)]
    incident = diagnosis.incidents[0]
    assert incident.id in shown[1]
    heads = ("Fix", "systemctl disable --now ecs.service", "undo", "Cause", "Evidence", "Next:")
    at = [next(n for n, line in enumerate(shown) if line.startswith(head)) for head in heads]
    assert at == sorted(at)
    assert at[-1] == len(shown) - 1
    assert f"fix --incident {incident.id}" in shown[-1]


def test_the_terminal_folds_symptoms_of_one_table(tmp_path: Path) -> None:
    diagnosis = found(tmp_path)
    (cause,) = diagnosis.incidents[0].causes
    evidence = [line for line in lines(diagnosis, str) if line.head and line.head[0][1] == "cyan"]
    tables = [line.tail.split()[0] for line in evidence if line.head[0][0].strip() == "symptom"]
    assert len(tables) == len(set(tables)) > 0
    whole = [line for line in lines(diagnosis, str, wordy=True) if line.head and line.head[0][1] == "cyan"]
    assert len(whole) == len(cause.chain) >= len(evidence)


def test_markdown_lists_it_below_the_step(tmp_path: Path) -> None:
    text = markdown(found(tmp_path), "x", str)
    assert "1. lasting: `systemctl disable --now ecs.service`\n    - does: stop ecs.service and keep it" in text
    assert "    - undo: `systemctl enable --now ecs.service`\n    - verify: `systemctl is-active ecs.service`\n" in text


def test_the_document_has_it_beside_the_lines(tmp_path: Path) -> None:
    fix = incident_document(found(tmp_path).incidents[0])["causes"][0]["fix"]
    step = next(step for step in fix["plan"] if step["touches"])
    assert step["command"] in fix["steps"]
    assert step["id"] == "unit.disable:ecs.service"
    assert (step["undo"], step["verify"]) == ("systemctl enable --now ecs.service", "systemctl is-active ecs.service")


@pytest.mark.parametrize("pattern", patterns.every(), ids=lambda pattern: pattern.id)
def test_every_pattern_has_a_stop_gap_and_a_lasting_fix_or_says_why_not(pattern: Pattern) -> None:
    assert bool(pattern.stop_gap) != bool(pattern.no_stop_gap)
    steps = pattern.completed(Fix("x")).steps
    assert {step.part for step in steps} == {"stop-gap", "lasting"}
    assert all(step.does and step.does.isprintable() for step in steps)
