"""What a recorder has to see, however it was installed: one load, and one list of questions about the recording of it.

The load runs on the node, in cgroups named as containerd names those of pods: a container that its CPU limit stops, one
at its memory limit, one that the kernel kills for memory (a kernel log line with a call trace), a core that the kernel
holds, cgroups that are removed and not freed; and a process that writes a line of the kernel's into /dev/kmsg.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.helpers.booted_node import on_host
from zombiescope.lab.node import LabNode
from zombiescope.store.reader import open_recording

CONFIG = "/etc/zombiescope/agent.yaml"
QUIET = "recorder: {diagnose: false, python: false, whole_stacks: false}\n"
"""An emulated processor is slower by an order of magnitude: what the diagnosis costs there is not what a node pays."""
PODS = "/kubepods.slice/kubepods-burstable.slice"
THROTTLED, LIMITED, KILLED = "a" * 64, "b" * 64, "d" * 64
HOG_CPU = 3
BUSY = ("user_ms", "nice_ms", "system_ms", "irq_ms", "softirq_ms", "iowait_ms")
FORGED = "ena 0000:00:05.0 eth0: Keep alive watchdog timeout."
LOAD = rf"""
import os, signal, subprocess, sys, time
TOP, PODS = "/sys/fs/cgroup", "{PODS}"

def scope(container, **limits):
    parts = (PODS + "/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (
        "_".join((container[:8], container[:4], container[:4], container[:4], container[:12])), container)).strip("/")
    place = TOP
    for part in parts.split("/"):
        with open(place + "/cgroup.subtree_control", "w") as control:
            control.write("+cpu +memory")
        place += "/" + part
        os.makedirs(place, exist_ok=True)
    for name, value in limits.items():
        with open(place + "/" + name.replace("_", "."), "w") as limit:
            limit.write(str(value))
    return place

def start(place, name, code, cpu=None):
    pid = os.fork()
    if pid == 0:
        if place is not None:
            open(place + "/cgroup.procs", "w").write("0")
        if cpu is not None:
            os.sched_setaffinity(0, {{cpu}})
        open("/proc/self/comm", "w").write(name)
        code()
        os._exit(0)
    return pid

