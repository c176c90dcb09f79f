"""Who delayed whom, against programs that know it themselves: a victim that stamps 10,000 wake-ups, softirqs of a veth
pair, hogs and decoys that share a core at other times, and a chain of two."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.made import Node, write_segment

from zombiescope._native import ScheduleDecoder
from zombiescope.kernel import cpu, schedule, tracefs
from zombiescope.kernel.schedule import ScheduleRing
from zombiescope.query.delays import Delays, delays
from zombiescope.store import schema
from zombiescope.store.reader import open_recording

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(240)]

PIN = "import os, sys, time, json\nos.sched_setaffinity(0, {int(sys.argv[1])})\n"
FIRST = "os.setpriority(os.PRIO_PROCESS, 0, -20)\n"
WAKE_UPS = 10_000
VICTIM = f"""{PIN}{FIRST}
late = []
for _ in range(int(sys.argv[2])):
    due = time.monotonic_ns() + 1_000_000
    time.sleep(0.001)
    late.append((due, time.monotonic_ns()))
print(json.dumps(late))
"""
HOG = f"""{PIN}{FIRST}
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    busy = time.monotonic() + 0.02
    while time.monotonic() < busy: pass
    time.sleep(0.02)
"""
CHAIN = f"""{PIN}{FIRST}
# A feeder on the hog's core wakes a trainer on another core: the trainer is late because the feeder was.
import threading
go = threading.Semaphore(0)
def trainer():
    os.sched_setaffinity(0, {{int(sys.argv[3])}})
    while True: go.acquire()
threading.Thread(target=trainer, daemon=True).start()
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    time.sleep(0.005)
    go.release()
