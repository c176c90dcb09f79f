"""What people are told to run: computed, quoted, with its way back, and never on what a node needs to live.

Every pattern's plan is made again with the names that a neighbour could choose.
"""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.helpers import printed
from tests.helpers.pattern_rows import ROWS, Row
from tests.helpers.plans import changes
from tests.helpers.scenes import Scene
from tests.unit.diagnosis.test_zombie_memcg import RECLAIM

from zombiescope.audit.protected import protection
from zombiescope.diagnosis.carriers import CARRIER_UNITS
from zombiescope.diagnosis.incident import Cause
from zombiescope.diagnosis.patterns.irq_imbalance import cpu_mask
from zombiescope.model.plans.step import Step, advice, change, command

SYSCTLS = {
    "kernel.bpf_stats_enabled": "0", "kernel.numa_balancing": "1", "kernel.printk": "7 4 1 7", "vm.oom_dump_tasks": "1",
    "vm.compaction_proactiveness": "20", "net.ipv4.vs.run_estimation": "1",
    "/sys/kernel/mm/transparent_hugepage/defrag": "madvise",
}  # fmt: skip
HOSTILE = (
    "x$(touch pwned)y",
    "a;touch pwned",
    "x`touch pwned`y",
    "x' pwned 'y",
    "-rf-pwned",
    "x\ntouch pwned",
    "x\x1b]0;pwned",
)
PLAIN = "harmless"


def named(row: Row, name: str, *, sysctls: bool = True) -> Scene:
    """The scene in which a pattern is confirmed, with this name wherever somebody else chooses one."""
    scene = row.confirms(row.base(Scene()))
    scene.runs = [
        replace(
            one,
            comm=name[:15] if one.comm == "agent" else one.comm,
            unit=f"{name}.service" if one.ppid != 2 else one.unit,
            cgroup=f"/system.slice/{name}.service" if one.ppid != 2 and one.cgroup is None else one.cgroup,
        )
        for one in scene.runs
    ]
    for table in ("leaks", "cgroup_stats", "events", "series"):
        rows = scene.made.tables.get(table, [])
        scene.made.tables[table] = [tuple(_renamed(value, name) for value in each) for each in rows]
    scene.made.add("queues", time=1_760_000_001_000_000, nic=name, queue="rx-0", irq=30, cpus="0,1")
    scene.node |= {"nics": {name: "ena 2.10.0"}, **({"sysctls": SYSCTLS} if sysctls else {})}
    return scene


def _renamed(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    if value.startswith("{"):
        return json.dumps({key: _renamed(one, name) for key, one in json.loads(value).items()})
    for old in ("ecs-agent", "agent", "eth0", "/ecs/*", "job.slice", "leaky"):
        value = value.replace(old, f"/ecs/{name}" if old.startswith("/") else name)
    return value


def causes(scene: Scene, directory: Path) -> list[Cause]:
    return [cause for incident in scene.diagnose(directory).incidents for cause in incident.causes]


def steps(scene: Scene, directory: Path) -> list[Step]:
    return [step for cause in causes(scene, directory) for step in cause.fix.steps]


def lines(found: list[Step]) -> Iterator[str]:
    for step in found:
        if step.command is not None:
            yield from (line for line in (str(step), step.line, step.undo, step.verify) if line)


def is_shell(line: str) -> bool:
    return subprocess.run(["bash", "-n", "-c", line], capture_output=True, timeout=20).returncode == 0


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_no_name_becomes_more_than_one_word_of_a_command(row: Row, tmp_path: Path) -> None:
    for number, name in enumerate(HOSTILE):
        for line in lines(steps(named(row, name), tmp_path / str(number))):
            assert line.isprintable(), line
            assert is_shell(line), line
            words = printed.words(line)
            assert all(name[:15] in word for word in words if "pwned" in word), line  # the kernel cuts a comm
            assert not [word for word in words if word.startswith("-") and "pwned" in word], line
            assert not {"touch", "pwned"} & set(printed.programs(line)), line


def test_hostile_names_do_reach_commands(tmp_path: Path) -> None:
    """Else the test above would see nothing."""
    seen = {
        row.pattern
        for row in ROWS
        if any("pwned" in line for line in lines(steps(named(row, HOSTILE[0]), tmp_path / row.pattern)))
    }
    assert {"irq-imbalance", "network-allowance", "cfs-throttle", "memcg-limit-reclaim"} <= seen


@pytest.mark.parametrize("name", ["x\ntouch pwned", "x\x1b[2Jy", "x\x85y"])
def test_a_step_stays_on_its_line(name: str) -> None:
    for step in (
        advice(f"stop {name}"),
        command(f"cat '{name}'"),
        command("ls", name),
        change("true", name, touches=name, risk=name, undo="true", verify="true"),
        change(f"rm '{name}'", "x", touches="x", risk="x", undo="true", verify="true"),
    ):
        assert str(step).isprintable()
        assert all(map(str.isprintable, (step.does, *step.touches, step.risk)))
    assert command(f"cat '{name}'").kind == "advice"


# --- which commands change something ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "does"),
    [
        ("systemctl disable --now ecs.service", True),
        ("systemctl list-units --type=scope", False),
        ("sysctl -w vm.oom_dump_tasks=0", True),
        ("sysctl vm.oom_dump_tasks", False),
        ("echo 2 > /proc/sys/vm/drop_caches", True),
        ("ethtool -L eth0 combined 8", True),
        ("ethtool -l eth0; ethtool -S eth0 | grep err", False),
        ("auditctl -D", True),
        ("auditctl -s; auditctl -l", False),
        ("loginctl list-sessions --no-legend | awk '{print $1}' | xargs -r loginctl terminate-session", True),
        ("chrt -o -p 0 17", True),
        ("chrt -p 17", False),
        ("taskset -pc 17", False),
        ("taskset -pc 0-3 17", True),
        ("docker update --restart=no x", True),
        ("docker ps --all --filter name=x", False),
        ("kubectl -n a describe pod b", False),
        ("kubectl -n a delete pod b", True),
        ("nvidia-smi -pm 1", True),
        ("nvidia-smi --query-gpu=index,persistence_mode --format=csv", False),
        ("sudo modprobe x", True),
    ],
)
def test_what_changes_a_node_is_told_from_what_only_looks(line: str, does: bool) -> None:
    assert changes(line) is does


