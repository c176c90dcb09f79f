"""The founding case on a whole node, to its end: a unit that leaks is recorded, named, ended, verified and put back.

On cgroup v2 page cache keeps the zombies and the plan reclaims it (memory.reclaim); on v1 files in /dev/shm keep them,
which are named and deleted by consent. Emulated and slow: what the node has to compute is diagnosed on the host first,
so that `fix` in it is given the window to look at.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.helpers.booted_node import RECORDING, booted, start_recorder, until

from zombiescope.lab.node import LabNode, Plan
from zombiescope.lab.scenarios.zombie_unit import AGENT, UNIT

pytestmark = [pytest.mark.node, pytest.mark.long, pytest.mark.timeout(1800)]

SERVICE = "agent-of-nobody.service"
INSTALL = "[Install]\nWantedBy=multi-user.target\n"
RECORD = """\
[Service]
Type=exec
WatchdogSec=0
ExecStart=
ExecStart=/opt/zombiescope/bin/zombiescope record {recording} --hz 49
"""
LEAST = 1_500
FEW = 60
"""Of systemd's own units, which come and go."""
HOG = "import os\nfile = os.open('/proc/sys/vm/drop_caches', os.O_WRONLY)\nwhile True: os.write(file, b'2')\n"
WALKS = """
import os, time
file = os.open("/proc/sys/vm/drop_caches", os.O_WRONLY)
os.write(file, b"2")
def walk():
    before = time.thread_time()
    os.write(file, b"2")
    return time.thread_time() - before
print(sorted(walk() for _ in range(101))[50])
"""
"""What a walk takes by the scheduler's own clock: ticks are too coarse for milliseconds."""


@dataclass(frozen=True)
class Kind:
    version: Literal["v1", "v2"]
    pins: str
    mount: str
    controller: str
    released: str
    """The kind of step that releases them."""


V1 = Kind("v1", "/dev/shm/pins", "/sys/fs/cgroup/memory", ":memory:", "tmpfs.remove")
V2 = Kind("v2", "/var/tmp/pins", "/sys/fs/cgroup", "0::", "zombies.reclaim")


@dataclass
class Told:
    kind: Kind
    applied: dict[str, Any] = field(default_factory=dict)
    undone: dict[str, Any] = field(default_factory=dict)
    exits: dict[str, int | None] = field(default_factory=dict)
    states: dict[str, list[str]] = field(default_factory=dict)
    zombies: dict[str, int] = field(default_factory=dict)
    kernel: dict[str, float] = field(default_factory=dict)
    """CPU-seconds of one walk: the median of a hundred."""
    entries: list[dict[str, Any]] = field(default_factory=list)


@pytest.fixture(scope="module", params=[V2, V1], ids=lambda kind: kind.version)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    kind: Kind = request.param
    with booted(Plan(kind.version, cpus=2)) as node:
        node.put("/etc/systemd/system/zombiescope.service.d/test.conf", RECORD.format(recording=RECORDING))
        node.shell("systemctl daemon-reload", limit_s=120.0)
        start_recorder(node)
        yield _told(node, kind, tmp_path_factory.mktemp(kind.version))


def _told(node: LabNode, kind: Kind, place: Path) -> Told:
    told = Told(kind, zombies={"before": _zombies(node, kind)})
    _leak(node, kind)
    _say(f"leaked {_zombies(node, kind):,}")
    window = _walk(node)
    incident = _diagnosed_here(node, place, window)
    _say(f"named: {incident}")
    fix = ("zombiescope", "fix", "--incident", incident, "--from", window[0], "--to", window[1])
    told.zombies["leaked"], told.kernel["leaked"] = _zombies(node, kind), _kernel(node)
    consent = ("--apply", "--yes", "--force-unit", kind.pins, "--verify-for", "30s", "--json")
    done = node.run(*fix, *consent, limit_s=900.0)
    sys.stdout.write(done.stdout.decode() + done.stderr.decode())
    told.exits["apply"], told.applied, told.states["applied"] = done.exit, json.loads(done.text), _state(node)
    told.zombies["fixed"], told.kernel["fixed"] = _zombies(node, kind), _kernel(node)
    sys.stdout.write(f"{told.zombies} {told.kernel}\n")
    done = node.run("zombiescope", "fix", "--incident", incident, "--undo", "--yes", "--json", limit_s=300.0)
    told.exits["undo"], told.undone, told.states["undone"] = done.exit, json.loads(done.text), _state(node)
    node.shell(f"systemctl disable --now {SERVICE}", limit_s=120.0)
    told.entries = [json.loads(line) for line in node.shell("cat /var/lib/zombiescope-fix/actions.jsonl").splitlines()]
    return told


