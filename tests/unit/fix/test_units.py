"""How a unit is ended, by what systemd says of it. With a stand-in for systemd (tests/node/test_fix.py has the real
one); here it refuses, forgets units and has them changed by others, which a real one cannot be made to do on time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.remedies import StandInManager, systemd, yes

from zombiescope.fix import guard, log, unit_steps
from zombiescope.fix.actions import drop_in
from zombiescope.fix.actions import unit as units
from zombiescope.fix.actions.drop_in import LimitRestarts
from zombiescope.fix.actions.unit import DisableUnit
from zombiescope.fix.apply import apply
from zombiescope.fix.step import ActionFailedError
from zombiescope.fix.undo import undo
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.node.systemd.manager import Manager, UnitCallError
from zombiescope.node.systemd.watcher import BusUnavailableError

DENIED = UnitCallError("systemd refused StopUnit: Access denied", "run it as root", "x.AccessDenied")


@pytest.fixture
def bus() -> Iterator[StandInManager]:
    with systemd() as made:
        yield made


def ended(unit: str, tmp_path: Path) -> tuple[list[str], list[str]]:
    """What apply and then undo said of each step."""
    plan = Plan(f"test:{unit}", "", distinct(unit_steps.steps(unit)))
    with log.opened(tmp_path / "log") as held:
        done = apply(plan, held, yes)
        back = list(undo(held, plan.target, yes))
    return [step.state for step in done.steps], [one.step for one in back if one.ok]


@pytest.mark.parametrize(
    ("evidence", "running", "stopped"),
    [
        ("/system.slice/x.service", True, True),
        ("/system.slice/x.service", False, True),
        (None, True, True),
        ("/agents.slice/x.service", True, False),
        ("/agents.slice/x.service", False, False),
        ("/user.slice/user-1.slice/user@1.service/app.slice/x.service", True, False),
    ],
)
def test_a_unit_is_stopped_only_where_the_evidence_has_it(
    bus: StandInManager, tmp_path: Path, evidence: str | None, running: bool, stopped: bool
) -> None:
    place = "/system.slice/x.service" if running else ""
    bus.add("x.service", file_state="enabled", control_group=place, slice="system.slice")
    (step,) = unit_steps.steps("x.service", cgroup=evidence)
    with log.opened(tmp_path / "log") as held:
        (done,) = apply(Plan("test:x", "", (step,)), held, yes).steps
    assert (done.state == "applied") is stopped
    assert bool(bus.changes()) is stopped


@pytest.mark.parametrize(
    ("name", "path"),
    [("-.slice", ""), ("system.slice", "/system.slice"), ("a-b-c.slice", "/a.slice/a-b.slice/a-b-c.slice")],
)
def test_slices_nest_by_their_names(name: str, path: str) -> None:
    assert units.slice_path(name) == path


@pytest.mark.parametrize(
    ("file_state", "fragment", "calls"),
    [
        ("enabled", "/lib/x.service", ["disable x.service", "stop x.service", "enable x.service", "start x.service"]),
        ("enabled-runtime", "/run/x", ["disable x.service", "stop x.service", "enable x.service", "start x.service"]),
        ("static", "/lib/x.service", ["mask x.service", "stop x.service", "unmask x.service", "start x.service"]),
        ("generated", "/run/x", ["mask x.service", "stop x.service", "unmask x.service", "start x.service"]),
        ("static", "/etc/systemd/system/x.service", ["stop x.service", "start x.service"]),
        ("disabled", "/lib/x.service", ["stop x.service", "start x.service"]),
        ("transient", "/run/x", ["stop x.service", "start x.service"]),
    ],
)
def test_each_kind_of_unit_has_its_own_end(
    bus: StandInManager, tmp_path: Path, file_state: str, fragment: str, calls: list[str]
) -> None:
    bus.add("x.service", file_state=file_state, fragment=fragment)
    assert ended("x.service", tmp_path) == (["applied"], ["unit.disable:x.service"])
    assert bus.changes() == calls


def test_what_starts_it_is_ended_before_it(bus: StandInManager, tmp_path: Path) -> None:
    bus.add("x.timer", triggered_by=())
    bus.add("x.service", file_state="static", triggered_by=("x.timer",))
    assert ended("x.service", tmp_path)[0] == ["applied", "applied"]
    assert bus.changes()[:2] == ["disable x.timer", "stop x.timer"]


def test_one_that_did_not_run_is_not_started_by_going_back(bus: StandInManager, tmp_path: Path) -> None:
    bus.add("x.service", active_state="inactive")
    ended("x.service", tmp_path)
    assert bus.changes() == ["disable x.service", "enable x.service"]


def test_a_unit_that_vanished_is_ended_already(bus: StandInManager, tmp_path: Path) -> None:
    assert ended("gone.service", tmp_path) == (["applied"], [])
    assert bus.changes() == []


def test_a_unit_that_somebody_starts_again_at_once_is_a_failure(bus: StandInManager, tmp_path: Path) -> None:
    bus.add("x.service")
    bus.comes_back = True
    assert ended("x.service", tmp_path)[0] == ["failed"]


def test_no_permission_half_way_leaves_what_can_be_taken_back(bus: StandInManager, tmp_path: Path) -> None:
    bus.add("x.service")
    bus.refuses["stop"] = DENIED
    states, back = ended("x.service", tmp_path)
    assert states == ["failed"]
    assert back == ["unit.disable:x.service"]
    assert bus.units["x.service"].file_state == "enabled"


def test_a_bus_that_stops_answering_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "bus"
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen()
        with pytest.raises(BusUnavailableError, match="did not answer"):
            Manager(f"unix:path={path}", call_s=0.3).unit("x.service")


@pytest.mark.parametrize(
    "unit", ["-x.service", "a b.service", "x.service\n", "x", "", "a/b.service", "é.service", "x" * 300 + ".service"]
)
def test_a_name_that_systemd_does_not_give_makes_no_action(unit: str) -> None:
    with pytest.raises(ValueError, match="not a systemd unit name"):
        DisableUnit(unit)


def test_names_with_odd_characters_are_quoted(bus: StandInManager) -> None:
    bus.add(r"dev-disk\x2dby.service")
    (step,) = unit_steps.steps(r"dev-disk\x2dby.service")
    assert step.command == r"systemctl disable --now 'dev-disk\x2dby.service'"


@pytest.mark.parametrize(
    "unit",
    ["kubelet.service", "docker.socket", "ssh.service", "dbus.service", "systemd-journald.service", "init.scope",
     "system.slice", "NetworkManager.service", "zombiescope.service", "user@1000.service"],
)  # fmt: skip
def test_what_others_need_is_protected(bus: StandInManager, unit: str) -> None:
    bus.add(unit)
    *_, step = unit_steps.steps(unit)
    assert step.protects == unit


def test_a_unit_that_a_protected_one_needs_is_protected_with_it(bus: StandInManager) -> None:
    """systemd stops whatever requires a unit that is stopped; by way of others, too."""
    bus.add("x.service", stops_with=("multi-user.target", "middle.service"))
    bus.add("multi-user.target")
    bus.add("middle.service", stops_with=("kubelet.service", "x.service"))
    bus.add("kubelet.service")
    (step,) = unit_steps.steps("x.service")
    assert step.protects == "x.service"
    assert "kubelet.service needs it and would stop with it" in step.risk
    assert step.touches[-2:] == (
        "middle.service needs it and stops with it", "kubelet.service needs it and stops with it",
    )  # fmt: skip
    bus.add("kubelet.service", active_state="inactive")
    (step,) = unit_steps.steps("x.service")
    assert step.protects is None, "what does not run does not stop"


def test_what_needs_it_only_since_the_plan_was_shown_stops_the_step(bus: StandInManager, tmp_path: Path) -> None:
    bus.add("x.service")
    plan = Plan("test:x", "end it", tuple(unit_steps.steps("x.service")))
    bus.add("x.service", stops_with=("training.service",))
    bus.add("training.service")
    with log.opened(tmp_path / "log") as held:
        (step,) = apply(plan, held, yes).steps
    assert step.state == "failed"
    assert step.why.startswith("training.service needs x.service by now and would stop with it")
    assert bus.changes() == []


def test_what_stopped_with_it_comes_back_with_it(bus: StandInManager, tmp_path: Path) -> None:
    bus.add("x.service", stops_with=("training.service",))
    bus.add("training.service")
    plan = Plan("test:x", "end it", tuple(unit_steps.steps("x.service")))
    with log.opened(tmp_path / "log") as held:
        apply(plan, held, yes)
        bus.add("training.service", active_state="inactive")
        assert all(one.ok for one in undo(held, "test:x", yes))
    assert bus.unit("training.service").is_running


def test_another_name_of_a_protected_unit_is_protected(bus: StandInManager) -> None:
    bus.units["remote-login.service"] = bus.add("ssh.service")
    (step,) = unit_steps.steps("remote-login.service")
    assert step.protects == "remote-login.service"


def test_whatever_carries_this_session_is_protected(tmp_path: Path) -> None:
    for pid, cgroup, parent in (("self", "/a.slice/shell.service", 77), ("77", "/a.slice/terminal.service", 1)):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(f"0::{cgroup}\n")
        (tmp_path / pid / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
    assert guard.protected_unit("shell.service", tmp_path)
    assert guard.protected_unit("terminal.service", tmp_path)
    assert guard.protected_unit("other.service", tmp_path) is None


def test_a_unit_that_stays_is_limited_and_freed_again(
    bus: StandInManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drop_in, "UNIT_FILES", tmp_path)
    bus.add("x.service")
    step = unit_steps.limited("x.service")
    action = step.action
    assert isinstance(action, LimitRestarts)
    action.apply()
    action.apply()
    text = (tmp_path / "x.service.d" / drop_in.NAME).read_text()
    assert "StartLimitBurst=5" in text
    assert "RestartPreventExitStatus=5" in text
    assert action.is_applied()
    action.undo({"is_running": True})
    assert not (tmp_path / "x.service.d").exists()
    (tmp_path / "x.service.d").mkdir()
    action.path.write_text("somebody else's")
    with pytest.raises(ActionFailedError, match="not ours"):
        action.apply()
    with pytest.raises(ActionFailedError, match="left alone"):
        action.undo({})


def test_the_command_that_is_shown_is_what_will_be_done(bus: StandInManager) -> None:
    bus.add("static.service", file_state="static")
    bus.add("own.service", file_state="static", fragment="/etc/systemd/system/own.service")
    assert [step.command for name in ("static.service", "own.service") for step in unit_steps.steps(name)] == [
        "systemctl mask --now static.service",
        "systemctl stop own.service",
    ]


def test_the_container_that_this_runs_in_is_protected(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "cgroup").write_text(f"0::/system.slice/docker-{'ab' * 32}.scope\n")
    (tmp_path / "self" / "status").write_text("PPid:\t1\n")
    assert guard.carries_us("ab" * 32, tmp_path)
    assert guard.carries_us("cd" * 32, tmp_path) is None