def stop(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

def spin():
    while True:
        pass

def read_files():
    block = bytearray(1 << 20)
    while True:
        with open("/var/tmp/sparse", "rb", buffering=0) as file:
            while file.readinto(block):
                pass

def grow():
    kept = []
    while True:
        kept.append(bytearray(b"x" * (1 << 20)))

def hold():
    with open("/dev/zero", "rb", buffering=0) as zero:
        block = bytearray(64 << 20)
        while True:
            zero.readinto(block)

def leak():
    place, number = TOP + PODS + "/leaky.slice", 0
    os.makedirs(place, exist_ok=True)
    open(place + "/cgroup.subtree_control", "w").write("+memory")
    while True:
        job = place + "/job-%d" % number
        os.mkdir(job)
        subprocess.run(["sh", "-c", "echo $$ > %s/cgroup.procs; echo x > /dev/shm/leak-%d" % (job, number)])
        time.sleep(0.05)
        os.rmdir(job)
        number += 1
        time.sleep(0.5)

with open("/dev/kmsg", "w") as log:
    log.write("<3>{FORGED}")
with open("/var/tmp/sparse", "wb") as sparse:
    sparse.truncate(512 << 20)
leaking = start(None, "leaker", leak)
throttled = start(scope("{THROTTLED}", cpu_max="20000 100000"), "cpu-limited", spin, 1)
time.sleep(12)
stop(throttled)
open("/proc/sys/vm/drop_caches", "w").write("1")
limited = start(scope("{LIMITED}", memory_max=32 << 20), "mem-limited", read_files, 2)
time.sleep(16)
stop(limited)
killed = start(scope("{KILLED}", memory_max=40 << 20, memory_swap_max=0), "oom-victim", grow)
os.waitpid(killed, 0)
time.sleep(2)
held = start(None, "core-holder", hold, {HOG_CPU})
time.sleep(12)
stop(held)
time.sleep(3)
stop(leaking)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """A recording of the load, brought out of the node."""

    recording: Path

    def tables(self, name: str) -> list[dict[str, Any]]:
        with open_recording(self.recording) as opened:
            return list(opened.table(name).to_pylist())

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [one for one in on_host("events", self.recording)["events"] if one["kind"] in kinds]


def run_load(node: LabNode) -> None:
    node.run("python3", "-c", LOAD, limit_s=240.0).check()


def _one(found: list[Any], what: str) -> Any:
    assert found, what
    return found[0]


# --- the list --------------------------------------------------------------------------------------------------------


def the_throttled_container_is_named(seen: Seen) -> None:
    rows = [row for row in seen.tables("cgroup_stats") if THROTTLED in row["cgroup"] and row["nr_throttled"]]
    assert rows
    assert rows[0]["cgroup"].startswith(PODS)
    causes = _causes(seen, "cfs-throttle")
    assert any(THROTTLED[:12] in json.dumps(cause) for cause in causes)


def the_memory_limit_is_counted_for_its_own_cgroup(seen: Seen) -> None:
    rows = [row for row in seen.tables("cgroup_stats") if LIMITED in row["cgroup"] and row["memory_max_events"]]
    assert rows
    sampled = {row["task"] for row in seen.tables("samples")}
    paths = {one["cgroup"] for one in seen.tables("tasks") if one["comm"] == "mem-limited" and one["task"] in sampled}
    assert paths == {rows[0]["cgroup"]}
    # Nobody's count of zero rules it out: in a cgroup namespace that was the recorder's own container's.
    own = [
        one
        for one in _incidents(seen)
        if any((cause["hog"] or {}).get("comm") == "mem-limited" for cause in one["causes"])
    ]
    refuted = [one for each in own for one in each["ruled_out"] if one["pattern"] == "memcg-limit-reclaim"]
    assert [one for one in refuted if one["value"] == 0] == []


def the_kernel_log_has_levels_whole_lines_and_call_traces(seen: Seen) -> None:
    killed = _one(seen.events("memcg_oom", "oom_summary"), "no line of the OOM kill")
    assert KILLED in json.dumps(killed["fields"])
    assert any("Call Trace" in one["text"] for one in seen.events("kernel_log"))


def a_line_that_a_process_wrote_is_not_the_kernels(seen: Seen) -> None:
    assert seen.events("nic_reset", "nic_event") == []
    assert [one["severity"] for one in seen.events("kernel_log") if FORGED in one["text"]] == ["info"]


def the_card_its_queues_and_counters_are_the_nodes(seen: Seen) -> None:
    assert {row["nic"] for row in seen.tables("queues")} == {"eth0"}
    assert {"eth0", "lo"} == {row["key"] for row in seen.tables("series") if row["source"] == "netdev"}


def the_lost_core_and_who_held_it_are_named(seen: Seen) -> None:
    """An emulated processor does not run all the time: seconds of which less than 95% is accounted for are lost to
    nobody, and then it is asked only who had the core, and that the kernel did."""
    rows = [row for row in seen.tables("cores") if row["cpu"] == HOG_CPU]
    held = [row for row in rows if row["system_ms"] and not row["idle_ms"] and not row["user_ms"]]
    assert len(held) >= 6
    holders = {task["task"] for task in seen.tables("tasks") if task["comm"] == "core-holder"}
    on_core = [row for row in seen.tables("samples") if row["task"] in holders]
    assert len(on_core) >= 100
    assert {row["cpu"] for row in on_core} == {HOG_CPU}
    whole = [row for row in held if sum(row[name] or 0 for name in BUSY) * 1000 >= 0.95 * row["interval_us"]]
    if len(whole) < 3:
        return
    found = [
        symptom for one in _incidents(seen) for symptom in one["symptoms"]
        if symptom["kind"] == "core_saturated" and symptom["cpu"] == HOG_CPU
    ]  # fmt: skip
    assert found
    assert any((cause["hog"] or {}).get("comm") == "core-holder" for one in _incidents(seen) for cause in one["causes"])


def the_leak_is_counted_by_path(seen: Seen) -> None:
    leaks = on_host("cgroups", seen.recording)["leaks"]
    leak = _one([one for one in leaks if one["path"].startswith(f"{PODS}/leaky.slice")], "no leak")
    assert leak["created"] >= 20
    assert leak["dying"] >= 10


def every_task_has_its_cgroup_on_the_node(seen: Seen) -> None:
    assert [task["cgroup"] for task in seen.tables("tasks") if (task["cgroup"] or "").startswith("/..")] == []


LIST: tuple[Callable[[Seen], None], ...] = (
    the_throttled_container_is_named,
    the_memory_limit_is_counted_for_its_own_cgroup,
    the_kernel_log_has_levels_whole_lines_and_call_traces,
    a_line_that_a_process_wrote_is_not_the_kernels,
    the_card_its_queues_and_counters_are_the_nodes,
    the_lost_core_and_who_held_it_are_named,
    the_leak_is_counted_by_path,
    every_task_has_its_cgroup_on_the_node,
)


def _diagnosed(seen: Seen) -> dict[str, Any]:
    return on_host("diagnose", seen.recording)


_KNOWN: dict[Path, list[dict[str, Any]]] = {}


def _incidents(seen: Seen) -> list[dict[str, Any]]:
    if seen.recording not in _KNOWN:
        _KNOWN[seen.recording] = _diagnosed(seen)["incidents"]
    return _KNOWN[seen.recording]


def _causes(seen: Seen, pattern: str) -> list[dict[str, Any]]:
    return [cause for one in _incidents(seen) for cause in one["causes"] if cause["pattern"] == pattern]
