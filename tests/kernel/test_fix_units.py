"""`fix` against a real systemd, booted in a container: every kind of unit is ended once, stays so, and comes back.

A few of them run with all others, `make test-long` runs the rest: every kind of unit, and a kill at every point."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers import systemd_tree
from tests.helpers.remedies import yes
from tests.helpers.scenes import Scene
from tests.helpers.systemd_tree import BootedSystemd

from zombiescope.cli import fix
from zombiescope.cli.main import run
from zombiescope.fix import apply, log, plan_incident, undo, unit_steps
from zombiescope.fix.actions import drop_in, unit
from zombiescope.fix.actions.unit import manager
from zombiescope.model.plans import history
from zombiescope.model.plans.plan import Plan, distinct
from zombiescope.model.plans.step import Step
from zombiescope.node.systemd.manager import Manager
from zombiescope.node.systemd.watcher import BusUnavailableError

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]

_NUMBERS = itertools.count()
WALK = "do_syscall_64 vfs_read memcg_numa_stat_show mem_cgroup_nr_lru_pages"
CRASHES = "[Unit]\nStartLimitIntervalSec=0\n[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=200ms\n"
INSTALL = "[Install]\nWantedBy=multi-user.target\n"
TIMER = "[Timer]\nOnUnitInactiveSec=1s\nOnActiveSec=1s\nAccuracySec=100ms\n[Install]\nWantedBy=timers.target\n"
OLDIE = """#!/bin/sh
### BEGIN INIT INFO
# Provides: oldie
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
# Short-Description: a script of the time before systemd, for which a generator makes a unit
### END INIT INFO
case $1 in start) sleep 1000 & ;; esac
exit 0
"""
NEST = """mine=$(sed -n 's/^[0-9]*:name=systemd:\\|^0::/&/p' /proc/self/cgroup | sed 's/^[^/]*//' | tail -1)
for root in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [ -d "$root$mine" ] && [ -f "$root$mine/cgroup.procs" ] && here=$root$mine && break
done
number=0
while :; do
  number=$((number + 1)); mkdir -p "$here/box$number"
  sh -c 'echo $$ > "$0/cgroup.procs"; exec sleep 0.3' "$here/box$number"
  rmdir "$here/box$number"
