"""`fix` on a whole node with a real systemd: the kinds of units that are ended in different ways: enabled, static, in a
crash loop, started by a timer or a socket, an instance of a template, gone. test_fix_zombies.py has one that leaks."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from tests.helpers.booted_node import booted

from zombiescope.lab.node import LabNode, Plan

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.timeout(1800)]

CRASHES = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=3s\n"
TIMER = "[Timer]\nOnUnitInactiveSec=1s\nOnActiveSec=1s\nAccuracySec=100ms\n[Install]\nWantedBy=timers.target\n"
INSTALL = "[Install]\nWantedBy=multi-user.target\n"
FILES = {
    "/etc/systemd/system/crashes.service": CRASHES + INSTALL,
    "/run/systemd/system/static.service": CRASHES,
    "/etc/systemd/system/worker@.service": CRASHES + INSTALL,
    "/etc/systemd/system/timed.service": "[Service]\nType=oneshot\nExecStart=/bin/true\n",
    "/etc/systemd/system/timed.timer": TIMER,
    "/etc/systemd/system/called.service": "[Service]\nExecStart=/bin/sleep 1000\nStandardInput=socket\n",
    "/etc/systemd/system/called.socket": "[Socket]\nListenStream=/run/called\n[Install]\nWantedBy=sockets.target\n",
}
STARTED = ("crashes.service", "worker@1.service", "timed.timer", "called.socket")
ENDS = """
import json, sys
from pathlib import Path
from zombiescope.fix import apply, log, undo, unit_steps
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.fix.actions.unit import manager
unit, found = sys.argv[1], []
def look(plan):
    names = [step.action.unit for step in plan.changes]
    states = [manager().unit(name) for name in names]
    found.append([[known.name, known.active_state, known.file_state, known.is_running] for known in states])
def one(held):
    plan = Plan("test:" + unit, "end it", distinct(unit_steps.steps(unit)))
    done = apply.apply(plan, held, lambda step: True)
    return [[step.id, step.state, step.why] for step in done.steps], done
with log.opened(Path("/var/lib/zombiescope-fix")) as held:
    plan = Plan("test:" + unit, "end it", distinct(unit_steps.steps(unit)))
    look(plan)
    first, done = one(held)
    look(done)
    second, _ = one(held)
    back = [[each.step, each.ok, each.why] for each in undo.undo(held, "test:" + unit, lambda step: True)]
    look(done)
    one(held)
said = {"first": first, "second": second, "undone": back}
print(json.dumps({**said, "before": found[0], "after": found[1], "again": found[2]}))
"""


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    with booted(Plan("v2", cpus=2)) as made:
        yield made


@pytest.fixture(scope="module")
def units(node: LabNode) -> None:
    for path, text in FILES.items():
        node.put(path, text)
    node.shell(f"systemctl daemon-reload; systemctl enable {' '.join(STARTED)}", limit_s=60.0)
    node.shell(f"systemctl start --no-block static.service {' '.join(STARTED)}; sleep 3", limit_s=60.0)


@pytest.mark.parametrize(
    ("unit", "ended", "file_state"),
    [
        ("crashes.service", ["crashes.service"], "disabled"),
        ("static.service", ["static.service"], "masked"),
        ("worker@1.service", ["worker@1.service"], "disabled"),
        ("timed.service", ["timed.timer", "timed.service"], "static"),
        ("called.service", ["called.socket", "called.service"], "static"),
    ],
)
@pytest.mark.usefixtures("units")
def test_each_kind_of_unit_is_ended_once_and_comes_back(
    node: LabNode, unit: str, ended: list[str], file_state: str
) -> None:
    done = node.run("/opt/zombiescope/bin/python", "-c", ENDS, unit, limit_s=200.0)
    assert done.exit == 0, done.stderr.decode()
    said = json.loads(done.text)
    assert [step[0] for step in said["first"]] == [f"unit.disable:{name}" for name in ended]
    assert {step[1] for step in said["first"]} == {step[1] for step in said["second"]} == {"applied"}, said
    assert [state[0] for state in said["after"] if state[3]] == []
    assert said["after"][-1][2] == file_state
    assert all(ok for _, ok, _ in said["undone"]), said["undone"]
    assert [state[2] for state in said["again"]] == [state[2] for state in said["before"]]
    assert said["again"][0][3] == said["before"][0][3]


@pytest.mark.usefixtures("units")
def test_a_unit_that_is_gone_is_ended_already(node: LabNode) -> None:
    done = node.run("/opt/zombiescope/bin/python", "-c", ENDS, "never-was.service", limit_s=200.0)
    assert done.exit == 0, done.stderr.decode()
    assert [step[1:] for step in json.loads(done.text)["first"]] == [["applied", "it was so already"]]


@pytest.mark.usefixtures("units")
def test_a_finding_is_ended_and_put_back(node: LabNode) -> None:
    command = ("zombiescope", "fix", "--finding", "auto-restart:looping.service")
    node.put("/etc/systemd/system/looping.service", CRASHES + INSTALL)
    node.shell("systemctl daemon-reload; systemctl enable looping; systemctl start --no-block looping; sleep 3")
    plan = node.run(*command, limit_s=200.0)
    done = node.run(*command, "--apply", "--yes", limit_s=200.0)
    for each in (plan, done):
        sys.stdout.write(each.stdout.decode() + each.stderr.decode())
    assert done.exit == 3, done.stderr.decode()  # a finding has no symptom that a recorder could watch
    state = "systemctl is-enabled looping || true; systemctl show -P ActiveState looping"
    assert node.shell(state).split() == ["disabled", "inactive"]
    assert node.run(*command, "--undo", "--yes", limit_s=200.0).exit == 0
    assert node.shell(state).split() == ["enabled", "activating"]
    node.shell("systemctl disable --now looping", limit_s=60.0)


@pytest.mark.usefixtures("units")
def test_a_reboot_that_was_asked_for_is_a_minute_away_and_is_called_off(node: LabNode) -> None:
    """logind has it in its own file, and takes it back; nothing else of the plan is."""
    name = "rebooted.service"
    command = ("zombiescope", "fix", "--finding", f"auto-restart:{name}")
    scheduled = "cat /run/systemd/shutdown/scheduled 2>/dev/null || echo none"
    node.put(f"/etc/systemd/system/{name}", CRASHES + INSTALL)
    node.shell(f"systemctl daemon-reload; systemctl enable {name}; systemctl start --no-block {name}; sleep 3")
    done = node.run(*command, "--reboot", "--apply", "--yes", limit_s=200.0)
    sys.stdout.write(done.stdout.decode() + done.stderr.decode())
    asked = node.shell(f"{scheduled}; shutdown -r +30")  # an emulated node takes more than a minute to go back
    back = node.run(*command, "--undo", "--reboot", "--yes", limit_s=100.0)
    assert "MODE=reboot" in asked
    assert done.exit == 3
    assert back.exit == 0, back.stderr.decode()
    assert "none" in node.shell(scheduled)
    assert node.shell(f"systemctl is-enabled {name} || true").strip() == "disabled"
