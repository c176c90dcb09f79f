"""The unit as it is shipped: what it takes away is gone, and everything that the recorder does works under it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.booted_node import LEAKY, RECORDING, booted, on_host, until

from zombiescope.lab.node import LabNode, Plan
from zombiescope.store.reader import Recording, open_recording

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.long]

NODE = f"{RECORDING}/node=lab"
CAP_SYSLOG = 34
CONTAINER = "c0ffee" + "0" * 58
DOCKER = f"/var/lib/docker/containers/{CONTAINER}"
AS_A_STRANGER = "setpriv --reuid nobody --regid nogroup --clear-groups"
AS_A_READER = "setpriv --reuid nobody --regid nogroup --groups zombiescope"
CONFIG = {"ID": CONTAINER, "Name": "/web", "Config": {"Image": "shop:7"}, "State": {"Running": True}}
# A name of its own for the code that it makes, a secret on its command line, and the kernel half of the time.
BUSY = """
import os, sys
open("/tmp/perf-%d.map" % os.getpid(), "w").write("1000 10 nowhere\\n")
while True: os.stat("/etc/hostname")
"""
OVERRIDE = """\
[Service]
Type=simple
WatchdogSec=0
ExecStart=
ExecStart=/opt/zombiescope/bin/zombiescope {command}
"""
RECORD = OVERRIDE.format(command=f"record {RECORDING} --segment 5s --compact-every 60s")
UP = OVERRIDE.format(command=f"up {RECORDING} --no-token")


@dataclass
class Told:
    recording: Path = Path()
    status: dict[str, str] = field(default_factory=dict)
    page_status: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    mounts: str = ""
    exposure: float = 10.0
    missing: list[Any] = field(default_factory=list)
    parquet_modes: set[str] = field(default_factory=set)
    stranger: int | None = None
    reader: int | None = None
    page: dict[str, Any] = field(default_factory=dict)
    journal: str = ""


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    with booted(Plan("v2")) as made:
        yield made


def start(node: LabNode, override: str) -> None:
    node.put("/etc/systemd/system/zombiescope.service.d/test.conf", override)
    node.shell("systemctl daemon-reload; systemctl restart zombiescope.service", limit_s=120.0)
    until(node, "journalctl --unit zombiescope --output cat | tail -n 30 | grep -q 'recording lab into'")


def status(node: LabNode, pid: str) -> dict[str, str]:
    text = node.shell(f"cat /proc/{pid}/status")
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


@pytest.fixture(scope="module")
def told(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    told = Told()
    node.put(f"{DOCKER}/config.v2.json", json.dumps(CONFIG))
    node.shell("chmod 700 /var/lib/docker")
    start(node, RECORD)
    _use_everything(node)
    _look(node, told)
    until(node, f"ls {NODE}/date=*/part-*.json", limit_s=120.0)
    told.parquet_modes = set(node.shell(f"stat --format %a {NODE}/date=*/*").split())
    told.missing = json.loads(node.shell(f"cat {NODE}/node.json"))["missing"]
    start(node, UP)
    until(node, f"test -e {NODE}/incidents.json", limit_s=300.0)  # against hanging only: the node is emulated
    _ask_the_page(node, told)
    node.shell("systemctl stop busy leaky zombiescope.service", limit_s=120.0)
    told.journal = node.shell("journalctl --unit zombiescope --output cat")
    told.recording = node.get(RECORDING, tmp_path_factory.mktemp("out"))
    return told


def _use_everything(node: LabNode) -> None:
    node.put("/etc/systemd/system/leaky.service", LEAKY)
    node.shell("systemctl daemon-reload; systemctl start --no-block leaky")
    command = ("python3", "-c", BUSY, "--password", "hunter2")
    node.run("systemd-run", "--unit=busy", "--property=CPUAffinity=2", *command).check()
    node.shell(f"mkdir -p /sys/fs/cgroup/docker/{CONTAINER}")
    node.shell(f"{AS_A_STRANGER} zombiescope mark 'from a user'", limit_s=120.0)
    node.shell("echo '<2>app: token=hunter2 leaked' > /dev/kmsg")


def _look(node: LabNode, told: Told) -> None:
    pid = node.shell("systemctl show --property MainPID --value zombiescope").strip()
    told.status = status(node, pid)
    told.mounts = node.shell(f"cat /proc/{pid}/mountinfo")
    places = (RECORDING, NODE, f"{NODE}/log", f"{NODE}/lock", f"{NODE}/node.json", "/run/zombiescope")
    for line in node.shell(f"stat --format '%n %a %U:%G' {' '.join(places)}").splitlines():
        place, mode = line.split(" ", 1)
        told.modes[place] = mode
    said = node.shell("systemd-analyze security zombiescope.service | tail -n 1", limit_s=120.0)
    told.exposure = float(said.partition(": ")[2].split()[0])
    told.stranger = node.run("/bin/sh", "-c", f"{AS_A_STRANGER} zombiescope info {RECORDING}", limit_s=120.0).exit
    told.reader = node.run("/bin/sh", "-c", f"{AS_A_READER} zombiescope info {RECORDING}", limit_s=120.0).exit


def _ask_the_page(node: LabNode, told: Told) -> None:
    ask = (
        "import urllib.request as r; print(r.urlopen('http://127.0.0.1:8321/api/v1/info', timeout=60).read().decode())"
    )
    until(node, f'python3 -c "{ask}"')
    told.page = json.loads(node.run("python3", "-c", ask, limit_s=120.0).text)
    told.page_status = status(node, node.shell("pgrep -f 'm zombiescope.web' | head -n 1").strip())


@pytest.fixture(scope="module")
def opened(told: Told) -> Iterator[Recording]:
    with open_recording(told.recording) as recording:
        yield recording


# --- what is gone ----------------------------------------------------------------------------------------------------


def test_calls_are_filtered_and_nothing_can_be_gained(told: Told) -> None:
    assert (told.status["NoNewPrivs"], told.status["Seccomp"]) == ("1", "2")


def test_the_machine_is_read_only_to_it(told: Told) -> None:
    options = {line.split()[4]: line.split()[5].split(",") for line in told.mounts.splitlines()}
    for place in ("/", "/sys", "/sys/fs/cgroup", "/proc/sys", "/proc/sysrq-trigger"):
        assert "ro" in options[place], place
    assert "rw" in options[RECORDING]


def test_systemd_finds_little_exposed(told: Told) -> None:
    """Of ten, the most exposed. What is left are the four capabilities, files of others, and what cannot be hidden."""
    assert told.exposure <= 3.5


def test_the_page_has_the_kernel_log_and_nothing_else(told: Told) -> None:
    for kind in ("CapEff", "CapPrm"):
        assert int(told.page_status[kind], 16) == 1 << CAP_SYSLOG
    assert int(told.page_status["CapAmb"], 16) == 0


def test_strangers_read_nothing_and_the_group_reads(told: Told) -> None:
    ours = "zombiescope:zombiescope"
    assert told.modes == {
        RECORDING: f"750 {ours}", NODE: f"750 {ours}", f"{NODE}/log": f"750 {ours}", f"{NODE}/lock": f"640 {ours}",
        f"{NODE}/node.json": f"640 {ours}", "/run/zombiescope": f"755 {ours}",
    }  # fmt: skip
    assert told.parquet_modes == {"640"}
    assert (told.stranger, told.reader) == (1, 0)


# --- what works ------------------------------------------------------------------------------------------------------


def test_no_source_is_missing(told: Told) -> None:
    assert told.missing == []
    assert "helper" not in told.journal
    assert "Traceback" not in told.journal


def test_functions_are_named_in_the_kernel_and_outside(opened: Recording) -> None:
    frames = {row["frame"]: row for row in opened.table("frames").to_pylist()}
    named = {(row["kind"], row["name"]) for row in frames.values()}
    assert ("kernel", "do_syscall_64") in named
    assert ("user", "_PyEval_EvalFrameDefault") in named


def test_marks_restarts_and_the_kernel_log_arrive(told: Told) -> None:
    found = on_host("events", told.recording)["events"]
    assert "from a user" in [event["text"] for event in found if event["kind"] == "mark"]
    assert [event for event in found if event["kind"] == "unit_restart" and event["fields"]["unit"] == "leaky.service"]
    assert "app: token=*** leaked" in [event["text"] for event in found]


def test_a_container_is_named_from_files_that_root_alone_reads(opened: Recording) -> None:
    rows = [row for row in opened.table("containers").to_pylist() if row["id"] == CONTAINER]
    assert ("web", "shop:7") in {(row["name"], row["image"]) for row in rows}


def test_no_secret_is_stored(opened: Recording) -> None:
    lines = {row["cmdline"] for row in opened.table("tasks").to_pylist() if row["unit"] == "busy.service"}
    assert any(line and line.endswith("--password ***") for line in lines)
    for table in ("tasks", "events", "containers", "leaks"):
        assert "hunter2" not in str(opened.table(table).to_pylist())


def test_the_ledger_is_exact(told: Told) -> None:
    leaks = on_host("cgroups", told.recording)["leaks"]
    assert [one for one in leaks if one["path"] == "/system.slice/leaky.service"]


def test_the_page_answers_and_the_doctor_looked(told: Told) -> None:
    assert told.page["live"] is True
    assert (told.recording / "node=lab/incidents.json").exists()