"""
SLACK_US = 200
"""A sleep ends that much late by itself: timer slack is 50 us, and the interpreter takes its time."""


@pytest.fixture
def core(needs: Needs) -> int:
    needs.root()
    needs.perf_events()
    needs.tracefs()
    return max(cpu.online() or (0,))


class Watch:
    """Rings on some cores, read every second into a recording, as the recorder writes snapshots."""

    def __init__(self, cores: list[int]) -> None:
        found, _ = schedule.find(tracefs.find() or tracefs.mount_privately())
        self.rings: list[ScheduleRing] = []
        for number in cpu.online() or ():
            size = schedule.LEAST_RING_BYTES if number not in cores else 4 << 20
            self.rings.append(schedule.open_ring(number, found, size, watched=cores))
        self._done: dict[int, int] = {}
        self._offset_ns = time.time_ns() - time.monotonic_ns()
        self.node = Node()

    def us(self, monotonic_ns: int) -> int:
        return (monotonic_ns + self._offset_ns) // 1000

    def snapshot(self) -> None:
        decoder = ScheduleDecoder(max(ring.cpu for ring in self.rings) + 1, 20_000)
        for ring in sorted(self.rings, key=lambda one: not one.watched):
            ring.feed(decoder)
        kinds, cpus, begins, ends, tids, wakers, slept, names, open_ = decoder.rows()
        for row, kind in enumerate(kinds):
            if ends[row] <= self._done.get(cpus[row], 0):
                continue
            is_task = kind in ("run", "wait")
            self.node.add(
                "schedule", time=self.us(ends[row]), begin=self.us(begins[row]), cpu=cpus[row], kind=kind,
                task=self._task(decoder, tids[row]) if is_task else None, waker=self._task(decoder, wakers[row]),
                slept=self.us(slept[row]) if slept[row] else None, vector=None if is_task else tids[row],
                name=names[row], open=open_[row],
            )  # fmt: skip
        for number, (from_ns, to_ns) in decoder.reach().items():
            begin_ns = max(from_ns, self._done.get(number, 0))
            self._done[number] = to_ns
            self.node.add("schedule", time=self.us(to_ns), begin=self.us(begin_ns), cpu=number, kind="reach", open=0)

    def _task(self, decoder: ScheduleDecoder, tid: int) -> int | None:
        if tid <= 0:
            return None
        pid, comm = decoder.task(tid)
        return self.node.task(pid or tid, comm or "?", tid=tid)

    def until(self, *programs: subprocess.Popen[str]) -> None:
        while any(program.poll() is None for program in programs):
            time.sleep(0.5)
            self.snapshot()
        self.snapshot()

    def delays(self, place: Path) -> Delays:
        write_segment(place, self.node.take())
        with open_recording(place) as found:
            return delays(found, found.start_us, found.end_us + 1, least_s=0.0)

    def close(self) -> None:
        for ring in self.rings:
            ring.close()


@pytest.fixture
def watch(core: int) -> Iterator[Watch]:
    made = Watch([core])
    yield made
    made.close()


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def started() -> Iterator[Start]:
    programs: list[subprocess.Popen[str]] = []

    def run(source: str, *arguments: object, pass_fds: tuple[int, ...] = ()) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", source, *map(str, arguments)]
        programs.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=pass_fds))
        return programs[-1]

    yield run
    for program in programs:
        program.kill()
        program.communicate()


def said(program: subprocess.Popen[str]) -> list[Any]:
    assert program.stdout is not None
    found: list[Any] = json.loads(program.stdout.read())
    return found


def test_each_of_ten_thousand_wake_ups_is_told_within_a_millisecond(watch: Watch, core: int, started: Start) -> None:
    started(HOG, core, 60)
    victim = started(VICTIM, core, WAKE_UPS)
    drained = threading.Thread(target=lambda: stamps.extend(said(victim)))
    stamps: list[tuple[int, int]] = []
    drained.start()
    while drained.is_alive():
        watch.snapshot()
        drained.join(0.5)
    watch.snapshot()
    table = schema.SCHEDULE
    rows = [dict(zip(table.names, row, strict=True)) for row in watch.node.tables["schedule"]]
    tasks = [dict(zip(schema.TASKS.names, row, strict=True)) for row in watch.node.tables["tasks"]]
    mine = {row["task"] for row in tasks if row["pid"] == victim.pid}
    waits = sorted((row["begin"], row["time"]) for row in rows if row["kind"] == "wait" and row["task"] in mine)
    known = sorted((row["begin"], row["time"]) for row in rows if row["kind"] == "reach")
    right = told = at = 0
    for due_ns, woke_ns in stamps:
        due, woke = watch.us(due_ns), watch.us(woke_ns)
        if not any(begin <= due and woke <= end for begin, end in known):
            continue
        while at < len(waits) and waits[at][1] < due:
            at += 1
        waited = sum(min(to, woke) - max(begin, due) for begin, to in waits[at : at + 8] if begin < woke and to > due)
        told += 1
        right += abs(max(0, woke - due - SLACK_US) - waited) <= 1000
    assert told >= 0.9 * WAKE_UPS, "the rings reach back for most of it"
    assert right >= 0.99 * told, f"{right} of {told}"


def test_two_hogs_at_once_are_both_told_and_a_decoy_on_another_core_is_not(
    watch: Watch, core: int, started: Start, tmp_path: Path
) -> None:
    others = [one for one in cpu.online() or () if one != core]
    hogs = [started(HOG, core, 6), started(HOG, core, 6)]
    decoys = [started(HOG, others[0], 6)] if others else []
    victim = started(VICTIM, core, 1000)
    watch.until(victim)
    found = watch.delays(tmp_path)
    of_victim = [one for one in found.of([victim.pid]) if not one.through]
    by = {one.by.pid: one.seconds for one in of_victim if one.by is not None}
    assert all(by.get(hog.pid, 0) > 0.01 for hog in hogs), by
    assert not [one for one in of_victim if one.by is not None and one.by.pid in {decoy.pid for decoy in decoys}]


def test_of_two_hundred_decoys_with_the_same_cpu_at_other_times_none_is_convicted(
    watch: Watch, core: int, started: Start, tmp_path: Path
) -> None:
    """Each turn is a hog that runs while the victim wants the core, and a decoy that runs as long while it does not."""
    turns = f"""{PIN}{FIRST}