def _say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def _leak(node: LabNode, kind: Kind) -> None:
    agent = AGENT.format(
        mount=kind.mount, unified=kind is V2, controller=kind.controller, containers=400, pins=kind.pins
    )
    node.put("/root/agent", agent)
    # An interpreter every tenth of a second would be all that an emulated node does.
    unit = UNIT.format(python="/usr/bin/python3", agent="/root/agent").replace("RestartSec=100ms", "RestartSec=10s")
    node.put(f"/etc/systemd/system/{SERVICE}", unit + INSTALL)
    node.shell(f"mkdir {kind.pins}; systemctl daemon-reload; systemctl enable {SERVICE}", limit_s=120.0)
    node.shell(f"systemctl start --no-block {SERVICE}")
    until(node, f"test $(ls {kind.pins} | wc -l) -ge {LEAST}", 400.0)


def _walk(node: LabNode) -> tuple[str, str]:
    """Somebody walks them until a core is lost; when that was, by the node's clock."""
    node.put("/root/hog", HOG)
    node.put("/root/walks", WALKS)
    since = float(node.shell("date +%s"))
    node.run("systemd-run", "--unit=walker", "--property=CPUAffinity=1", "python3", "/root/hog").check()
    node.shell("sleep 25", limit_s=120.0)
    until_ = float(node.shell("date +%s"))
    node.shell("systemctl kill --signal=KILL walker; sleep 5", limit_s=120.0)
    return str(since - 5), str(until_)


def _diagnosed_here(node: LabNode, place: Path, window: tuple[str, str]) -> str:
    """The incident's id, which is the same there."""
    recording = node.get(RECORDING, place)
    words = [sys.executable, "-m", "zombiescope.cli.main", "diagnose", str(recording), "--json"]
    done = subprocess.run(
        [*words, "--from", window[0], "--to", window[1]], capture_output=True, text=True, timeout=200, check=False
    )
    found = json.loads(done.stdout)["incidents"]
    causes = [(one["id"], cause["pattern"], cause["culprit"]) for one in found for cause in one["causes"][:1]]
    named = [name for name, pattern, _ in causes if pattern == "zombie-memcg"]
    assert named, causes
    return str(named[0])


def _zombies(node: LabNode, kind: Kind) -> int:
    if kind is V2:
        return int(node.shell("sed -n 's/^nr_dying_descendants //p' /sys/fs/cgroup/cgroup.stat"))
    total = int(node.shell("awk '$1 == \"memory\" {print $3}' /proc/cgroups"))
    return total - int(node.shell("find /sys/fs/cgroup/memory -type d | wc -l"))


def _kernel(node: LabNode) -> float:
    return float(node.run("taskset", "-c", "1", "python3", "/root/walks", limit_s=120.0).check().text)


def _state(node: LabNode) -> list[str]:
    return node.shell(f"systemctl is-enabled {SERVICE} || true; systemctl show -P ActiveState {SERVICE}").split()


def _steps(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [step for step in document["steps"] if step["id"].startswith(kind)]


def test_the_unit_that_leaks_is_ended(told: Told) -> None:
    (step,) = _steps(told.applied, "unit.disable")
    assert (step["command"], step["state"]) == (f"systemctl disable --now {SERVICE}", "applied")
    assert told.states["applied"][0] == "disabled"
    assert told.states["applied"][1] in ("inactive", "failed")


def test_its_zombies_are_released_by_what_keeps_them(told: Told) -> None:
    steps = _steps(told.applied, told.kind.released)
    assert {step["state"] for step in steps} == {"applied"}
    assert told.zombies["leaked"] >= LEAST
    assert told.zombies["fixed"] <= told.zombies["before"] + FEW, told.zombies


def test_it_is_verified_with_what_the_recorder_saw(told: Told) -> None:
    assert told.applied["verified"] is True, told.applied["verification"]
    assert told.exits["apply"] == 0
    assert {check["name"] for check in told.applied["verification"]["checks"]} >= {"recorded", "symptom", "leak"}


def test_who_walked_them_has_next_to_nothing_to_walk(told: Told) -> None:
    assert told.kernel["fixed"] < told.kernel["leaked"] / 2, told.kernel


def test_undone_it_runs_and_crashes_as_before(told: Told) -> None:
    assert {step["state"] for step in _steps(told.undone, "unit.disable")} == {"undone"}
    assert told.states["undone"][0] == "enabled"
    assert told.states["undone"][1] in ("activating", "active")


def test_the_log_says_what_was_done_before_and_after_each_step(told: Told) -> None:
    own = [entry for entry in told.entries if entry["step"] == f"unit.disable:{SERVICE}"]
    assert [entry["event"] for entry in own] == ["applying", "applied", "undoing", "undone"]
    assert own[0]["before"]["file_state"] == "enabled"
    assert own[0]["who"]["uid"] == 0