done
"""
FILES = {
    "etc/systemd/system/crashes.service": CRASHES + INSTALL,
    "etc/systemd/system/ecs.service": CRASHES + INSTALL,
    "etc/systemd/system/kept.service": CRASHES + INSTALL,
    r"etc/systemd/system/odd\x20name.service": CRASHES + INSTALL,
    "run/systemd/system/static.service": CRASHES,
    "etc/systemd/system/worker@.service": CRASHES + INSTALL,
    "etc/systemd/system/timed.service": "[Service]\nType=oneshot\nExecStart=/bin/true\n",
    "etc/systemd/system/timed.timer": TIMER,
    "etc/systemd/system/called.service": "[Service]\nExecStart=/bin/sleep 1000\nStandardInput=socket\n",
    "etc/systemd/system/watched.service": "[Service]\nExecStart=/bin/sleep 1000\n",
    "etc/systemd/system/watched.path": "[Path]\nPathExists=/etc/passwd\n[Install]\nWantedBy=paths.target\n",
    "etc/init.d/oldie": OLDIE,
    "usr/lib/systemd/system/hidden.service": "[Service]\nExecStart=/bin/sleep 1000\n",
    "usr/local/bin/nest": NEST,
    "etc/systemd/system/nest.service": "[Service]\nDelegate=yes\nExecStart=/bin/sh /usr/local/bin/nest\n" + INSTALL,
    "etc/systemd/system/ssh.service": CRASHES + INSTALL,
    "etc/systemd/system/base.service": CRASHES.replace("/bin/false", "/bin/sleep 1000") + INSTALL,
    "etc/systemd/system/kubelet.service": "[Unit]\nRequires=base.service\n[Service]\nExecStart=/bin/sleep 1000\n",
    "etc/systemd/system/called.socket": "[Socket]\nListenStream=/run/called\n[Install]\nWantedBy=sockets.target\n",
}
STARTED = (
    "crashes.service", "ecs.service", "kept.service", r"odd\x20name.service", "worker@1.service", "timed.timer",
    "called.socket", "watched.path", "nest.service", "ssh.service",
)  # fmt: skip


@pytest.fixture(scope="module")
def machine() -> Iterator[BootedSystemd]:
    lacking = systemd_tree.missing_tool()
    if lacking is not None:
        Needs().lack(f"needs {lacking}")
    with systemd_tree.boot() as booted:
        for path, text in FILES.items():
            place = booted.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        booted.run("systemctl", "daemon-reload")
        booted.run("systemctl", "enable", *STARTED)
        booted.run("chmod", "+x", "/etc/init.d/oldie")
        booted.run("systemctl", "daemon-reload")
        others = ("static.service", "oldie.service", "hidden.service")
        booted.run("systemctl", "start", "--no-block", *others, *STARTED)
        booted.run("systemctl", "mask", "hidden.service")  # by somebody who forgot to stop it
        yield booted


@pytest.fixture(autouse=True)
def _bus(machine: BootedSystemd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBUS_SYSTEM_BUS_ADDRESS", machine.bus_address)
    monkeypatch.setattr(drop_in, "UNIT_FILES", machine.root / "etc/systemd/system")


def plan_of(name: str) -> Plan:
    return Plan(f"test:{name}", "end it", distinct(unit_steps.steps(name)))


def states(plan: Plan) -> list[tuple[str, str, bool]]:
    known = [manager().unit(step.id.partition(":")[2]) for step in plan.steps]
    return [(one.name, one.file_state, one.is_running) for one in known]


@pytest.mark.parametrize(
    ("name", "ended", "file_state"),
    [
        ("crashes.service", ["crashes.service"], "disabled"),
        pytest.param(r"odd\x20name.service", [r"odd\x20name.service"], "disabled", marks=pytest.mark.long),
        ("static.service", ["static.service"], "masked"),
        pytest.param("worker@1.service", ["worker@1.service"], "disabled", marks=pytest.mark.long),
        ("timed.service", ["timed.timer", "timed.service"], "static"),
        pytest.param("called.service", ["called.socket", "called.service"], "static", marks=pytest.mark.long),
        pytest.param("watched.service", ["watched.path", "watched.service"], "static", marks=pytest.mark.long),
        ("oldie.service", ["oldie.service"], "masked"),
        pytest.param("nest.service", ["nest.service"], "disabled", marks=pytest.mark.long),
    ],
)
def test_each_kind_of_unit_is_ended_once_and_comes_back(
    tmp_path: Path, name: str, ended: list[str], file_state: str
) -> None:
    plan = plan_of(name)
    before = states(plan)
    assert [step.id for step in plan.steps] == [f"unit.disable:{name}" for name in ended]
    with log.opened(tmp_path / "log") as held:
        first = apply.apply(plan, held, yes)
        assert {step.state for step in first.steps} == {"applied"}, first.steps
        after = states(plan)
        assert [name for name, _, runs in after if runs] == []
        assert after[-1][1] == file_state
        again = apply.apply(plan_of(name), held, yes)
        assert {step.state for step in again.steps} == {"applied"}, again.steps
        done = [entry.event for entry in held.entries() if entry.event in ("applying", "found")]
        assert done.count("applying") <= len(ended) <= len(done), "what does not run at that moment was ended already"
        assert done[0] == "applying"
        back = list(undo.undo(held, plan.target, yes))
    assert all(one.ok for one in back), back
    assert [state for _, state, _ in states(plan)] == [state for _, state, _ in before]
    assert states(plan)[0][2] == before[0][2]


def test_a_unit_that_never_was_is_ended_already(tmp_path: Path) -> None:
    with log.opened(tmp_path / "log") as held:
        (step,) = apply.apply(plan_of("never-was.service"), held, yes).steps
    assert (step.state, step.why) == ("applied", "it was so already")


def test_a_unit_that_stays_stops_crashing(machine: BootedSystemd) -> None:
    step = unit_steps.limited("kept.service")
    action = step.action
    assert action is not None
    before = action.before()
    action.apply()
    shown = machine.run("systemctl", "show", "kept.service", "--property=RestartPreventExitStatus,StartLimitBurst")
    assert "StartLimitBurst=5" in shown
    assert "RestartPreventExitStatus=1" in shown
    machine.run("sh", "-c", "while systemctl is-active -q kept || systemctl show -P SubState kept | grep -q auto; "
                "do sleep 0.1; done")  # fmt: skip
    action.undo(before)
    assert "StartLimitBurst=5" not in machine.run("systemctl", "cat", "kept.service")
    assert manager().unit("kept.service").is_running


def incident_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    unit_name: str,
    leak: dict[str, Any] | None = None,
) -> list[str]:
    """`fix` of an incident whose culprit is a unit of the container. `leak`: what else was recorded of it."""
    monkeypatch.setenv("ZOMBIESCOPE_FIX_DIR", str(tmp_path / "fix"))
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setattr(fix, "_is_this_node", lambda _: True)
    monkeypatch.setattr(fix, "_require_ours", lambda *_: None)
    monkeypatch.setattr(plan_incident, "MORE", {})  # systemd is the container's, cgroups and cards would be this host's
    scene = Scene().census(240, 68_440).hog(WALK, "kubelet")
    scene.leak(**{"path": f"/system.slice/{unit_name}/*", "dying": 68_000, "created": 500, "removed": 500,
                  "comm": "ecs-agent", "unit": unit_name, **(leak or {})})  # fmt: skip
    place = str(scene.write(tmp_path / "rec"))
    capsys.readouterr()
    run(["diagnose", place, "--json"])
    incident = json.loads(capsys.readouterr().out)["incidents"][0]["id"]
    return ["fix", place, "--incident", incident]


@pytest.mark.parametrize(
    ("path", "unit_name"),
    [
        ("/system.slice/ci-runner.service/ecs.service/job-*", ""),  # a directory in a delegated unit
        ("/lxc.payload.web/system.slice/ecs.service/job-*", ""),  # a container's own systemd
        ("/user.slice/user-1000.slice/user@1000.service/app.slice/ecs.service/job-*", "user@1000.service"),
        ("/agents.slice/ecs.service/job-*", "ecs.service"),  # the same name, in another place than systemd has it
    ],
)
@pytest.mark.parametrize("comm", ["systemd", "runc", "mkdir"])
def test_a_directory_with_the_name_of_a_unit_does_not_stop_that_unit(
    machine: BootedSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    path: str, unit_name: str, comm: str,
) -> None:  # fmt: skip
    before = machine.run("systemctl", "is-enabled", "ecs.service", check=False).strip()
    leak = {"path": path, "comm": comm, "unit": unit_name}
    command = incident_command(tmp_path, monkeypatch, capsys, "ecs.service", leak)
    assert run([*command, "--apply", "--yes"]) in (1, 3)
    assert machine.run("systemctl", "is-enabled", "ecs.service", check=False).strip() == before == "enabled"
    assert manager().unit("ecs.service").is_running


def test_an_incident_is_fixed_by_the_command_and_put_back(
    machine: BootedSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = incident_command(tmp_path, monkeypatch, capsys, "ecs.service")
    assert run(command) == 0
    assert run([*command, "--apply", "--yes"]) == 3  # no recorder runs that could verify it
    assert machine.run("systemctl", "is-enabled", "ecs.service", check=False).strip() == "disabled"
    assert not manager().unit("ecs.service").is_running
    assert run([*command, "--undo", "--yes"]) == 0
    assert machine.run("systemctl", "is-enabled", "ecs.service", check=False).strip() == "enabled"
    events: list[dict[str, Any]] = [json.loads(line) for line in (tmp_path / "fix" / log.FILE).read_text().splitlines()]
    assert [one["event"] for one in events] == ["planned", "applying", "applied", "verified", "undoing", "undone"]


def applied(name: str, place: Path) -> tuple[Step, ...]:
    with log.opened(place / "log") as held:
        return apply.apply(plan_of(name), held, yes).steps


def undone(name: str, place: Path) -> list[undo.Undone]:
    with log.opened(place / "log") as held:
        return list(undo.undo(held, f"test:{name}", yes))


@pytest.fixture
def own(machine: BootedSystemd) -> Iterator[str]:
    """A unit of one test alone, which crashes for ever."""
    name = f"own{next(_NUMBERS)}.service"
    place = machine.root / "etc/systemd/system" / name
    place.write_text(CRASHES + INSTALL)
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", name)
    machine.run("systemctl", "start", "--no-block", name)
    yield name
    machine.run("systemctl", "disable", "--now", name, check=False)


@pytest.mark.long
def test_a_unit_that_restarts_containers_inside_itself_ends_with_all_of_them(
    machine: BootedSystemd, tmp_path: Path
) -> None:
    inside = manager().unit("nest.service").control_group
    assert inside
    assert {step.state for step in applied("nest.service", tmp_path)} == {"applied"}
    left = machine.run("sh", "-c", f"cat $(find /sys/fs/cgroup -path '*{inside}*' -name cgroup.procs) /dev/null")
    assert left.split() == []
    assert all(one.ok for one in undone("nest.service", tmp_path))
    assert manager().unit("nest.service").is_running


@pytest.mark.long
def test_a_unit_that_is_masked_and_runs_is_stopped_and_the_way_back_says_what_is_in_it(tmp_path: Path) -> None:
    """Somebody masked it and forgot to stop it: nothing starts it again as long as the mask is there."""
    assert manager().unit("hidden.service").is_running
    assert {step.state for step in applied("hidden.service", tmp_path)} == {"applied"}
    assert not manager().unit("hidden.service").is_running
    (back,) = undone("hidden.service", tmp_path)
    assert (back.ok, "masked" in back.why) == (False, True), back


@pytest.mark.long
def test_a_unit_that_vanishes_between_plan_and_apply_is_still_ended(
    machine: BootedSystemd, tmp_path: Path, own: str
) -> None:
    """Its file is gone, and systemd goes on restarting what it has loaded."""
    plan = plan_of(own)
    (machine.root / "etc/systemd/system" / own).unlink()
    machine.run("systemctl", "daemon-reload")
    with log.opened(tmp_path / "log") as held:
        done = apply.apply(plan, held, yes)
        assert {step.state for step in done.steps} == {"applied"}, done.steps
        assert not manager().unit(own).is_running
        back = list(undo.undo(held, plan.target, yes))
    assert all(one.ok or "does not exist any more" in one.why for one in back)


@pytest.mark.long
def test_a_unit_that_somebody_else_restarts_in_between_is_ended_all_the_same(
    machine: BootedSystemd, tmp_path: Path, own: str
) -> None:
    plan = plan_of(own)
    machine.run("systemctl", "restart", "--no-block", own)
    with log.opened(tmp_path / "log") as held:
        assert {step.state for step in apply.apply(plan, held, yes).steps} == {"applied"}
    assert not manager().unit(own).is_running


@pytest.mark.long
def test_a_unit_that_somebody_starts_again_at_once_is_a_failure_that_can_be_taken_back(
    machine: BootedSystemd, tmp_path: Path, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start_again(where: str, _step: str) -> None:
        if where == "done":
            machine.run("systemctl", "enable", own)
            machine.run("systemctl", "start", "--no-block", own)

    monkeypatch.setattr(apply, "STOP_POINTS", [start_again])
    (step,) = applied(own, tmp_path)
    assert (step.state, "somebody else" in step.why) == ("failed", True)
    assert all(one.ok for one in undone(own, tmp_path))
    assert manager().unit(own).file_state == "enabled"


DENY = """<busconfig><policy user="root"><deny send_destination="org.freedesktop.systemd1"
 send_interface="org.freedesktop.systemd1.Manager" send_member="StopUnit"/></policy></busconfig>"""


def test_no_permission_half_way_leaves_what_can_be_taken_back(machine: BootedSystemd, tmp_path: Path, own: str) -> None:
    """The bus lets us disable it and does not let us stop it."""
    rule = machine.root / "etc/dbus-1/system.d/zz-no-stop.conf"
    busctl = ("env", "-u", "DBUS_SYSTEM_BUS_ADDRESS", "busctl", "call")  # that address is for here
    reload = (*busctl, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "ReloadConfig")
    rule.write_text(DENY)
    try:
        machine.run(*reload)
        (step,) = applied(own, tmp_path)
    finally:
        rule.unlink()
        machine.run(*reload)
    assert step.state == "failed", step
    assert manager().unit(own).file_state == "disabled"
    assert [entry.event for entry in log.entries(tmp_path / "log")][-2:] == ["applying", "failed"]
    assert all(one.ok for one in undone(own, tmp_path))
    assert manager().unit(own).file_state == "enabled"


@pytest.mark.parametrize("stopped", ["systemd", pytest.param("dbus", marks=pytest.mark.long)])
def test_a_bus_that_stops_answering_fails_the_step_and_a_second_run_finishes_it(
    machine: BootedSystemd, tmp_path: Path, own: str, monkeypatch: pytest.MonkeyPatch, stopped: str
) -> None:
    pid = machine.leader if stopped == "systemd" else _daemon(machine)
    monkeypatch.setattr(unit, "manager", lambda: Manager(call_s=1.0))
    plan = plan_of(own)
    with log.opened(tmp_path / "log") as held:
        os.kill(pid, signal.SIGSTOP)
        try:
            first = apply.apply(plan, held, yes)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert (first.steps[0].state, "did not answer" in first.steps[0].why) == ("failed", True), first.steps
        monkeypatch.setattr(unit, "manager", Manager)
        assert {step.state for step in apply.apply(plan, held, yes).steps} == {"applied"}
    assert not manager().unit(own).is_running


def _daemon(machine: BootedSystemd) -> int:
    """The container's message bus, as it is numbered here."""
    inside = machine.run("systemctl", "show", "--property=MainPID", "--value", "dbus.service").strip()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            numbers = next(line for line in (process / "status").read_text().splitlines() if line.startswith("NSpid"))
            is_there = (process / "ns/pid").readlink() == Path(f"/proc/{machine.leader}/ns/pid").readlink()
            if is_there and numbers.split()[-1] == inside:
                return int(process.name)
    raise AssertionError("the container has no dbus-daemon")


