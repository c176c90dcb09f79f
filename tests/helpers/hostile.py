"""A recording in which every name that somebody else could choose is an attack on whoever shows it."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from tests.helpers import boxes
from tests.helpers import schedule as switches
from tests.helpers.made import SECOND, START_US, Node, write_segment
from tests.helpers.scenes import Scene
from zombiescope.store import incident_file, schema

TITLE = "\x1b]0;pwned\x07"
"""Sets the title of a terminal."""
TURNED = "\u202e"
"""Writes what follows from right to left."""
CSI = "\x9b31m"
FORGED = "FORGED: all is well"
"""The beginning of a line of its own, if a line break gets through."""
SCRIPT = "<script>alert(1)</script>"
LINK = "](javascript:alert(1))"
EVIL = f"{TITLE}{TURNED}{CSI}\x7f\u2028{SCRIPT}{LINK}|`x`$(touch pwned)\r\n{FORGED}"
NODE = f"n{TITLE}{TURNED}{CSI}\n{FORGED}"

_OURS = {
    "kind", "severity", "hierarchy", "runtime", "restart_policy", "source", "cpus", "boot", "id", "container",
    "pod_uid", "fields", "state",
}  # fmt: skip
"""Columns that nobody but the recorder fills."""


def write(directory: Path) -> Path:
    """Twenty seconds with a hog that no pattern knows, containers in a loop, a leak, marks and events."""
    unknown = "do_syscall_64 __x64_sys_bpf an_unheard_of_function"
    scene = Scene().hog(unknown, comm="agent", unit="agent.service", cgroup="/system.slice/agent.service")
    scene.hog("", comm="python3", cpu=0).census(240, 70_000).leak("/ecs/*", 60_000, 61_000, 60_500, unit="ecs.service")
    scene.event("mark", "epoch 12", severity="info").event("kernel_log", "eth0: reset", at_s=7)
    scene.serves("eth0", "0")
    node = copy.deepcopy(scene.made)
    for number in range(6):
        boxes.loop(node, number)
    scene._add_samples(node)
    scene._add_cores(node)
    library = node.frame("work", "user", "/opt/lib.so")
    task = node.task(77, "worker", cmdline="worker --flag", exe="/opt/worker", cgroup="/kubepods/x")
    for tick in range(200):
        node.sample(START_US + 6 * SECOND + tick * 10_000, 0, task, node.stack([library]))
    node.tables["samples"].sort()
    own, theirs = (
        node.frame("train", "python", "job/train.py"),
        node.frame("Queue.get", "python", "python3.11/queue.py"),
    )
    for second in range(4, 18):
        node.python(START_US + second * SECOND, task_tid=77, frames=[own, theirs], lines=[112, 171], comm="worker")
        node.python(START_US + second * SECOND, task_tid=4711, frames=[own], lines=[113], comm="loader", state="S")
    for pid in (31, 32):
        node.wait(START_US + 19 * SECOND, START_US + 4 * SECOND, "waiter", pid, kind="nfs", resource="fs-01:/data",
                  wchan="rpc_wait_bit_killable", cgroup="/kubepods/y", daemon="s3fs:7", alike=2)  # fmt: skip
        node.disk(START_US + 9 * SECOND, "nvme1n1", in_flight=3)
        node.mount(START_US + 9 * SECOND, "nfs4", "fs-01:/data", "/data", answered=7)
    _add_gpus(node)
    _add_schedule(node, task)
    node.add("gaps", time=START_US + 2 * SECOND, end=START_US + 3 * SECOND, source="rings", why="it stood still")
    write_segment(directory, {name: _poisoned(name, rows) for name, rows in node.tables.items()}, node=NODE)
    _poison_files(directory / f"node={NODE}")
    return directory


def _add_gpus(node: Node) -> None:
    """A GPU with a job, and one that a program left idle."""
    for second in range(20):
        for gpu in (0, 1):
            node.gpu_second(START_US + second * SECOND, gpu, 90 if second < 8 else 0)
    for gpu, pid in ((0, 77), (1, 4711)):
        node.gpu(START_US, gpu)
        node.gpu_process(START_US, gpu, pid, "worker", unit="train.service", memory_bytes=1 << 30)
    node.add("ranks", time=START_US, pid=77, rank=0, world_size=1, job="llama", kind="torchrun", comm="worker")


def _add_schedule(node: Node, task: int) -> None:
    """A thread that another one kept waiting, and a softirq that a thread kept waiting."""
    at, other = START_US + 6 * SECOND, node.task(78, "victim", cmdline="victim", cgroup="/kubepods/z")
    switches.watched(node, 0, at, at + 3 * SECOND)
    switches.ran(node, 0, task, at, at + 2 * SECOND)
    switches.waited(node, 0, other, at + SECOND // 10, at + 2 * SECOND)
    switches.softirq_waited(node, 0, 3, at + SECOND // 10, at + 2 * SECOND, "eth0-rx-1")


def _poisoned(table: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    names = schema.BY_NAME[table].names
    return [tuple(_value(table, row, name, value) for name, value in zip(names, row, strict=False)) for row in rows]


def _value(table: str, row: tuple[Any, ...], name: str, value: Any) -> Any:
    if not isinstance(value, str) or name in _OURS or (table == "series" and name == "name"):
        return value
    if table == "frames" and row[-1] not in ("user", "python"):
        return value  # the kernel's names are the kernel's
    return value + EVIL


def _poison_files(node_dir: Path) -> None:
    about = node_dir / "node.json"
    known = json.loads(about.read_text())
    poisoned = {key: value + EVIL for key, value in known.items() if key in ("kernel", "os", "machine")}
    missing = [{"source": f"x{EVIL}", "why": f"y{EVIL}", "grant": f"z{EVIL}"}]
    about.write_text(json.dumps({**known, **poisoned, "missing": missing, "labels": {f"a{EVIL}": f"b{EVIL}"}}))
    symptom = {"kind": "stall", "at": START_US / 1e6, "text": f"it stalls{EVIL}"}
    entry = {
        "id": f"i{EVIL}",
        "from": START_US / 1e6,
        "to": START_US / 1e6 + 5,
        "state": "open",
        "severity": "critical",
    }
    incident_file.write(node_dir, [{**entry, "symptoms": [symptom], "causes": []}], START_US)
