"""The recorder as a service on a Debian node with cgroup v2, systemd and four CPUs; read on the host."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.booted_node import RECORDING, booted, on_host, start_leaks, start_recorder, steady, stop_leaks, until

from zombiescope.lab.node import LabNode, Plan
from zombiescope.store.reader import Recording, open_recording

pytestmark = [pytest.mark.node, pytest.mark.slow]

FOUR = {"cap_perfmon": 38, "cap_syslog": 34, "cap_sys_ptrace": 19, "cap_dac_read_search": 2}
MPSTAT_S = 20
CHARGE_IN_PAGES = "import mmap; m = mmap.mmap(-1, 200 << 20)\nfor at in range(0, 200 << 20, 4096): m[at] = 1"
READ_UNITS = """
import json
from zombiescope.node.systemd import unit_files
from zombiescope.node.systemd.root import Root
from zombiescope.node.systemd.unit_files.timespan import human
files, found = unit_files.read(Root("/")), {}
for name in files.names:
    service = files.service(name)
    if service is None or "@" in name or files.unit(name).name != name:
        continue
    found[name] = [service.restart, human(service.restart_us), str(service.burst), human(service.interval_us)]
    found[name].append(files.state(name))
print(json.dumps(found))
"""
STATS = "import os\nwhile True: os.stat('/etc/hostname')"
SPIN = "import time\nwhile True:\n  e = time.monotonic() + .3\n  while time.monotonic() < e: pass\n  time.sleep(.2)"


@dataclass
class Told:
    """What was done to the node and read in it, beside the recording that it made."""

    recording: Path = Path()
    status: dict[str, str] = field(default_factory=dict)
    missing: list[Any] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)
    restarts: int = 0
    audit: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, list[str]] = field(default_factory=dict)
    shown: dict[str, list[str]] = field(default_factory=dict)
    cgroup_stat: dict[str, int] = field(default_factory=dict)
    census_at: float = 0.0
    mpstat: list[dict[str, Any]] = field(default_factory=list)
    mpstat_from: float = 0.0
    mpstat_to: float = 0.0
    offline_at: float = 0.0
    online_at: float = 0.0
    step_at: float = 0.0
    seconds_after_step: float = 0.0


@pytest.fixture(scope="module")
def node() -> Iterator[LabNode]:
    with booted(Plan("v2")) as made:
        yield made


@pytest.fixture(scope="module")
def told(node: LabNode, tmp_path_factory: pytest.TempPathFactory) -> Told:
    told = Told()
    start_recorder(node)
    _look_at_the_service(node, told)
    _leak(node, told)
    _run_out_of_memory(node)
    _load_and_mpstat(node, told)
    _unplug_and_plug(node, told)
    _set_the_clock(node, told)
    node.shell("systemctl stop zombiescope.service", limit_s=120.0)
    told.recording = node.get(RECORDING, tmp_path_factory.mktemp("out"))
    return told


def _now(node: LabNode) -> float:
    return float(node.shell("date +%s.%N"))


def _look_at_the_service(node: LabNode, told: Told) -> None:
    status = node.shell("cat /proc/$(systemctl show --property MainPID --value zombiescope)/status")
    told.status = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    told.found = json.loads(node.shell("zombiescope status --json", limit_s=120.0))
    node.shell("setpriv --reuid nobody --regid nogroup --clear-groups zombiescope mark 'from a user'", limit_s=120.0)


def _cgroup_stat(node: LabNode) -> dict[str, int]:
    text = node.shell("cat /sys/fs/cgroup/cgroup.stat")
    return {name: int(value) for name, value in (line.split() for line in text.splitlines())}


def _leak(node: LabNode, told: Told) -> None:
    start_leaks(node)
    until(node, "test $(systemctl show --property NRestarts --value leaky) -ge 20")
    until(node, "test $(ls /var/tmp/litter-* | wc -l) -ge 25")
    told.restarts = int(node.shell("systemctl show --property NRestarts --value leaky"))
    _audit(node, told)
    stop_leaks(node)
    told.cgroup_stat, told.census_at = steady(node, _cgroup_stat)


def _audit(node: LabNode, told: Told) -> None:
    """While the loop runs, and beside it what we and systemd make of every service's files."""
    told.audit = json.loads(node.run("zombiescope", "audit", "--json", limit_s=120.0).text)
    told.settings = json.loads(node.run("/opt/zombiescope/bin/python", "-c", READ_UNITS, limit_s=120.0).check().text)
    show = "systemctl show --property Id,Restart,RestartUSec,StartLimitIntervalUSec,StartLimitBurst,UnitFileState"
    for block in node.shell(f"{show} -- {' '.join(told.settings)}", limit_s=120.0).strip().split("\n\n"):
        values = dict(line.partition("=")[::2] for line in block.splitlines())
        unit = values.pop("Id")
        told.shown[unit] = [values[name] for name in sorted(values)]


