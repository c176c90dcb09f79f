"""Every pattern's fix is a plan: steps with ids of their own, and nothing that can be applied without a way back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.remedies import systemd
from tests.helpers.scenes import Scene

from zombiescope.audit.finding import Finding
from zombiescope.diagnosis.incident import Actor, Cause, Fix, Incident
from zombiescope.fix import actions, plan_finding, plan_incident, zombie_steps
from zombiescope.fix.actions.setting import WriteSetting
from zombiescope.fix.step import ActionFailedError, Step, bounded, quoted
from zombiescope.model.plans.step import RELEASE, Act, advice, change

MOST_STEPS = 60
WAY_BACK: dict[str, Any] = {"touches": "t", "risk": "r", "undo": "u", "verify": "c"}


def incident(fix: Fix, culprit: Actor | None = None) -> Incident:
    cause = Cause("zombie-memcg", "kernel", 0.9, "x", Actor("kubelet"), culprit, (), (), fix)
    return Incident("ab12", 0, 1, "closed", "critical", (), (cause,))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_every_pattern_makes_a_plan(row: Row, tmp_path: Path) -> None:
    found = row.confirms(row.base(Scene())).diagnose(tmp_path)
    with systemd():
        plans = [plan_incident.plan(one, "lab", live=False) for one in found.incidents]
    assert plans
    for plan in plans:
        names = [step.id for step in plan.steps]
        assert len(names) == len(set(names)) <= MOST_STEPS
        parts = [step.part for step in plan.steps if step.kind != "look"]
        assert {"stop-gap", "lasting"} <= set(parts), "a stop-gap and a lasting fix, or why there is none"
        assert parts.count("last-resort") == any(step.id == "reboot" for step in plan.steps)
        assert plan.changes or plan.why_nothing
        for step in plan.steps:
            assert step.does
            assert step.kind == "advice" or step.command is not None
            assert step.action is None or (step.risk and step.undo and step.verify), step


def test_what_only_measures_is_no_stop_gap_and_is_not_applied(tmp_path: Path) -> None:
    (row,) = [row for row in ROWS if row.pattern == "bpf-agent"]
    (found, *_) = row.confirms(row.base(Scene())).diagnose(tmp_path).incidents
    with systemd():
        plan = plan_incident.plan(found, "lab", live=False)
    assert plan.changes == ()
    assert {step.part for step in plan.steps if "bpf_stats_enabled" in (step.command or "")} == {"look"}
    assert "stop the agent" in plan.part("stop-gap")[0].does


def test_settings_of_the_kernel_are_a_stop_gap() -> None:
    act = Act("setting", (("path", "/proc/sys/vm/swappiness"), ("value", "1")))
    fix = Fix("x", (change("sysctl -w vm.swappiness=1", "d", **WAY_BACK, part="stop-gap", act=act),))
    (step, _) = plan_incident.plan(incident(fix), "lab").steps
    assert step.part == "stop-gap"
    assert step.touches[0].endswith("becomes 1, until the next boot")


def test_a_protected_unit_is_shown_and_done_only_when_it_is_named() -> None:
    fix = Fix("x", (advice("no command is given for kubelet.service"),))
    one = incident(fix, Actor(unit="kubelet.service"))
    with systemd() as bus:
        bus.add("kubelet.service")
        assert plan_incident.plan(one, "lab").changes == ()
        (step,) = plan_incident.plan(one, "lab", force=["kubelet.service"]).changes
    assert step.id == "unit.disable:kubelet.service"


def test_a_trigger_that_is_protected_is_not_ended_with_its_unit() -> None:
    act = Act("unit.disable", (("unit", "x.service"),))
    fix = Fix("x", (change("systemctl stop x", "d", **WAY_BACK, act=act),))
    with systemd() as bus:
        bus.add("x.service", triggered_by=("docker.socket",))
        bus.add("docker.socket")
        plan = plan_incident.plan(incident(fix), "lab")
    assert [step.state for step in plan.steps[:2]] == ["skipped", "planned"]
    assert [step.id for step in plan.changes] == ["unit.disable:x.service"]


def test_a_unit_that_must_stay_is_limited() -> None:
    act = Act("unit.disable", (("unit", "x.service"),))
    fix = Fix("x", (change("systemctl stop x", "d", **WAY_BACK, act=act),))
    with systemd() as bus:
        bus.add("x.service")
        (step,) = plan_incident.plan(incident(fix), "lab", keep=["x.service"]).changes
    assert step.id == "unit.limit:x.service"


def test_zombies_are_released_where_the_evidence_says_and_the_unit_that_is_stopped_does_not_survive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[list[str], set[str]]] = []

    def steps(paths: list[str], ending: set[str]) -> Iterator[Step]:
        asked.append((paths, ending))
        return iter(())

    monkeypatch.setattr(zombie_steps, "steps", steps)
    stops = change("x", "d", **WAY_BACK, act=Act("unit.disable", (("unit", "x.service"),)))
    release = replace(advice("release them"), act=Act(RELEASE, (("0", "/system.slice/x.service/job-*"),)))
    one = incident(Fix("x", (stops, release, release)), Actor(unit="x.service"))
    with systemd() as bus:
        bus.add("x.service")
        plan_incident.plan(one, "lab")
        plan_incident.plan(one, "lab", keep=["x.service"])
        shown = plan_incident.plan(one, "lab", live=False).steps
    path = ["/system.slice/x.service/job-*"]
    assert asked == [(path, {"x.service"}), (path, set())]
    assert [step.does for step in shown if step.kind == "advice"][:1] == ["release them"]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/proc/sys/../../etc/passwd", "/sys/../etc/x", "proc/sys/vm", "/sys/\n"]
)
def test_only_settings_of_the_kernel_are_written(path: str) -> None:
    with pytest.raises(ValueError, match="not a kernel setting"):
        WriteSetting(path, "1")
    with pytest.raises(ActionFailedError):
        actions.make("setting", {"path": path, "value": "1"})


def test_a_kind_that_is_not_known_makes_no_action() -> None:
    with pytest.raises(ActionFailedError, match="no step of kind"):
        actions.make("rm -rf", {})


def test_what_is_touched_is_bounded_and_harmless() -> None:
    lines = bounded([f"\x1b[2J{number}" for number in range(1000)])
    assert len(lines) == 21
    assert lines[-1] == "and 980 more"
    assert all(line.isprintable() for line in lines)
    assert quoted(("rm", "a b;c")) == "rm 'a b;c'"
    assert quoted(("rm", "a\nb")) is None


def test_a_line_of_audit_that_changes_something_says_what_it_risks_and_how_to_go_back() -> None:
    lines = ("journalctl --unit x.service --lines 50", "sysctl --system", "# or nothing", "systemctl stop x.service")
    finding = Finding("rule:x", "rule", "x.service", "warning", "why", (), lines)
    with systemd() as bus:
        bus.add("x.service")
        look, change_, words, ends = plan_finding.plan(finding).steps
    assert [one.kind for one in (look, change_, words)] == ["look", "change", "advice"]
    assert change_.touches == ("why",)
    assert all((change_.risk, change_.undo, change_.verify))
    assert ends.id == "unit.disable:x.service"
