"""A step that changes the node is shown with what it touches, its undo and its check, in every report."""

from __future__ import annotations

from pathlib import Path

from tests.unit.diagnosis.test_zombie_memcg import cause_of, incident_of, new

from zombiescope.diagnosis.diagnose import Diagnosis
from zombiescope.diagnosis.report.document import incident as incident_document
from zombiescope.diagnosis.report.markdown import markdown
from zombiescope.diagnosis.report.terminal import lines


def found(directory: Path) -> Diagnosis:
    scene = new().leak("/system.slice/ecs.service", 68_000, 500, 500, "systemd", "ecs.service")
    return Diagnosis("lab", 0, 1, (incident_of(cause_of(scene, directory)),), ())


def test_the_terminal_shows_the_way_back_dimly_below_the_command(tmp_path: Path) -> None:
    shown = list(lines(found(tmp_path), str))
    at = next(at for at, line in enumerate(shown) if ("systemctl disable --now ecs.service", "green") in line.text)
    below = shown[at + 1 : at + 4]
    assert [line.head[0][0].split() for line in below] == [["touches"], ["undo"], ["check"]]
    assert [line.text[0][0] for line in below][1:] == [
        "systemctl enable --now ecs.service",
        "systemctl is-active ecs.service",
    ]
    assert {style for line in below for _, style in (*line.head, *line.text)} == {"dim"}
    looks = next(at for at, line in enumerate(shown) if line.text and "zombiescope cgroups" in line.text[0][0])
    assert "undo" not in shown[looks + 1].head[0][0]


def test_markdown_lists_it_below_the_step(tmp_path: Path) -> None:
    text = markdown(found(tmp_path), "x", str)
    assert "1. `systemctl disable --now ecs.service`\n    - touches: ecs.service is stopped" in text
    assert "    - undo: `systemctl enable --now ecs.service`\n    - check: `systemctl is-active ecs.service`\n" in text


def test_the_document_has_it_beside_the_lines(tmp_path: Path) -> None:
    fix = incident_document(found(tmp_path).incidents[0])["causes"][0]["fix"]
    step = next(step for step in fix["plan"] if step["touches"])
    assert step["text"] in fix["steps"]
    assert (step["undo"], step["check"]) == ("systemctl enable --now ecs.service", "systemctl is-active ecs.service")