@pytest.mark.parametrize("force", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_protected_unit_is_refused_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], force: bool
) -> None:
    command = incident_command(tmp_path, monkeypatch, capsys, "ssh.service")
    named = ("--force-unit", "ssh.service") if force else ()
    assert run([*command, "--apply", "--yes", *named]) == 3
    assert manager().unit("ssh.service").is_running is not force
    if force:
        assert run([*command, "--undo", "--yes"]) == 0
    assert manager().unit("ssh.service").is_running


def test_a_unit_that_a_protected_one_needs_is_refused_and_nothing_stops(
    machine: BootedSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """systemd would stop kubelet.service with it, which requires it."""
    machine.run("systemctl", "start", "kubelet.service")
    command = incident_command(tmp_path, monkeypatch, capsys, "base.service")
    assert run([*command, "--apply", "--yes", "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    (step,) = [step for step in said["steps"] if step["id"] == "unit.disable:base.service"]
    assert (step["state"], step["protected"]) == ("skipped", "base.service")
    assert "kubelet.service needs it and would stop with it" in step["risk"]
    assert manager().unit("kubelet.service").is_running
    assert run([*command, "--apply", "--yes", "--force-unit", "base.service"]) == 3
    assert not manager().unit("kubelet.service").is_running
    assert run([*command, "--undo", "--yes"]) == 0
    assert manager().unit("kubelet.service").is_running, "what stopped with it comes back with it"
    machine.run("systemctl", "disable", "--now", "base.service")


KILLS = list(itertools.product(("before-applying", "applying", "done", "applied"), (0, 1), ("finish", "back")))
SHORT = [("done", 0, "finish")]
EACH_KILL = [kill if kill in SHORT else pytest.param(*kill, marks=pytest.mark.long) for kill in KILLS]


@pytest.mark.parametrize(
    ("where", "number", "way"),
    [kill if kill in SHORT else pytest.param(*kill, marks=pytest.mark.long) for kill in KILLS],
)
def test_killed_between_two_steps_the_log_tells_the_truth_and_a_second_run_finishes_or_goes_back(
    machine: BootedSystemd, tmp_path: Path, where: str, number: int, way: str
) -> None:
    """Of a service and the timer that starts it: two units, each with states of its own."""
    names = ("timed.timer", "timed.service")
    machine.run("systemctl", "start", "--no-block", "timed.timer")
    before = [(one.file_state, one.is_running) for one in (manager().unit(names[0]),)]
    argv = [
        sys.executable,
        "-m",
        "tests.helpers.remedies",
        "--unit",
        "timed.service",
        str(tmp_path),
        where,
        names[number],
    ]
    ended = subprocess.run(argv, timeout=60, check=False)
    was_running = ended.returncode == -signal.SIGKILL
    assert was_running or number == 1, "the service itself may have nothing to end at that moment"
    known = history.of(log.entries(tmp_path / "log"), "test:timed.service")
    timer = manager().unit("timed.timer")
    if not timer.is_running or timer.file_state == "disabled":
        assert known["unit.disable:timed.timer"].is_ours, "what is changed is in the log as ours"
    if way == "finish":
        assert {step.state for step in applied("timed.service", tmp_path)} == {"applied"}
        assert not manager().unit("timed.timer").is_running
    assert all(one.ok for one in undone("timed.service", tmp_path))
    assert [(one.file_state, one.is_running) for one in (manager().unit(names[0]),)] == before


def test_a_systemd_that_stops_answering_is_one_clear_line(machine: BootedSystemd) -> None:
    os.kill(machine.leader, signal.SIGSTOP)
    try:
        with pytest.raises(BusUnavailableError, match="did not answer"):
            Manager(call_s=1.0).unit("crashes.service")
    finally:
        os.kill(machine.leader, signal.SIGCONT)