@pytest.mark.parametrize("sysctls", [True, False], ids=["recorded", "not-recorded"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_what_changes_the_node_says_what_it_touches_and_has_a_way_back(row: Row, sysctls: bool, tmp_path: Path) -> None:
    for step in steps(named(row, PLAIN, sysctls=sysctls), tmp_path):
        assert step.kind == "advice" or changes(step.line) == bool(step.touches), step
        assert bool(step.undo) == bool(step.verify) == bool(step.touches) == bool(step.risk) == (step.kind == "change")
        assert not changes(step.verify)
        assert step.command is not None or not step.touches


def test_no_pattern_makes_a_changing_command_with_the_word_for_looking() -> None:
    """Also in branches that no scene reaches."""
    found = []
    for file in sorted((printed.SOURCE / "diagnosis").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "command"
                and node.args
            ):
                found += [(file.name, text) for text in _literals(node.args[0])]
    assert len(found) > 30
    assert [(name, text) for name, text in found if changes(text)] == []


def _literals(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from (*_literals(node.body), *_literals(node.orelse))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "shell":
        yield " ".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.args)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.pattern)
def test_a_plan_names_no_card_and_no_process_that_was_not_recorded(row: Row, tmp_path: Path) -> None:
    scene = row.confirms(row.base(Scene()))
    scene.made.tables.pop("queues", None)
    for line in lines(steps(scene, tmp_path)):
        assert not {"eth0", "PID", "UNIT", "CORE"} & set(printed.words(line)), line


# --- the way back ----------------------------------------------------------------------------------------------------


def test_a_sysctl_goes_back_to_what_was_recorded(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.pattern == "oom-console")
    found = {step.line: step for step in steps(named(row, PLAIN), tmp_path) if step.touches}
    assert found["sysctl -w vm.oom_dump_tasks=0"].undo == "sysctl -w vm.oom_dump_tasks=1"
    assert found["sysctl -w 'kernel.printk=4 4 1 7'"].undo == "sysctl -w 'kernel.printk=7 4 1 7'"


def test_a_value_that_was_not_recorded_is_printed_first(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.pattern == "numa-balancing")
    found = steps(named(row, PLAIN, sysctls=False), tmp_path)
    place = next(at for at, step in enumerate(found) if step.touches)
    assert found[place - 1].line == "sysctl kernel.numa_balancing"
    assert "note" in found[place - 1].does
    assert "noted" in found[place].undo


def test_what_is_set_already_is_not_set_again(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.pattern == "numa-balancing")
    scene = named(row, PLAIN)
    scene.node["sysctls"] = {**SYSCTLS, "kernel.numa_balancing": "0"}
    assert not [step for step in steps(scene, tmp_path) if step.touches]


@pytest.mark.parametrize(("count", "most"), [(260_000, 262_144), (4_000_000, 4_194_304)])
def test_the_connection_table_only_grows(count: int, most: int, tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.pattern == "conntrack")
    scene = row.base(Scene()).gauge("conntrack", "count", count).gauge("conntrack", "max", most)
    (step,) = [step for step in steps(scene, tmp_path) if step.touches]
    assert int(step.line.rpartition("=")[2]) > most
    assert step.undo.endswith(f"={most}")
    assert "MB" in step.touches[0]


def test_the_hash_table_grows_first_and_by_the_same_factor(tmp_path: Path) -> None:
    """Twice the entries in as many buckets are chains of twice the length, on cores that are short of time."""
    row = next(row for row in ROWS if row.pattern == "conntrack")
    scene = row.base(Scene()).gauge("conntrack", "count", 260_000).gauge("conntrack", "max", 262_144)
    scene.node["sysctls"] = {**SYSCTLS, "net.netfilter.nf_conntrack_buckets": "65536"}
    buckets, entries = (step.line for step in steps(scene, tmp_path) if step.touches)
    assert buckets == "sysctl -w net.netfilter.nf_conntrack_buckets=131072"
    assert entries == "sysctl -w net.netfilter.nf_conntrack_max=524288"


def test_a_table_with_room_is_not_made_larger(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.pattern == "conntrack")
    scene = row.confirms(row.base(Scene()))
    scene.made.tables["counters"] = []
    scene.gauge("conntrack", "count", 10).gauge("conntrack", "max", 262_144)
    assert not [step for step in steps(scene, tmp_path) if step.touches]


def test_caches_are_not_dropped_where_that_walks_zombies(tmp_path: Path) -> None:
    row = next(row for row in ROWS if row.pattern == "negative-dentries")
    few, many = row.confirms(row.base(Scene())).census(240, 20), row.confirms(row.base(Scene())).census(240, 30_000)
    assert [step.line for step in steps(few, tmp_path / "few") if "drop_caches" in step.line]
    assert not [step for step in steps(many, tmp_path / "many") if "drop_caches" in step.line]


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [([0], "1"), ([0, 1, 2, 3], "f"), (range(32), "ffffffff"), ([32], "1,00000000"), (range(40), "ff,ffffffff")],
)
def test_a_mask_of_cores_is_written_as_the_kernel_reads_it(cpus: list[int], mask: str) -> None:
    assert cpu_mask(cpus) == mask


