"""The shipped unit on a real systemd, at the speed of this machine: what works without its limits works with them.

A container cannot see all of its host, so some sources are missing in it: what counts is that they are the same with
the unit as it is shipped and with one that has the same user and capabilities and restricts nothing.
tests/node/test_unit.py tries it on a whole node, where nothing is missing.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers import systemd_tree
from tests.helpers.systemd_tree import BootedSystemd

from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "packaging/zombiescope.service").read_text()
PROGRAM = shlex.join([sys.executable, "-P", "-m", "zombiescope.cli.main"])
KEPT = (
    "Type",
    "NotifyAccess",
    "ExecStart",
    "ExecReload",
    "User",
    "Group",
    "StateDirectory",
    "RuntimeDirectory",
    "CacheDirectory",
    "AmbientCapabilities",
)
CAP_SYSLOG = 34
ASK = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8321/api/v1/info', timeout=30).read().decode())"
ASK_METRICS = "import urllib.request as r; print(r.urlopen('http://127.0.0.1:9321/readyz', timeout=30).read().decode())"
CONFIG = "recorder: {node: n, segment: 5s, compact_every: 60s, hz: 49}\n"
FROM_A_USER = "setpriv --reuid 65534 --regid 65534 --clear-groups"


@dataclass
class Ran:
    """What one unit did."""

    missing: set[str] = field(default_factory=set)
    samples: int = 0
    kernel_names: int = 0
    user_names: int = 0
    events: set[str] = field(default_factory=set)
    compacted: bool = False
    doctor: bool = False
    page: dict[str, Any] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    page_status: dict[str, str] = field(default_factory=dict)
    services_status: dict[str, str] = field(default_factory=dict)
    ready: str = ""
    journal: str = ""


def unrestricted(unit: str) -> str:
    """The same user, directories and capabilities, and nothing else of [Service]."""
    kept = [line for line in unit.splitlines() if line.partition("=")[0] in KEPT]
    return "\n".join(["[Service]", *kept, ""])


def with_command(unit: str, command: str) -> str:
    lines = [f"ExecStart={PROGRAM} {command}" if line.startswith("ExecStart=") else line for line in unit.splitlines()]
    if ROOT.is_relative_to("/tmp"):  # the unit has a /tmp of its own, and a checkout there would not be in it
        lines.insert(lines.index("[Service]") + 1, f"BindReadOnlyPaths={ROOT}")
    text = "\n".join([*lines, ""]).replace("512M", "infinity")
    if command.startswith("agent"):
        return text
    return text.replace("Type=notify", "Type=simple").replace("WatchdogSec=", "#")  # others tell systemd nothing


@pytest.fixture(scope="module")
def machine() -> Iterator[BootedSystemd]:
    needs = Needs()
    needs.root()
    needs.perf_events()
    if lacking := systemd_tree.missing_tool():
        needs.lack(f"needs {lacking}")
    homes = {Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), ROOT}
    binds = [f"--bind-ro={home}" for home in homes] + ["--bind-ro=/sys/kernel/tracing"]
    options = ("--capability=all", "--system-call-filter=perf_event_open", "--tmpfs=/root:mode=0755", *binds)
    with systemd_tree.boot(*options) as booted:
        (booted.root / "usr/lib/sysusers.d").mkdir(parents=True, exist_ok=True)
        (booted.root / "usr/lib/sysusers.d/z.conf").write_text((ROOT / "packaging/zombiescope.sysusers").read_text())
        booted.run("systemd-sysusers")
        yield booted


def until(machine: BootedSystemd, *command: str, limit_s: float = 100.0) -> str:
    end = time.monotonic() + limit_s
    while True:
        try:
            return machine.run(*command)
        except RuntimeError:
            if time.monotonic() > end:
                said = machine.run("journalctl", "--unit", "zombiescope", "--output", "cat", "--no-pager", check=False)
                raise AssertionError(f"not within {limit_s} s: {command}\n{said[-3000:]}") from None
            time.sleep(0.5)


def status(machine: BootedSystemd, pid: str) -> dict[str, str]:
    text = machine.run("cat", f"/proc/{pid}/status")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def pid_of(machine: BootedSystemd, module: str) -> str:
    pids = machine.run("sh", "-c", f"grep -lz '^{module}$' /proc/[0-9]*/cmdline || true").split()
    return next(pid.split("/")[2] for pid in pids if "self" not in pid)


def ran(machine: BootedSystemd, unit: str, name: str) -> Ran:
    place, found = f"/var/lib/zombiescope/{name}", Ran()
    machine.run("mkdir", "-p", "/etc/systemd/system")
    shown = machine.root / "etc/systemd/system/zombiescope.service"
    machine.run("mkdir", "-p", "/etc/zombiescope")
    (machine.root / "etc/zombiescope/agent.yaml").write_text(CONFIG)
    shown.write_text(with_command(unit, f"agent {place}"))
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "zombiescope.service")
    try:
        until(machine, "test", "-e", f"{place}/node=n/node.json")
        machine.run("systemd-run", "--unit=busy", "sleep", "3")
        machine.run("sh", "-c", f"{FROM_A_USER} {PROGRAM} mark 'from a user'")
        found.status = status(machine, pid_of(machine, "zombiescope.recorder"))
        found.services_status = status(machine, pid_of(machine, "zombiescope.agent.services"))
        found.ready = until(machine, sys.executable, "-c", ASK_METRICS)
        machine.run("systemctl", "reload", "zombiescope.service")
        until(machine, "sh", "-c", f"ls {place}/node=n/date=*/part-*.json")
        found.compacted = True
        machine.run("systemctl", "stop", "zombiescope.service")
        _read(machine, place, found)
        _page_and_doctor(machine, unit, place, found)
    finally:
        machine.run("systemctl", "stop", "zombiescope.service", check=False)
    found.journal = machine.run("journalctl", "--unit", "zombiescope", "--output", "cat", "--no-pager")
    machine.run("rm", "-rf", place, f"{place}-live")
    return found


def _read(machine: BootedSystemd, place: str, found: Ran) -> None:
    with open_recording(Path(f"{machine.root}{place}")) as recording:
        found.missing = {one["source"] for one in recording.node["missing"]}
        found.samples = recording.table("samples").num_rows
        kinds = [row["kind"] for row in recording.table("frames").to_pylist() if not str(row["name"]).startswith("[")]
        found.kernel_names, found.user_names = kinds.count("kernel"), kinds.count("user")
        found.events = {row["kind"] for row in recording.table("events").to_pylist()}


def _page_and_doctor(machine: BootedSystemd, unit: str, place: str, found: Ran) -> None:
    shown = machine.root / "etc/systemd/system/zombiescope.service"
    shown.write_text(with_command(unit, f"up {place}-live --no-token --listen 127.0.0.1:8321"))
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "zombiescope.service")
    found.page = json.loads(until(machine, sys.executable, "-c", ASK))
    pids = machine.run("sh", "-c", "grep -l zombiescope.web /proc/[0-9]*/cmdline || true").split()
    page = next(pid.split("/")[2] for pid in pids if "self" not in pid)
    found.page_status = status(machine, page)
    machine.run("systemctl", "stop", "zombiescope.service")
    # The doctor as the recorder starts it: what makes it look is the alarm's business, not the unit's.
    standby = shlex.join([sys.executable, "-P", "-m", "zombiescope.diagnosis.standby", f"{place}/node=n"])
    doctor = shlex.join(["/bin/sh", "-c", f"echo 0 | {standby}"])
    shown.write_text(with_command(unit, "").replace(f"{PROGRAM} ", doctor).replace("Restart=", "#"))
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "zombiescope.service")
    until(machine, "test", "-e", f"{place}/node=n/incidents.json")
    found.doctor = True


@pytest.fixture(scope="module")
def free(machine: BootedSystemd) -> Ran:
    return ran(machine, unrestricted(UNIT), "free")


@pytest.fixture(scope="module")
def shipped(machine: BootedSystemd) -> Ran:
    return ran(machine, UNIT, "shipped")


@pytest.mark.timeout(600)
def test_the_same_sources_are_there_with_and_without_it(free: Ran, shipped: Ran) -> None:
    assert shipped.missing == free.missing
    assert shipped.events >= {"mark"}
    assert shipped.samples > 0
    assert (shipped.kernel_names > 0, shipped.user_names > 0) == (free.kernel_names > 0, free.user_names > 0)
    assert shipped.kernel_names > 0


def test_helper_doctor_and_page_work_under_it(shipped: Ran) -> None:
    assert shipped.compacted
    assert shipped.doctor
    assert shipped.page["live"] is True
    assert "Traceback" not in shipped.journal
    assert "could not" not in shipped.journal


def test_what_it_takes_away_is_gone(free: Ran, shipped: Ran) -> None:
    # the container has filters of its own
    assert int(shipped.status["Seccomp_filters"]) > int(free.status["Seccomp_filters"])
    assert shipped.status["NoNewPrivs"] == "1"
    assert int(shipped.page_status["CapEff"], 16) == 1 << CAP_SYSLOG
    assert int(shipped.page_status["CapAmb"], 16) == 0
    for kind in ("CapEff", "CapPrm", "CapAmb"):
        assert int(shipped.services_status[kind], 16) == 0, kind


def test_metrics_are_answered_under_it(shipped: Ran) -> None:
    assert json.loads(shipped.ready)["ready"] is True
