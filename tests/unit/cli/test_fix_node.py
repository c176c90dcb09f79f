"""`fix --drain` and `--reboot`: shown on a Kubernetes node, done only when they are asked for by name.

`shutdown` is a stand-in here: a script that writes what logind would. tests/cluster/test_fix_node.py has the real API
server, tests/node/test_fix.py the real systemd.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.helpers.remedies import StandInManager
from tests.unit.cli.test_fix import UNIT, Here, bus, cli, incident, place, steps

from zombiescope.fix import node_steps
from zombiescope.fix.actions import reboot as reboot_action
from zombiescope.fix.actions.reclaim import ReclaimZombies
from zombiescope.fix.step import Step
from zombiescope.model.plans.plan import Plan
from zombiescope.node.systemd import reboot

__all__ = ["bus", "cli", "place"]

SHUTDOWN = """#!/bin/sh
echo "$*" >> {log}
case $1 in -r) printf 'USEC=1\\nWARN_WALL=1\\nMODE=reboot\\n' > {file} ;; -c) rm -f {file} ;; esac
"""
NOBODY = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs on the machine that runs the tests."""
    monkeypatch.setattr(node_steps, "has_kubelet", lambda: False)
    monkeypatch.delenv("NODE_NAME", raising=False)


@pytest.fixture
def shutdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `shutdown` was called with."""
    said, program = tmp_path / "said", tmp_path / "bin" / "shutdown"
    monkeypatch.setattr(reboot, "SCHEDULED", tmp_path / "scheduled")
    program.parent.mkdir()
    program.write_text(SHUTDOWN.format(log=said, file=reboot.SCHEDULED))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return said


def test_a_reboot_is_advice_until_it_is_asked_for(cli: Here, place: Path, bus: StandInManager) -> None:
    bus.add(UNIT)
    found = steps(cli("fix", str(place), "--incident", incident(cli, place), "--json").document)
    assert [(one["id"], one["applicable"]) for one in found.values() if one["part"] == "last-resort"] == [
        ("reboot", False)
    ]


def test_asked_for_it_is_the_last_step_and_says_who_ends(
    cli: Here, place: Path, bus: StandInManager, shutdown: Path
) -> None:
    bus.add(UNIT)
    done = cli("fix", str(place), "--incident", incident(cli, place), "--reboot", "--json")
    *_, last = done.document["steps"]
    assert (last["id"], last["command"], last["undo"]) == (
        "node.reboot", "shutdown -r +1", "shutdown -c, within the minute",
    )  # fmt: skip
    assert any("processes end" in line for line in last["touches"])
    assert not any(step["id"] == "reboot" for step in done.document["steps"])
    assert not shutdown.exists()


def test_applied_the_node_goes_down_in_a_minute_and_is_not_verified(
    cli: Here, place: Path, bus: StandInManager, shutdown: Path
) -> None:
    bus.add(UNIT)
    name = incident(cli, place)
    done = cli("fix", str(place), "--incident", name, "--reboot", "--apply", "--yes", "--json")
    assert done.code == 3
    assert [step["state"] for step in done.document["steps"] if step["applicable"]] == ["applied", "applied"]
    assert shutdown.read_text().startswith("-r +1")
    assert done.document["verification"]["verdict"] == "can't tell"
    assert "the node goes down" in done.document["verification"]["checks"][0]["text"]
    again = cli("fix", str(place), "--incident", name, "--reboot", "--apply", "--yes", "--json")
    assert len(shutdown.read_text().splitlines()) == 1, "twice is once"
    assert steps(again.document)["node.reboot"]["why"] == "was done before"


def test_undone_alone_it_is_called_off_and_the_unit_stays_down(
    cli: Here, place: Path, bus: StandInManager, shutdown: Path
) -> None:
    bus.add(UNIT)
    name = incident(cli, place)
    cli("fix", str(place), "--incident", name, "--reboot", "--apply", "--yes", "--json")
    back = cli("fix", str(place), "--incident", name, "--undo", "--reboot", "--yes", "--json")
    assert [(one["id"], one["state"]) for one in back.document["steps"]] == [("node.reboot", "undone")]
    assert shutdown.read_text().splitlines()[1:] == ["-c"]
    assert not bus.unit(UNIT).is_running
    rest = cli("fix", str(place), "--incident", name, "--undo", "--yes", "--json")
    assert [one["id"] for one in rest.document["steps"]] == [f"unit.disable:{UNIT}"]
    assert bus.unit(UNIT).is_running


def test_a_shutdown_that_refuses_is_one_line_and_a_failed_step(
    cli: Here, place: Path, bus: StandInManager, shutdown: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "shutdown").write_text("#!/bin/sh\necho 'Failed to schedule: no logind' >&2\nexit 1\n")
    bus.add(UNIT)
    done = cli("fix", str(place), "--incident", incident(cli, place), "--reboot", "--apply", "--yes", "--json")
    assert done.code == 1
    assert "no logind" in steps(done.document)["node.reboot"]["why"]
    assert steps(done.document)[f"unit.disable:{UNIT}"]["state"] == "applied"


def test_somebody_elses_reboot_is_not_called_off(monkeypatch: pytest.MonkeyPatch, shutdown: Path) -> None:
    action = reboot_action.Reboot(reboot_action._boot_id())
    reboot.SCHEDULED.write_text("USEC=1\nMODE=reboot\n")
    assert action.is_applied()
    action.undo(action.before())
    assert action.is_applied()
    assert not shutdown.exists()


def test_after_the_reboot_it_is_done_and_nothing_is_taken_back(shutdown: Path) -> None:
    action = reboot_action.Reboot("another-boot")
    assert action.is_applied()
    action.apply()
    action.undo({"boot_id": "another-boot", "asked": False})
    assert not shutdown.exists()


def test_kured_is_asked_with_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shutdown: Path) -> None:
    monkeypatch.setattr(reboot_action, "SENTINEL", tmp_path / "reboot-required")
    action = reboot_action.Reboot(reboot_action._boot_id(), by_kured=True)
    before = action.before()
    assert not action.is_applied()
    action.apply()
    assert action.is_applied()
    action.undo(before)
    assert not action.is_applied()
    assert not shutdown.exists()


def test_what_the_next_boot_ends_is_not_done_before_it() -> None:
    release = Step("zombies.reclaim:/x", "change", "release", action=ReclaimZombies("/x"))
    keeps = Step("advice", "advice", "look at it")
    plan = node_steps.added(Plan("incident:x", "s", (release, keeps)), node_steps.NodeRequest(reboot=True))
    assert [(step.state, step.action is None) for step in plan.steps] == [
        ("skipped", True), ("planned", True), ("planned", False),
    ]  # fmt: skip


def test_nothing_is_drained_where_no_kubelet_runs(cli: Here, place: Path, bus: StandInManager) -> None:
    done = cli("fix", str(place), "--incident", incident(cli, place), "--drain")
    assert done.code == 1
    assert "no kubelet runs" in done.err


def test_on_a_kubernetes_node_the_steps_are_shown_and_the_server_is_not_asked(
    cli: Here, place: Path, bus: StandInManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_steps, "has_kubelet", lambda: True)
    monkeypatch.setenv("NODE_NAME", "gpu-17")
    monkeypatch.setenv("KUBECONFIG", "/nowhere")
    bus.add(UNIT)
    document = cli("fix", str(place), "--incident", incident(cli, place), "--json").document
    last = [step for step in document["steps"] if step["part"] == "last-resort"]
    assert [step["command"] for step in last] == [
        "kubectl cordon gpu-17", "kubectl drain gpu-17 --ignore-daemonsets", "shutdown -r +1",
    ]  # fmt: skip
    assert {step["applicable"] for step in last} == {False}
    assert [step["why"].partition(" ")[0] for step in last] == ["--drain", "--drain", "--reboot"]


def test_a_server_that_is_away_is_said_in_the_plan_and_stops_it(
    cli: Here, place: Path, bus: StandInManager, tmp_path: Path, shutdown: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(NOBODY)
    bus.add(UNIT)
    words: list[Any] = ["fix", str(place), "--incident", incident(cli, place), "--kube-node", "gpu-17", "--reboot"]
    words += ["--kubeconfig", str(config), "--json"]
    found = steps(cli(*words).document)
    assert "gpu-17 cannot be read" in found["node.cordon:gpu-17"]["why"]
    done = cli(*words, "--apply", "--yes")
    assert done.code == 1
    states = {name: step["state"] for name, step in steps(done.document).items() if step["part"] == "last-resort"}
    assert states == {"node.cordon:gpu-17": "failed", "node.drain:gpu-17": "planned", "node.reboot": "planned"}
    assert not shutdown.exists()


@pytest.mark.parametrize(
    "words",
    [("--may-lose", "everything"), ("--kubeconfig", "/nowhere"), ("--nodes-at-once", "0"), ("--drain", "--try", "1m")],
)
def test_what_makes_no_sense_is_wrong_usage(cli: Here, words: tuple[str, ...]) -> None:
    assert cli("fix", "--incident", "ab12", *words).code == 2
