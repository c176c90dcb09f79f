"""The audit of a running systemd, booted in a container."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from tests.conftest import Needs
from tests.helpers import systemd_tree
from tests.helpers.systemd_tree import BootedSystemd

from zombiescope.audit import Audit, Finding, examine
from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.show import running_units

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(900)]  # the first one may have to fetch a Debian


@pytest.fixture(scope="module")
def machine() -> Iterator[BootedSystemd]:
    lacking = systemd_tree.missing_tool()
    if lacking is not None:
        Needs().lack(f"needs {lacking}")
    with systemd_tree.boot() as booted:
        yield booted


def audit_of(machine: BootedSystemd) -> Audit:
    return examine(machine.root, live=True, bus_address=machine.bus_address)


def found(audit: Audit, identity: str) -> Finding | None:
    return next((finding for finding in audit.findings if finding.id == identity), None)


def sub_state(machine: BootedSystemd, unit: str) -> str:
    return machine.run("systemctl", "show", unit, "--property=SubState", "--value").strip()


def test_a_crash_loop_is_found_with_one_look(machine: BootedSystemd) -> None:
    # GIVEN a unit that crashes and is started again ten seconds later, for ever
    machine.add_service("loops.service", "ExecStart=/bin/false\nRestart=always\nRestartSec=10")
    machine.run("systemctl", "start", "loops.service", check=False)
    end = time.monotonic() + 20
    while sub_state(machine, "loops.service") != "auto-restart":
        assert time.monotonic() < end
        time.sleep(0.05)
    assert "loops" not in machine.run("systemctl", "--failed", "--no-legend", "--plain")
    # WHEN the node is audited once
    audit = audit_of(machine)
    # THEN the loop is its worst finding, and why it will not end stands below it
    assert audit.live
    loop = found(audit, "auto-restart:loops.service")
    assert loop is not None
    assert audit.findings[0] == loop
    assert loop.severity == "critical"
    assert "status 1" in loop.why
    endless = found(audit, "endless-restart:loops.service")
    assert endless is not None
    assert {item.text for item in endless.evidence} >= {"Restart=always", "RestartSec=10"}
    # WHEN it is stopped THEN it is no longer in a loop
    machine.run("systemctl", "stop", "loops.service")
    assert found(audit_of(machine), "auto-restart:loops.service") is None


def test_what_systemd_has_in_force_beats_the_files(machine: BootedSystemd) -> None:
    # GIVEN a running service that is started again for ever
    machine.add_service("edited.service", "ExecStart=/bin/sleep infinity\nRestart=always\nRestartSec=30")
    machine.run("systemctl", "start", "edited.service")
    assert found(audit_of(machine), "endless-restart:edited.service") is not None
    # WHEN its file is changed and systemd has not read it again
    path = machine.root / "run/systemd/system/edited.service"
    path.write_text(path.read_text().replace("Restart=always", "Restart=no"))
    # THEN the old setting is what counts
    assert found(audit_of(machine), "endless-restart:edited.service") is not None
    # AND after a reload it is the new one
    machine.run("systemctl", "daemon-reload")
    assert found(audit_of(machine), "endless-restart:edited.service") is None
    machine.run("systemctl", "stop", "edited.service")


LIMITS = {
    # RestartSec, StartLimitIntervalSec, StartLimitBurst, more: is it endless?
    ("100ms", "1s", 5, ""): False,
    ("300ms", "1s", 5, ""): True,
    ("100ms", "0", 5, ""): True,
    ("100ms", "10s", 0, ""): True,
    ("400ms", "1s", 3, ""): True,
    ("100ms", "1s", 3, "RestartPreventExitStatus=7"): False,
    ("400ms", "1s", 3, "RestartPreventExitStatus=1"): False,
    ("400ms", "1s", 3, "SuccessExitStatus=1"): False,
}


def test_what_we_call_endless_is_endless(machine: BootedSystemd) -> None:
    """Units that exit with 1 at once, under a real systemd: it gives up exactly where we say so."""
    for number, (delay, interval, burst, more) in enumerate(LIMITS):
        limits = f"StartLimitIntervalSec={interval}\nStartLimitBurst={burst}"
        text = f"ExecStart=/bin/false\nRestart=on-failure\nRestartSec={delay}\n{more}"
        machine.add_service(f"limit-{number}.service", text, limits)
    files = unit_files.read(Root(machine.root))
    names = [f"limit-{number}.service" for number in range(len(LIMITS))]
    services = [files.service(name) for name in names]
    assert [service is not None and service.is_endless(1) for service in services] == list(LIMITS.values())
    machine.run("systemctl", "start", "--no-block", *names)

    def state(name: str) -> tuple[str, int]:
        shown = machine.run("systemctl", "show", name, "--property=ActiveState,SubState,NRestarts")
        values = dict(line.split("=", 1) for line in shown.split())
        return values["ActiveState"], int(values["NRestarts"])

    for name, endless in zip(names, LIMITS.values(), strict=True):
        end = time.monotonic() + 30
        while True:
            active, restarts = state(name)
            if active in ("failed", "inactive") and not endless:
                break
            assert active != "failed" or not endless, f"{name} was given up after {restarts} restarts"
            if endless and restarts >= 8:
                break
            assert time.monotonic() < end, f"{name} is {active} after {restarts} restarts"
            time.sleep(0.05)
    assert not {f"auto-restart:{names[0]}"} & {finding.id for finding in audit_of(machine).findings}  # it was given up
    machine.run("systemctl", "stop", *names)
    machine.run("systemctl", "reset-failed")


def test_statuses_that_end_a_loop_are_read_from_the_bus(machine: BootedSystemd) -> None:
    text = "ExecStart=/bin/sleep infinity\nRestart=always\nRestartSec=30\nRestartPreventExitStatus=5 SIGKILL"
    machine.add_service("ends.service", text)
    machine.run("systemctl", "start", "ends.service")
    finding = found(audit_of(machine), "endless-restart:ends.service")
    assert finding is not None
    assert "stay stopped after status 5, SIGKILL" in finding.why
    machine.run("systemctl", "stop", "ends.service")


def test_a_unit_that_was_made_at_run_time_is_seen_too(machine: BootedSystemd) -> None:
    machine.run(
        "systemd-run",
        "--unit=transient-loop",
        "--property=Restart=always",
        "--property=RestartSec=20",
        "sleep",
        "infinity",
    )
    finding = found(audit_of(machine), "endless-restart:transient-loop.service")
    assert finding is not None
    assert finding.evidence
    machine.run("systemctl", "stop", "transient-loop.service")


def test_the_running_units_are_those_that_systemctl_lists(machine: BootedSystemd) -> None:
    listed = machine.run("systemctl", "list-units", "--all", "--no-legend", "--plain", "--full", "--type=service")
    theirs = {line.split()[0]: line.split()[1:4] for line in listed.splitlines()}
    answer = running_units(machine.bus_address)
    units = answer.units
    assert answer.unanswered == 0
    ours = {
        name: [unit.load_state, unit.active_state, unit.sub_state]
        for name, unit in units.items()
        if name.endswith(".service")
    }
    assert ours == theirs
    assert units["dbus.service"].text("FragmentPath") == "/lib/systemd/system/dbus.service"


def test_a_systemd_that_answers_slowly_still_tells_the_states(machine: BootedSystemd) -> None:
    answer = running_units(machine.bus_address, properties_s=0.0)
    assert answer.unanswered > 3
    assert answer.units["dbus.service"].sub_state == "running"


def test_a_plain_debian_has_no_warning(machine: BootedSystemd) -> None:
    audit = audit_of(machine)
    of_units = [finding for finding in audit.findings if finding.unit and finding.severity != "info"]
    assert of_units == []
    assert audit.enabled > 10
    assert not [item for item in audit.missing if item.source.startswith("generator")]