def _run_out_of_memory(node: LabNode) -> None:
    limits = ("--property=MemoryMax=40M", "--property=MemorySwapMax=0", "--unit=greedy")
    node.run("systemd-run", "--wait", "--quiet", *limits, "python3", "-c", CHARGE_IN_PAGES, limit_s=120.0)


def _load_and_mpstat(node: LabNode, told: Told) -> None:
    node.run("systemd-run", "--unit=spin", "--property=CPUAffinity=1", "python3", "-c", SPIN).check()
    node.run("systemd-run", "--unit=stats", "--property=CPUAffinity=2", "python3", "-c", STATS).check()
    node.shell("sleep 4")
    told.mpstat_from = _now(node)
    said = node.run("mpstat", "-P", "ALL", "-o", "JSON", str(MPSTAT_S), "1", limit_s=120.0).check().text
    told.mpstat_to = _now(node)
    told.mpstat = json.loads(said)["sysstat"]["hosts"][0]["statistics"][-1]["cpu-load"]
    node.shell("sleep 2; systemctl stop spin stats", limit_s=120.0)


def _unplug_and_plug(node: LabNode, told: Told) -> None:
    online = "/sys/devices/system/cpu/cpu3/online"
    told.offline_at = _now(node)
    node.shell(f"echo 0 > {online}; sleep 5")
    told.online_at = _now(node)
    node.shell(f"echo 1 > {online}; sleep 3")
    node.run("systemd-run", "--unit=third", "--property=CPUAffinity=3", "python3", "-c", SPIN).check()
    node.shell("sleep 6; systemctl stop third", limit_s=120.0)


def _set_the_clock(node: LabNode, told: Told) -> None:
    script = (
        "cut -d' ' -f1 /proc/uptime; date +%s.%N; date --set '+1 hour' >/dev/null; sleep 8; cut -d' ' -f1 /proc/uptime"
    )
    before, told.step_at, after = (float(word) for word in node.shell(script).split())
    told.seconds_after_step = after - before


def events(told: Told, *kinds: str) -> list[dict[str, Any]]:
    options = [option for kind in kinds for option in ("--kind", kind)]
    found: list[dict[str, Any]] = on_host("events", told.recording, *options)["events"]
    return found


@pytest.fixture(scope="module")
def opened(told: Told) -> Iterator[Recording]:
    with open_recording(told.recording) as recording:
        yield recording


# --- the machine ----------------------------------------------------------------------------------------------------


