"""A real systemd, booted in a container."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers import systemd_tree
from tests.helpers.systemd_tree import BootedSystemd

from zombiescope.kernel.kmsg import KmsgRecord
from zombiescope.node.systemd.journal import COMMAND, JournalFollower
from zombiescope.node.systemd.units import UnitEvent
from zombiescope.node.systemd.watcher import SystemdWatcher

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]  # the first one may have to fetch a Debian


@pytest.fixture(scope="module")
def machine() -> Iterator[BootedSystemd]:
    lacking = systemd_tree.missing_tool()
    if lacking is not None:
        Needs().lack(f"needs {lacking}")
    # journald inside shall read the real kernel log
    with systemd_tree.boot("--bind=/dev/kmsg:/dev/kmsg", "--capability=CAP_SYSLOG") as booted:
        booted.add_service("steady.service", "ExecStart=/bin/sleep infinity")
        crash = "ExecStart=/bin/false\nRestart=always\nRestartSec=100ms"
        booted.add_service("crash-loop.service", crash, "StartLimitIntervalSec=0")
        booted.add_service("limited.service", "ExecStart=/bin/false\nRestart=always\nRestartSec=20ms")
        booted.add_service("once.service", "Type=oneshot\nExecStart=/bin/true")
        yield booted


@pytest.fixture
def events() -> list[UnitEvent]:
    return []


@pytest.fixture
def watcher(machine: BootedSystemd, events: list[UnitEvent]) -> Iterator[SystemdWatcher]:
    watcher = SystemdWatcher(machine.bus_address, events.append, poll_s=1.0)
    watcher.start()
    until(lambda: watcher.state.status == "connected", "connected to the bus")
    yield watcher
    watcher.stop()
    machine.run("systemctl", "stop", "crash-loop.service", "limited.service", "steady.service")


def until(condition: Callable[[], bool], what: str, deadline_s: float = 20.0) -> None:
    end = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < end, f"not within {deadline_s} s: {what}"
        time.sleep(0.02)


def of(events: list[UnitEvent], unit: str, kind: str) -> list[UnitEvent]:
    return [event for event in list(events) if (event.unit, event.kind) == (unit, kind)]


def n_restarts(machine: BootedSystemd, unit: str) -> int:
    return int(machine.run("systemctl", "show", unit, "--property=NRestarts", "--value"))


def n_restarts_known(watcher: SystemdWatcher, unit: str) -> int | None:
    return next((state.n_restarts for state in watcher.snapshot() if state.unit == unit), None)


def commands(machine: BootedSystemd) -> list[str]:
    return machine.run("sh", "-c", "cat /proc/[0-9]*/comm", check=False).split("\n")


def test_a_crash_loop_shows_although_systemd_lists_nothing_failed(
    machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]
) -> None:
    # WHEN a unit crashes as often as it is started
    machine.run("systemctl", "start", "crash-loop.service")
    until(lambda: len(of(events, "crash-loop.service", "unit_restart")) >= 3, "three restart events")
    # THEN the counter rises from event to event and accounts for every restart
    told = of(events, "crash-loop.service", "unit_restart")
    counts = [int(event.fields["n_restarts"] or 0) for event in told]
    assert counts == sorted(set(counts))
    assert sum(int(event.fields["delta"] or 0) for event in told) == counts[-1]
    assert (told[-1].fields["result"], told[-1].fields["exec_main_status"]) == ("exit-code", 1)
    assert told[-1].fields["control_group"] == "/system.slice/crash-loop.service"
    assert len(str(told[-1].fields["invocation_id"])) == 32
    # AND nowhere is it a failed unit
    assert of(events, "crash-loop.service", "unit_failed") == []
    assert "crash-loop" not in machine.run("systemctl", "--failed", "--no-legend", "--plain")


def test_a_loop_that_was_there_before_us_is_counted_from_now_on(
    machine: BootedSystemd, events: list[UnitEvent]
) -> None:
    # GIVEN a unit that has been restarted several times
    machine.run("systemctl", "start", "crash-loop.service")
    until(lambda: n_restarts(machine, "crash-loop.service") >= 3, "three restarts")
    before = n_restarts(machine, "crash-loop.service")
    # WHEN we begin to watch
    watcher = SystemdWatcher(machine.bus_address, events.append)
    watcher.start()
    try:
        until(lambda: len(of(events, "crash-loop.service", "unit_restart")) >= 2, "two restart events")
    finally:
        watcher.stop()
        machine.run("systemctl", "stop", "crash-loop.service")
    # THEN the restarts of before are in the counter, not in the rise
    first, second = of(events, "crash-loop.service", "unit_restart")[:2]
    assert int(first.fields["n_restarts"] or 0) > before
    rise = int(second.fields["n_restarts"] or 0) - int(first.fields["n_restarts"] or 0)
    assert second.fields["delta"] == rise


def test_the_start_limit_makes_it_a_failed_unit(
    machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]
) -> None:
    machine.run("systemctl", "start", "limited.service")
    until(lambda: bool(of(events, "limited.service", "unit_failed")), "the unit has failed")
    (failed,) = of(events, "limited.service", "unit_failed")
    assert failed.fields["result"] in ("exit-code", "start-limit-hit")
    machine.run("systemctl", "reset-failed", "limited.service")


def test_start_kill_and_stop(machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]) -> None:
    machine.run("systemctl", "start", "steady.service")
    until(lambda: len(of(events, "steady.service", "unit_state")) == 1, "started")
    machine.run("systemctl", "stop", "steady.service")
    until(lambda: len(of(events, "steady.service", "unit_state")) == 2, "stopped")
    assert [event.text for event in of(events, "steady.service", "unit_state")] == [
        "steady.service started",
        "steady.service stopped: success, killed with signal 15",
    ]


def test_a_one_shot_that_is_over_in_milliseconds(
    machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]
) -> None:
    machine.run("systemctl", "start", "once.service")
    until(lambda: bool(of(events, "once.service", "unit_state")), "it ran")
    assert of(events, "once.service", "unit_state")[-1].text.startswith("once.service ran and ended: success")


def test_snapshot_has_the_running_services(machine: BootedSystemd, watcher: SystemdWatcher) -> None:
    def journald() -> bool:
        by_unit = {state.unit: state for state in watcher.snapshot()}
        state = by_unit["systemd-journald.service"]
        return state.control_group == "/system.slice/systemd-journald.service" and state.n_restarts == 0

    until(journald, "the properties of journald")


def test_units_that_are_removed_are_forgotten(
    machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]
) -> None:
    for number in range(20):
        machine.run("systemd-run", "--collect", "--wait", f"--unit=passing-{number}", "/bin/true")
    until(
        lambda: not any(state.unit.startswith("passing-") for state in watcher.snapshot()),
        "transient units are gone",
    )


def test_reload_is_told_and_followed(machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]) -> None:
    machine.run("systemctl", "daemon-reload")
    until(lambda: len(of(events, "systemd", "unit_state")) == 2, "begin and end of the reload")
    # THEN units that ran all the time are not said to have started, though systemd announces every one anew
    time.sleep(1.5)
    assert [event.text for event in events if event.unit != "systemd"] == []
    # WHEN pid 1 executes itself anew THEN we still hear of it
    machine.run("systemctl", "daemon-reexec")
    machine.run("systemctl", "start", "crash-loop.service")
    until(lambda: bool(of(events, "crash-loop.service", "unit_restart")), "restarts after the reexec")


def test_the_bus_goes_away_and_comes_back(
    machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]
) -> None:
    machine.run("systemctl", "start", "crash-loop.service")
    until(lambda: bool(of(events, "crash-loop.service", "unit_restart")), "a restart before")
    # WHEN the bus is stopped
    machine.run("systemctl", "stop", "dbus.socket", "dbus.service")
    until(lambda: watcher.state.status == "failed", "the loss is noticed")
    assert watcher.state.fix
    # AND comes back after a while
    time.sleep(1.0)
    events.clear()
    machine.run("systemctl", "start", "dbus.socket", "dbus.service")
    until(lambda: watcher.state.status == "connected", "connected again")
    # THEN the restarts in between are not lost
    until(lambda: bool(of(events, "crash-loop.service", "unit_restart")), "a restart after")
    assert int(of(events, "crash-loop.service", "unit_restart")[0].fields["delta"] or 0) > 3


def test_a_bus_that_hangs_holds_nobody_up(machine: BootedSystemd, events: list[UnitEvent]) -> None:
    # GIVEN a bus that accepts connections and answers nothing
    bus_pid = int(machine.run("systemctl", "show", "dbus.service", "--property=MainPID", "--value"))
    machine.run("sh", "-c", f"kill -STOP {bus_pid}")
    watcher = SystemdWatcher(machine.bus_address, events.append, deadline_s=0.3)
    try:
        watcher.start()
        until(lambda: watcher.state.status == "failed", "the deadline", 5)
        assert "no answer" in watcher.state.why
        # THEN neither start nor stop waits for it: it hangs until the end of this test
        watcher.stop()
    finally:
        machine.run("sh", "-c", f"kill -CONT {bus_pid}")


def test_no_bus_at_all(tmp_path: Path, events: list[UnitEvent]) -> None:
    watcher = SystemdWatcher(f"unix:path={tmp_path}/no-such-socket", events.append)
    watcher.start()
    until(lambda: watcher.state.status == "absent", "absent", 2)
    assert "no D-Bus system bus" in watcher.state.why
    assert "/run/dbus" in watcher.state.fix
    watcher.stop()


def test_without_a_bus_neither_asyncio_nor_dbus_fast_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys, time; from zombiescope.node.systemd.watcher import SystemdWatcher\n"
        f"w = SystemdWatcher('unix:path={tmp_path}/no-such-socket', print); w.start()\n"
        "while w.state.status == 'starting': time.sleep(0.01)\n"
        "w.stop(); print(w.state.status, 'asyncio' in sys.modules, 'dbus_fast' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=10, check=True)
    assert done.stdout.split() == ["absent", "False", "False"]


@pytest.fixture
def follower(machine: BootedSystemd) -> Iterator[JournalFollower]:
    follower = JournalFollower(["nsenter", f"--target={machine.leader}", "--all", *COMMAND])
    time.sleep(0.5)  # journalctl says nowhere that it has begun to follow
    yield follower
    follower.close()


def test_the_journal_gives_lines_of_the_kernel_log(follower: JournalFollower) -> None:
    token = uuid.uuid4().hex[:8]
    Path("/dev/kmsg").write_text(f"<3>for the journal {token}\n")
    found: list[KmsgRecord] = []

    def arrived() -> bool:
        found.extend(record for record in follower.read()[0] if token in record.text)
        return bool(found)

    until(arrived, "the line")
    assert (found[0].level, found[0].from_kernel) == (3, False)
    assert found[0].time_us is not None


def test_journalctl_does_not_outlive_a_recorder_that_is_killed(machine: BootedSystemd) -> None:
    # GIVEN a recorder that follows the journal
    command = ["nsenter", f"--target={machine.leader}", "--all", *COMMAND]
    code = (
        "import time; from zombiescope.node.systemd.journal import JournalFollower\n"
        f"f = JournalFollower({command!r}); time.sleep(0.3); print(f.fileno(), flush=True); time.sleep(60)"
    )
    recorder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert recorder.stdout is not None
        recorder.stdout.readline()
        until(lambda: "journalctl" in commands(machine), "journalctl runs")
    finally:
        # WHEN it is killed
        recorder.send_signal(signal.SIGKILL)
        recorder.communicate()
    # THEN journalctl ends by itself
    until(lambda: "journalctl" not in commands(machine), "journalctl has ended")


def test_a_forged_signal_is_not_believed(
    machine: BootedSystemd, watcher: SystemdWatcher, events: list[UnitEvent]
) -> None:
    # GIVEN a unit whose counter we know, and a process that knows our name on the bus
    until(lambda: n_restarts_known(watcher, "systemd-journald.service") == 0, "the counter of journald")
    assert watcher._session is not None
    assert watcher._session._bus is not None
    us = watcher._session._bus.unique_name
    # WHEN it tells us, as systemd would, that the unit was restarted a thousand times
    machine.run(
        "dbus-send",
        "--system",
        "--type=signal",
        f"--dest={us}",
        "/org/freedesktop/systemd1/unit/systemd_2djournald_2eservice",
        "org.freedesktop.DBus.Properties.PropertiesChanged",
        "string:org.freedesktop.systemd1.Service",
        "dict:string:uint32:NRestarts,1000",
        "array:string:",
    )
    machine.run("systemctl", "start", "steady.service")
    until(lambda: bool(of(events, "steady.service", "unit_state")), "a later, real signal")
    # THEN we do not believe it
    assert of(events, "systemd-journald.service", "unit_restart") == []
