"""Overwrite rings of a real kernel: a victim that stamps its own wake-ups, hogs, decoys, and what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.kernel import cpu, schedule, tracefs
from zombiescope.query.delays import Delays, delays
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

VICTIM = """
import json, os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
end, late = time.monotonic() + float(sys.argv[2]), []
while time.monotonic() < end:
    due = time.monotonic_ns() + 2_000_000
    time.sleep(0.002)
    late.append((due, time.monotonic_ns()))
print(json.dumps(late))
"""
HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    busy = time.monotonic() + 0.05
    while time.monotonic() < busy: pass
    time.sleep(0.05)
"""
SECONDS = 4.0
OVERHEAD_US = 150
"""A sleep ends that much late by itself: timer slack is 50 us, and the interpreter takes its time."""


@pytest.fixture
def core(needs: Needs) -> int:
    needs.perf_events()
    needs.tracefs()
    return max(cpu.online() or (0,))


def started(source: str, core: int, *prefix: str) -> subprocess.Popen[str]:
    command = [*prefix, sys.executable, "-c", source, str(core), str(SECONDS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def seen(core: int, tmp_path: Path) -> Iterator[tuple[Delays, int, int, list[tuple[int, int]]]]:
    """What a recording says, the pids of victim and hog, and the victim's own stamps."""
    with recording(tmp_path / "rec", schedule=True) as recorder:
        recorder.wait_for_frames(2)
        victim, hog = started(VICTIM, core), started(HOG, core)
        stamps = json.loads(victim.communicate(timeout=60)[0])
        hog.communicate(timeout=60)
        runtime = tmp_path / "runtime"
        mark = "from zombiescope import mark; assert mark('now')"
        env = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(runtime)}
        subprocess.run([sys.executable, "-c", mark], env=env, check=True, timeout=30)
        recorder.wait_for_frames(4)
    with open_recording(tmp_path / "rec") as found:
        yield delays(found, found.start_us, found.end_us + 1, least_s=0.0), victim.pid, hog.pid, stamps


def test_a_victim_that_stamps_its_wake_ups_is_told_how_late_it_was(
    seen: tuple[Delays, int, int, list[tuple[int, int]]], core: int
) -> None:
    found, victim, hog, stamps = seen
    offset_ns = time.time_ns() - time.monotonic_ns()
    watched = [(one.from_us, one.to_us) for one in found.watched if one.cpu == core]
    inside = [
        (due, woke)
        for due, woke in (((due + offset_ns) // 1000, (woke + offset_ns) // 1000) for due, woke in stamps)
        if any(from_us <= due and woke < to_us for from_us, to_us in watched)
    ]
    assert len(inside) >= 100, "the rings reach back for some of it"
    own_s = sum(max(0, woke - due - OVERHEAD_US) for due, woke in inside) / 1e6
    said_s = sum(one.seconds for one in found.of([victim]) if not one.through)
    assert said_s == pytest.approx(own_s, rel=0.15, abs=0.05)
    assert [one for one in found.of([victim]) if one.by is not None and one.by.pid == hog]


def test_what_this_kernel_lacks_is_named_and_the_rest_works(core: int) -> None:
    place = tracefs.find() or tracefs.mount_privately()
    found, missing = schedule.find(place)
    assert {one.trace.name for one in found} | {trace.name for trace, _ in missing} == {
        trace.name for trace in schedule.TRACES
    }
    rest = [one for one in found if one.trace.group == "sched"]
    ring = schedule.open_ring(core, rest, schedule.LEAST_RING_BYTES, watched=(core,))
    try:
        before = ring.written_bytes
        time.sleep(0.3)
        assert ring.written_bytes > before
    finally:
        ring.close()


def test_a_core_that_is_not_there_is_an_error_of_its_own(core: int) -> None:
    with pytest.raises(OSError, match=r"No such device|Invalid argument"):
        schedule.open_ring(core + 4000, [], schedule.LEAST_RING_BYTES, watched=())