victim, turns, decoys = int(sys.argv[2]), int(sys.argv[3]), []
for _ in range(turns):
    pid = os.fork()
    if pid == 0:                           # a decoy: it has ended before the victim is woken
        end = time.monotonic() + 0.004
        while time.monotonic() < end: pass
        os._exit(0)
    os.wait()
    decoys.append(pid)
    os.write(victim, b"1")                 # wakes the victim on this core, and keeps the core: the hog
    end = time.monotonic() + 0.004
    while time.monotonic() < end: pass
    time.sleep(0.002)
print(json.dumps(decoys))
"""
    reading, writing = os.pipe()
    reader = f"{PIN}\nwhile os.read(int(sys.argv[2]), 1): pass"
    victim = started(reader, core, reading, pass_fds=(reading,))
    os.close(reading)
    time.sleep(0.5)
    hog = started(turns, core, writing, 200, pass_fds=(writing,))
    os.close(writing)
    watch.until(hog)
    found = watch.delays(tmp_path)
    own = [one for one in found.of([victim.pid]) if one.by is not None and not one.through]
    convicted = {one.by.pid for one in own if one.by is not None and one.seconds >= 0.001}
    decoys = set(said(hog))
    assert len(decoys) >= 150, "each has a number of its own, but for a few that come again"
    assert hog.pid in convicted
    assert not convicted & decoys


def test_a_delay_goes_through_the_thread_that_was_late_itself(core: int, started: Start, tmp_path: Path) -> None:
    others = [one for one in cpu.online() or () if one != core]
    if not others:
        pytest.skip("needs two cores")
    watch = Watch([core, others[0]])
    try:
        hog, chain = started(HOG, core, 6), started(CHAIN, core, 5, others[0])
        watch.until(chain)
        found = watch.delays(tmp_path)
    finally:
        watch.close()
    through = [one for one in found.of([chain.pid]) if one.through and one.by is not None and one.by.pid == hog.pid]
    assert through, [(one.victim.tid, one.by and one.by.pid, len(one.through)) for one in found.of([chain.pid])]
    assert through[0].through[0].tid == chain.pid


def test_softirqs_of_a_veth_pair_are_victims_of_who_holds_the_core(
    watch: Watch, core: int, started: Start, tmp_path: Path
) -> None:
    """Packets go between two namespaces; their NET_RX runs on the sender's core, on which the hog is."""
    if shutil.which("ip") is None:
        pytest.skip("needs iproute2")
    name = f"zsv{os.getpid() % 100000}"
    for words in (
        f"netns add {name}", f"link add {name}a type veth peer name {name}b", f"link set {name}b netns {name}",
        f"addr add 10.213.7.1/30 dev {name}a", f"link set {name}a up",
        f"netns exec {name} ip addr add 10.213.7.2/30 dev {name}b", f"netns exec {name} ip link set {name}b up",
    ):  # fmt: skip
        subprocess.run(["ip", *words.split()], check=True)
    sends = f"""{PIN}
import socket
end, out = time.monotonic() + 4, socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
while time.monotonic() < end:
    for _ in range(200): out.sendto(b'x' * 500, ('10.213.7.2', 9))
    time.sleep(0.001)
"""
    try:
        started(HOG, core, 5)
        watch.until(started(sends, core))
    finally:
        subprocess.run(["ip", "link", "del", f"{name}a"], check=False)
        subprocess.run(["ip", "netns", "del", name], check=False)
    rows = [dict(zip(schema.SCHEDULE.names, row, strict=True)) for row in watch.node.tables["schedule"]]
    softirqs = [row for row in rows if row["kind"] in ("softirq", "softirq wait") and row["vector"] in (2, 3)]
    assert softirqs, "NET_RX ran on this core"
    assert {row["cpu"] for row in softirqs} == {core}
    found = watch.delays(tmp_path)
    assert found.watched_cpus == [core]