# --- protected units -------------------------------------------------------------------------------------------------

PROTECTED = sorted(
    CARRIER_UNITS
    | {
        "ssh.service", "sshd.service", "dbus.service", "dbus-broker.service", "systemd-journald.service", "init.scope",
        "systemd-logind.service", "systemd-udevd.service", "systemd-networkd.service", "NetworkManager.service",
        "getty@tty1.service", "serial-getty@ttyS0.service", "cloud-init.service", "amazon-ssm-agent.service",
        "zombiescope.service", "zombiescope-recorder.service", "system.slice", "kubepods.slice", "user@1000.service",
        "run-r1f2.scope", "session-4.scope", "docker-0123abcd.scope", "cri-containerd-0123.scope", "tmp.mount",
        "nvidia-fabricmanager.service", "multipathd.service", "-rf.service", "x;y.service", "x\ny.service",
    }
)  # fmt: skip


@pytest.mark.parametrize("unit", PROTECTED)
def test_no_plan_touches_a_protected_unit(unit: str, tmp_path: Path) -> None:
    assert protection(unit) is not None
    scene = Scene(kernel="6.18.0").vmstat().census(240, 68_440).hog(RECLAIM, "worker")
    for step in steps(scene.leak(f"/system.slice/{unit}", 68_000, 500, 500, "systemd", unit), tmp_path):
        assert not step.touches, step


@pytest.mark.parametrize(
    "unit", ["ecs.service", "snapd.service", "node_exporter.service", "apt-daily.timer", r"a\x2db.service"]
)
def test_other_units_may_be_stopped(unit: str) -> None:
    assert protection(unit) is None


def test_nobody_is_stopped_where_nobody_is_known(tmp_path: Path) -> None:
    scene = Scene(kernel="6.18.0").vmstat().census(240, 68_440).hog(RECLAIM, "worker")
    found = steps(scene, tmp_path)
    assert not [step for step in found if step.touches]
    assert "was not recorded" in found[0].line


def test_the_shared_memory_of_the_node_is_made_larger_with_its_size_as_the_way_back(tmp_path: Path) -> None:
    scene = Scene().event("sigbus", "python3 was killed by SIGBUS", severity="warning", comm="python3", pid=47)
    scene.gauge("shm", "size_bytes", 64 << 20, "node").gauge("shm", "used_bytes", 64 << 20, "node")
    (step,) = [step for step in steps(scene, tmp_path) if step.touches]
    assert step.line == f"mount -o remount,size={128 << 20} /dev/shm"
    assert step.undo == f"mount -o remount,size={64 << 20} /dev/shm"
    assert step.part == "stop-gap"


def test_a_unit_of_a_user_is_not_looked_for_among_those_of_the_system(tmp_path: Path) -> None:
    scene = Scene(kernel="6.18.0").vmstat().census(240, 68_440).hog(RECLAIM, "worker")
    place = "/user.slice/user-1000.slice/user@1000.service/app.slice/ecs.service"
    assert not [
        step for step in steps(scene.leak(place, 68_000, 5, 5, "systemd", "ecs.service"), tmp_path) if step.touches
    ]
