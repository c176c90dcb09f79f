"""A culprit in no unit stands still, and goes on when that is undone; whoever has its number since does not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.remedies import TARGET, systemd, yes

from zombiescope.diagnosis.incident import Actor, Cause, Fix, Incident
from zombiescope.fix import guard, holds, log, plan_incident, process_steps, signals
from zombiescope.fix.actions import make
from zombiescope.fix.apply import apply
from zombiescope.fix.step import ActionFailedError
from zombiescope.fix.undo import undo
from zombiescope.kernel.process import read_stat
from zombiescope.model.plans.plan import Plan
from zombiescope.model.plans.step import Act, change

HOUR_US = 3_600_000_000


@pytest.fixture
def leaker() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-c", "print(1, flush=True); input()"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def comm(pid: int) -> str:
    return Path(f"/proc/{pid}/comm").read_text().strip()


def incident(culprit: Actor, ago_us: int = -HOUR_US) -> Incident:
    to_us = time.time_ns() // 1000 - ago_us
    act = Act("unit.disable", (("unit", str(culprit.unit)),))
    stops = change("x", "d", touches="t", risk="r", undo="u", verify="c", act=act)
    fix = Fix("x", (stops,) if culprit.unit else ())
    cause = Cause("zombie-memcg", "kernel", 0.9, "x", Actor("kubelet"), culprit, (), (), fix)
    return Incident("ab", 0, to_us, "closed", "critical", (), (cause,))


def state(pid: int) -> str:
    stat = read_stat(pid)
    assert stat is not None
    return stat.state


def test_it_stands_still_and_goes_on(leaker: int, tmp_path: Path) -> None:
    one = incident(Actor(comm(leaker), leaker))
    (step,) = process_steps.steps(one, one.causes[0], live=True)
    assert (step.part, step.undo) == ("stop-gap", f"kill -CONT {leaker}")
    with log.opened(tmp_path / "log") as held:
        assert [each.state for each in apply(Plan(TARGET, "x", (step,)), held, yes).steps] == ["applied"]
        assert state(leaker) == "T"
        assert [each.ok for each in undo(held, TARGET, yes)] == [True]
    assert state(leaker) != "T"


def test_a_unit_that_is_only_a_name_in_a_path_gives_way_to_the_process(
    leaker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_incident, "MORE", {"zombie-memcg": (process_steps.steps,)})
    one = incident(Actor(comm(leaker), leaker, unit="agent.service"))
    with systemd() as bus:
        # GIVEN nobody named the process THEN it is shown and not done
        (shown,) = [step for step in plan_incident.plan(one, "lab").steps if step.id.startswith("process.suspend")]
        assert (shown.state, shown.action, shown.protects) == ("skipped", None, comm(leaker))
        named = plan_incident.plan(one, "lab", force=[comm(leaker)])
        assert [step.id.split(":")[0] for step in named.changes] == ["process.suspend"]
        bus.add("agent.service")
        assert [step.id for step in plan_incident.plan(one, "lab").changes] == ["unit.disable:agent.service"]


def test_nobody_else_is_suspended(leaker: int) -> None:
    name = comm(leaker)
    for culprit, ago_us in (
        (Actor("other", leaker), -HOUR_US),  # a number that was given again
        (Actor(name, leaker), HOUR_US),  # started after the incident
        (Actor(comm(os.getpid()), os.getpid()), -HOUR_US),
        (Actor("systemd", 1), -HOUR_US),
        (Actor(name, leaker, container="c0ffee"), -HOUR_US),
    ):
        one = incident(culprit, ago_us)
        assert list(process_steps.steps(one, one.causes[0], live=True)) == [], culprit
    one = incident(Actor(name, leaker))
    assert list(process_steps.steps(one, one.causes[0], live=False)) == []


def test_whoever_has_its_number_now_is_left_alone(leaker: int) -> None:
    other = make("process.suspend", {"pid": leaker, "start_time_ticks": 1})
    assert other.is_applied()
    other.apply()
    other.undo({"stopped": False})
    assert state(leaker) != "T"
    with pytest.raises(ActionFailedError):
        make("process.suspend", {"pid": 1, "start_time_ticks": 1})


def test_a_process_that_is_in_a_protected_unit_by_now_is_not_suspended_without_its_name(
    leaker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording knows no unit of it; its cgroup does."""
    monkeypatch.setattr(plan_incident, "MORE", {"zombie-memcg": (process_steps.steps,)})
    monkeypatch.setattr(guard, "unit_of", lambda _: "ssh.service")
    one = incident(Actor(comm(leaker), leaker))
    with systemd() as bus:
        bus.add("ssh.service")
        plan = plan_incident.plan(one, "lab")
        assert plan.changes == ()
        assert [(step.state, step.protects) for step in plan.steps[:1]] == [("skipped", "ssh.service")]
        assert plan_incident.plan(one, "lab", force=["ssh.service"]).changes


def test_a_parent_of_processes_that_compute_on_an_accelerator_is_never_suspended(
    leaker: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_incident, "MORE", {"zombie-memcg": (process_steps.steps,)})
    monkeypatch.setattr(holds, "uses_accelerator", lambda pids: next(iter(pids)))
    one = incident(Actor(comm(leaker), leaker))
    plan = plan_incident.plan(one, "lab", force=[comm(leaker)])
    assert plan.changes == ()
    assert plan.steps[0].kind == "advice"


def test_a_signal_goes_to_that_very_process_or_to_none(leaker: int) -> None:
    stat = read_stat(leaker)
    assert stat is not None
    assert not signals.send(leaker, stat.start_time_ticks + 1, signal.SIGSTOP)
    assert state(leaker) != "T"
    assert signals.send(leaker, stat.start_time_ticks, signal.SIGSTOP)
    assert signals.send(leaker, stat.start_time_ticks, signal.SIGCONT)
    assert not signals.send(2**22 - 1, 1, signal.SIGCONT)