def test_commands_end_as_they_would_anywhere(node: LabNode) -> None:
    done = node.run("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.exit, done.stdout, done.stderr) == (7, b"out\n", b"err\n")
    assert node.run("no-such-command").exit == 127


def test_a_command_that_never_ends_is_ended(node: LabNode) -> None:
    done = node.run("sh", "-c", "echo begun; sleep 1000", limit_s=2.0)
    assert (done.exit, done.text) == (None, "begun\n")
    assert "sleep" not in node.shell("ps -e -o comm=")


def test_files_go_in_and_come_out_unchanged(node: LabNode, tmp_path: Path) -> None:
    data = bytes(range(256)) * 5000
    node.put("/root/there/file", data)
    assert (node.get("/root/there", tmp_path) / "file").read_bytes() == data


def test_the_node_is_what_users_have(node: LabNode) -> None:
    assert node.shell("systemctl is-system-running").strip() == "running"
    assert node.shell("cat /proc/1/comm").strip() == "systemd"
    assert node.shell("stat --file-system --format %T /sys/fs/cgroup").strip() == "cgroup2fs"
    assert node.shell("uname -r").strip() == node.image.release
    assert node.shell("journalctl --boot --lines 1 --quiet | wc -l").strip() == "1"


def test_the_nic_reaches_nothing(node: LabNode) -> None:
    """Without restriction QEMU's gateway passes connections on to the host's own loopback."""
    assert "virtio" in node.shell("readlink /sys/class/net/eth0/device/driver")
    node.shell("ip link set eth0 up; ip address add 10.0.2.15/24 dev eth0; ip route add default via 10.0.2.2")
    with socket.create_server(("127.0.0.1", 0)) as here:
        here.settimeout(0.1)
        script = f"import socket; socket.create_connection(('10.0.2.2', {here.getsockname()[1]}), 5)"
        assert node.run("python3", "-c", script).exit != 0
        with pytest.raises(TimeoutError):
            here.accept()


# --- the service ----------------------------------------------------------------------------------------------------


def test_it_runs_as_its_own_user_with_four_capabilities(told: Told) -> None:
    wanted = sum(1 << number for number in FOUR.values())
    for kind in ("CapEff", "CapPrm", "CapBnd", "CapAmb"):
        assert int(told.status[kind], 16) == wanted
    assert "0" not in told.status["Uid"].split()
    assert told.status["NoNewPrivs"] == "1"


def test_nothing_is_missing_with_them(told: Told) -> None:
    node = json.loads((told.recording / "node=lab/node.json").read_text())
    assert node["missing"] == []


def test_everybody_finds_it(told: Told) -> None:
    assert told.found["running"] is True
    assert [event["text"] for event in events(told, "mark")] == ["from a user"]


# --- cgroups --------------------------------------------------------------------------------------------------------


def test_the_census_is_the_kernels_own(told: Told) -> None:
    memory = on_host("cgroups", told.recording, "--to", str(told.census_at))["memory"]
    assert memory["hierarchy"] == "v2"
    assert memory["live"] == told.cgroup_stat["nr_descendants"] + 1
    assert memory["dying"] == told.cgroup_stat["nr_dying_descendants"]
    assert memory["lost"] == 0


def leak(told: Told, path: str) -> dict[str, Any]:
    leaks = on_host("cgroups", told.recording, "--to", str(told.census_at))["leaks"]
    found: list[dict[str, Any]] = [one for one in leaks if one["path"] == path]
    assert found, leaks
    return found[0]


def test_the_leak_of_a_unit_that_dies_and_dies_again(told: Told) -> None:
    found = leak(told, "/system.slice/leaky.service")
    assert found["exact"]
    assert found["creator"]["unit"] == "leaky.service"
    assert found["dying"] >= told.restarts * 0.9


def test_the_leak_of_a_unit_that_stays_active(told: Told) -> None:
    found = leak(told, "/system.slice/litter.service/job-*")
    assert found["exact"]
    assert found["creator"]["unit"] == "litter.service"
    assert found["dying"] >= 20
    churn = [event for event in events(told, "cgroup_churn") if event["fields"]["path"] == found["path"]]
    assert churn
    assert churn[0]["fields"]["unit"] == "litter.service"


def test_every_dying_cgroup_is_somebodys(told: Told, opened: Recording) -> None:
    leaks = on_host("cgroups", told.recording, "--to", str(told.census_at))["leaks"]
    before = opened.table("census").to_pylist()[0]["dying"]
    assert sum(one["dying"] for one in leaks) == told.cgroup_stat["nr_dying_descendants"] - before


def test_restarts_come_over_the_bus(told: Told) -> None:
    found = [event for event in events(told, "unit_restart") if event["fields"]["unit"] == "leaky.service"]
    assert sum(event["fields"]["delta"] for event in found) >= told.restarts
    assert not [event for event in events(told, "unit_restart") if event["fields"]["unit"] == "litter.service"]


def test_a_reload_of_systemd_is_not_a_start_of_every_unit(told: Told) -> None:
    started = {one["fields"]["unit"] for one in events(told, "unit_state") if "started" in one["text"]}
    started.discard("greedy.service")  # too short-lived for its state to settle, now and then
    assert started == {"litter.service", "spin.service", "stats.service", "third.service"}


# --- the kernel -----------------------------------------------------------------------------------------------------


def test_the_kernels_own_words(told: Told) -> None:
    (killed,) = events(told, "oom_kill")
    (why,) = events(told, "memcg_oom")
    assert killed["source"] == why["source"] == "kmsg"
    assert why["fields"]["task_memcg"] == "/system.slice/greedy.service"
    assert killed["fields"]["pid"] == why["fields"]["pid"]


def test_functions_are_named_in_the_kernel_and_outside(opened: Recording) -> None:
    frames = {row["frame"]: row for row in opened.table("frames").to_pylist()}
    stacks = {row["stack"]: [frames[one] for one in row["frames"]] for row in opened.table("stacks").to_pylist()}
    tasks = {row["task"]: row for row in opened.table("tasks").to_pylist()}
    samples = opened.table("samples").to_pylist()
    of_stats = [stacks[one["stack"]] for one in samples if tasks[one["task"]]["unit"] == "stats.service"]
    named = {(frame["kind"], frame["name"]) for stack in of_stats for frame in stack}
    assert len(of_stats) > 100
    assert ("kernel", "do_syscall_64") in named
    assert any(kind == "kernel" and "stat" in name for kind, name in named)
    assert ("user", "_PyEval_EvalFrameDefault") in named


def test_each_core_agrees_with_mpstat(told: Told) -> None:
    """mpstat's parts are of the ticks that were accounted, ours of the time that passed; an emulated CPU loses some."""
    window = ("--from", str(told.mpstat_from), "--to", str(told.mpstat_to))
    ours = {core["cpu"]: core for core in on_host("cores", told.recording, *window)["cores"]}
    rows = [row for row in told.mpstat if row["cpu"] not in ("all", "-1")]
    assert len(rows) == len(ours) == 4
    for row in rows:
        core = ours[int(row["cpu"])]
        accounted = core["busy"] + core["idle"] + core["iowait"]
        assert 0.6 < accounted < 1.05
        for mode, theirs in (("user", "usr"), ("system", "sys"), ("softirq", "soft"), ("idle", "idle")):
            assert 100 * core[mode] / accounted == pytest.approx(row[theirs], abs=3), (mode, row, core)
    assert ours[2]["busy"] > 0.5


def test_a_core_goes_and_comes_back(told: Told, opened: Recording) -> None:
    (went,) = events(told, "cpu_offline")
    (came,) = events(told, "cpu_online")
    assert went["fields"]["cpus"] == came["fields"]["cpus"] == [3]
    assert told.offline_at <= went["at"] < told.online_at <= came["at"]
    samples = [row for row in opened.table("samples").to_pylist() if row["cpu"] == 3]
    times = [row["time"].timestamp() for row in samples]
    assert not [at for at in times if went["at"] < at < told.online_at]
    assert len([at for at in times if came["at"] < at < told.step_at]) > 100


def test_a_clock_that_is_set_bends_nothing(told: Told, opened: Recording) -> None:
    (step,) = events(told, "clock_step")
    assert step["fields"]["seconds"] == pytest.approx(3600, abs=1)
    rows = [row for row in opened.table("cores").to_pylist() if row["cpu"] == 0]
    times = [row["time"].timestamp() for row in rows]
    before, after = [at for at in times if at < told.step_at + 1800], [at for at in times if at > told.step_at + 1800]
    # A tick may be on its way while the clock is set; no other lies between the two times.
    assert max(before) < told.step_at + 3
    assert min(after) > told.step_at + 3600 - 1
    assert max(after) - min(after) == pytest.approx(told.seconds_after_step, abs=4)
    assert max(row["interval_us"] for row in rows) < 5_000_000


def test_the_recording_is_whole_on_another_machine(told: Told) -> None:
    info = on_host("info", told.recording)
    assert info["node"] == "lab"
    assert info["kernel"].endswith("-amd64")
    assert info["samples"] > 1000
    assert not [gap for gap in info["gaps"] if gap["source"] == "stack samples"]


# --- the audit ------------------------------------------------------------------------------------------------------


def test_the_audit_finds_the_loop_while_it_runs(told: Told) -> None:
    assert told.audit["live"]
    worst = told.audit["findings"][0]
    assert (worst["unit"], worst["rule"], worst["severity"]) == ("leaky.service", "auto-restart", "critical")
    assert "endless-restart:leaky.service" in {finding["id"] for finding in told.audit["findings"]}


def test_settings_from_files_are_those_that_systemd_has(told: Told) -> None:
    assert len(told.settings) > 60
    assert told.settings == told.shown


# --- check, with the service stopped and the leaks going on ------------------------------------------------------


@pytest.fixture(scope="module")
def checks(node: LabNode, told: Told) -> dict[str, dict[str, Any]]:
    """What `zombiescope check` tells root, and an ordinary user."""
    start_leaks(node)
    until(node, "test $(systemctl show --property NRestarts --value leaky) -ge 20")
    nobody = "cd / && setpriv --reuid nobody --regid nogroup --clear-groups "
    made = {}
    for user, prefix in (("root", ""), ("nobody", nobody)):
        done = node.run("/bin/sh", "-c", f"{prefix}zombiescope check --for 6s --fail-on info --json", limit_s=240.0)
        assert done.exit == 3, done
        made[user] = json.loads(done.text)
    stop_leaks(node)
    return made


def test_check_sees_who_makes_cgroups_and_which_unit_restarts(checks: dict[str, dict[str, Any]]) -> None:
    seen = checks["root"]
    assert seen["missing"] == []
    makers = {line["path"]: line for line in seen["cgroups"]["makers"]}
    assert makers["/system.slice/leaky.service"]["creator"]["unit"] == "leaky.service"
    assert makers["/system.slice/litter.service/job-*"]["creator"]["comm"] == "mkdir"
    assert seen["cgroups"]["growth"]["dying"] > 0
    assert {one["unit"] for one in seen["units"]["restarted"]} <= {"leaky.service"}
    assert [one for one in seen["units"]["restarted"] if not 0 < one["times"] < one["so_far"]] == []
    assert seen["units"]["n_restarts"]["leaky.service"] >= 20
    rules = {finding["rule"] for finding in seen["findings"]}
    assert "dying-cgroups-grow" in rules
    assert rules & {"unit-restarted", "unit-waits"}


def test_check_tells_an_ordinary_user_of_the_node_what_it_may(checks: dict[str, dict[str, Any]]) -> None:
    seen = checks["nobody"]
    assert {"stack samples", "tracefs", "kernel log"} <= {one["source"] for one in seen["missing"]}
    assert seen["cgroups"]["makers"] is None
    assert seen["cgroups"]["growth"]["dying"] > 0
    assert seen["units"]["n_restarts"]["leaky.service"] >= 20
    assert len(seen["cores"]) == 4
    assert all(core["hog"] is None and core["busy"] is not None for core in seen["cores"])


# --- diagnose, with a unit that crashes and leaks, and somebody who walks what it left ---------------------------

CRASH = """\
[Unit]
StartLimitIntervalSec=0
[Service]
Delegate=yes
ExecStart=/usr/bin/python3 /usr/local/bin/crash
Restart=always
RestartSec=100ms
"""
CRASH_SCRIPT = """\
# The files are in memory: dropping slab caches would free page cache with its inodes, and the zombies with it.
import os, sys
own = '/sys/fs/cgroup' + open('/proc/self/cgroup').read().split('0::')[1].split()[0]
def move(place):
    with open(place + '/cgroup.procs', 'w') as file: file.write('0')
os.mkdir(own + '/supervisor')
move(own + '/supervisor')
with open(own + '/cgroup.subtree_control', 'w') as file: file.write('+memory')
for number in range(200):
    job = f'{own}/job-{number:04d}'
    os.mkdir(job)
    move(job)
    with open(f'/dev/shm/crash-{os.getpid()}-{number}', 'w') as file: file.write('x')
    move(own + '/supervisor')
    os.rmdir(job)
sys.exit(5)
"""
WALK = "import os; open('/proc/self/comm', 'w').write('walker'); fd = os.open('/proc/sys/vm/drop_caches', os.O_WRONLY)"
WALK += "\nwhile True: os.write(fd, b'2')"
DYING = "awk '$1 == \"nr_dying_descendants\" {print $2}' /sys/fs/cgroup/cgroup.stat"


@pytest.fixture(scope="module")
def diagnosed(node: LabNode) -> dict[str, Any]:
    """What `diagnose --live` tells while the unit crashes on and slab caches are dropped all the time."""
    node.put("/etc/systemd/system/crash.service", CRASH)
    node.put("/usr/local/bin/crash", CRASH_SCRIPT)
    node.shell("systemctl daemon-reload; systemctl start --no-block crash")
    until(node, f"test $({DYING}) -ge 1500", 240.0)
    node.run("systemd-run", "--quiet", "--unit=walker", "python3", "-c", WALK, limit_s=120.0).check()
    done = node.run("/bin/sh", "-c", "zombiescope diagnose --live 20s --fail-on info --json", limit_s=300.0)
    node.shell("systemctl stop walker crash; rm -f /dev/shm/crash-*", limit_s=120.0)
    assert done.exit == 3, done
    found: dict[str, Any] = json.loads(done.text)
    return found


@pytest.mark.long
def test_the_crashing_unit_is_the_culprit_by_name(diagnosed: dict[str, Any]) -> None:
    causes = [cause for incident in diagnosed["incidents"] for cause in incident["causes"][:1]]
    told = [(cause["pattern"], cause["hog"]["comm"], cause["culprit"]) for cause in causes]
    (cause,) = [cause for cause in causes if cause["pattern"] == "zombie-memcg"] or pytest.fail(str(told))
    assert cause["hog"]["comm"] == "walker"
    assert cause["hog"]["unit"] == "walker.service"
    assert cause["culprit"]["unit"] == "crash.service"
    assert cause["culprit"]["cgroup"] == "/system.slice/crash.service/job-*"
    assert "systemctl disable --now crash.service" in cause["fix"]["steps"]
    assert cause["confidence"] > 0.5
