"""Real rings: opened, closed, opened again; work on top of idle; the event of hardware that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.kernel import cpu
from zombiescope.kernel.cgroup_path import normalise
from zombiescope.kernel.perf_event import Clock, monotonic_ns
from zombiescope.recorder import rings as module
from zombiescope.recorder.ledger import Ledger
from zombiescope.recorder.rings import PerfRings
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tracepoints import Tracepoint
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

LIFE = [Tracepoint("cgroup", f"cgroup_{step}", lambda *_: ()) for step in ("mkdir", "rmdir", "release")]


@contextmanager
def pinned_hog(number: int) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{number}}})\nwhile True: pass"]
    )
    try:
        time.sleep(0.3)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_a_cpu_that_went_and_came_back_is_sampled_again(needs: Needs) -> None:
    """The rings are real; that the CPU is away is only said, because taking one away would disturb the machine."""
    needs.perf_events()
    needs.tracefs()
    online = cpu.online() or (0,)
    last = online[-1]
    sources = Sources()
    rings = PerfRings(Clock(), max(online) + 1, sources, host_pids=True, now_us=0)
    rings.trace(LIFE[:1], 0)
    try:
        assert rings.follow(online, 0) == (list(online), [])
        with pinned_hog(last):
            time.sleep(0.5)
            rings.drain()
            assert rings.sampler.take_cores(monotonic_ns())[last][0] > 10
            assert rings.follow(online[:-1], 0) == ([], [last])
            time.sleep(0.3)
            rings.drain()
            rings.sampler.take_cores(monotonic_ns())
            assert rings.follow(online, 0) == ([last], [])
            time.sleep(0.5)
            rings.drain()
            assert rings.sampler.take_cores(monotonic_ns())[last][0] > 10
        assert "cgroup_mkdir" in rings.counts()
    finally:
        rings.close()


def test_99_samples_a_second_and_a_hole_is_seen(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    with pinned_hog(0) as hog, recording(tmp_path / "r") as recorder:
        recorder.wait_for_frames(5)
        recorder.stop()
    with open_recording(tmp_path / "r") as opened:
        rows = [row for row in opened.table("cores").to_pylist() if row["cpu"] == 0][1:]
        tasks = {row["task"]: row for row in opened.table("tasks").to_pylist()}
        samples = [row for row in opened.table("samples").to_pylist() if row["cpu"] == 0]
    for row in rows:
        assert row["expected_samples"] == pytest.approx(99 * row["interval_us"] / 1e6, abs=1)
        assert row["samples"] == pytest.approx(row["expected_samples"], abs=6)
        assert row["max_gap_us"] >= 10_000
    of_hog = [row for row in samples if tasks[row["task"]]["pid"] == hog]
    assert len(of_hog) > 0.5 * len(samples)


def test_softirq_work_on_top_of_idle_is_kept(needs: Needs, tmp_path: Path) -> None:
    """Packets from a sender on CPU 1 are steered to CPU 0, which has nothing else to do."""
    needs.perf_events()
    needs.root()
    needs.binary("ip", "iproute2")
    if (os.cpu_count() or 1) < 2:
        needs.lack("needs two CPUs")
    # Once packets come too fast the kernel hands them to ksoftirqd, and then none is left on top of idle: try again.
    for attempt in range(4):
        on_idle, packets = flooded(tmp_path / f"r{attempt}", f"zs{os.getpid()}{attempt}")
        if any({"handle_softirqs", "__do_softirq"} & set(stack) for stack in on_idle):
            break
    assert any({"handle_softirqs", "__do_softirq"} & set(stack) for stack in on_idle)
    assert all({"do_idle", "cpu_startup_entry"} & set(stack) for stack in on_idle)
    assert packets > 1000


def flooded(place: Path, name: str) -> tuple[list[list[str]], int]:
    """The stacks of the idle task while packets come, and how many softirqs CPU 0 had for them."""
    with steered_flood(name, seconds=6), recording(place) as recorder:
        recorder.wait_for_frames(3)
        recorder.stop()
    with open_recording(place) as opened:
        frames = {row["frame"]: row["name"] for row in opened.table("frames").to_pylist()}
        stacks = {row["stack"]: [frames[one] for one in row["frames"]] for row in opened.table("stacks").to_pylist()}
        idle_task = {row["task"] for row in opened.table("tasks").to_pylist() if row["tid"] == 0}
        cores = [row for row in opened.table("cores").to_pylist() if row["cpu"] == 0]
        samples = opened.table("samples").to_pylist()
    on_idle = [stacks[row["stack"]] for row in samples if row["task"] in idle_task]
    return on_idle, sum(row["softirq_net_rx"] for row in cores)


@contextmanager
def steered_flood(name: str, seconds: int) -> Iterator[None]:
    """A bounded flood of UDP packets between two ends of a veth pair in a network namespace of its own."""
    setup = (
        f"ip netns add {name} && ip -n {name} link add name va type veth peer name vb && ip netns add {name}b && "
        f"ip -n {name} link set vb netns {name}b && ip -n {name} addr add 192.0.2.1/24 dev va && "
        f"ip -n {name}b addr add 192.0.2.2/24 dev vb && ip -n {name} link set va up && ip -n {name}b link set vb up && "
        f"ip netns exec {name}b sh -c 'echo 1 > /sys/class/net/vb/queues/rx-0/rps_cpus'"
    )
    subprocess.run(setup, shell=True, check=True)
    sender = (
        "import os, socket, time\nos.sched_setaffinity(0, {1})\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        f"end = time.monotonic() + {seconds + 4}\n"
        "while time.monotonic() < end:\n"
        "  for _ in range(200): s.sendto(b'x' * 64, ('192.0.2.2', 9))\n  time.sleep(.001)"
    )
    process = subprocess.Popen(["ip", "netns", "exec", name, sys.executable, "-c", sender])
    try:
        time.sleep(1)
        yield
    finally:
        process.kill()
        process.wait()
        subprocess.run(f"ip netns del {name}; ip netns del {name}b", shell=True, check=True)


def test_cycles_without_a_counter_say_so(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    with recording(tmp_path / "r", event="cycles") as recorder:
        recorder.wait_for_frames(2)
        result = recorder.stop()
    said = {one["source"]: one for one in result["missing"]}
    if "stack samples" in said:
        assert said["stack samples"]["grant"] == "--event cpu-clock"
    else:  # a machine with a PMU: every sample carries its period
        with open_recording(tmp_path / "r") as opened:
            assert opened.table("samples").column("period").null_count == 0


def test_lost_records_are_counted_and_totals_stay_exact(needs: Needs, monkeypatch: pytest.MonkeyPatch) -> None:
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    # GIVEN rings of two pages that nobody drains
    monkeypatch.setattr(module, "ring_bytes", lambda _: 8192)
    rings = PerfRings(Clock(), max(cpu.online() or (0,)) + 1, Sources(), host_pids=True, now_us=0)
    rings.trace(LIFE, 0)
    book = Ledger(normalise)
    try:
        rings.follow(cpu.online() or (0,), 0)
        # WHEN more cgroups come and go than fit
        for number in range(500):
            child = mount / f"zombiescope-test-{os.getpid()}-{number}"
            child.mkdir()
            child.rmdir()
        rings.drain()
        received = [fired for fired in rings.traced() if fired[0] is LIFE[0]]
        for _, record, fields in received:
            book.mkdir(fields["id"].number(record.raw), fields["path"].text(record.raw), None)
        counts = rings.counts()
        # (the kernel tells of the loss only once there is room again)
        time.sleep(0.2)
        rings.drain()
    finally:
        rings.close()
    # THEN the kernel's own count says how many, and the ledger knows that its lines are not exact
    assert rings.sampler.lost > 0
    assert len(received) < 500 <= counts["cgroup_mkdir"]
    book.observe_counts(counts["cgroup_mkdir"], counts["cgroup_rmdir"], counts["cgroup_release"], now_us=1)
    assert book.created == counts["cgroup_mkdir"]
    assert not book.exact
