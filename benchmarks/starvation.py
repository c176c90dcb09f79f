"""`make soak-starvation`: the node at its worst, one attack after the other, and what the recorder lost by it.

Each attack has a recorder of its own, lasts `seconds`, is caged (cgroups, small disks, limits) and gone when its block
ends. Three ways to run it: with the priority that it gives itself where it may, as anybody is started, and last in the
queue of everybody (nice 19), where gaps are to be expected and must be told.

Read from the recording: the longest time from tick to tick beyond the interval, ticks that were more than half an
interval late, records that did not fit into a ring, and whether each gap above a second is marked with its length.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.helpers.stalled_disk import stalled_disk

from benchmarks.loads import ONE_BUSY_CORE, exec_storm, running, zombies
from benchmarks.mount import memory_mount
from benchmarks.table import Row
from zombiescope.store import columns
from zombiescope.store.gaps import Gap
from zombiescope.store.reader import open_recording

SECONDS = 20.0
GAP_S = 1.0
BURST_S, REST_S = 5.0, 2.5
HOGS_A_CORE = 8
FORKS_A_SECOND = 200
EXECS_A_SECOND = 1_000
ZOMBIES = 70_000
MEMORY_LIMIT = 96 << 20
SETTLE_S = 3.0

_BARE = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
PRIORITIES: dict[str, tuple[str, ...]] = {
    "with priority": (),
    "as anybody": _BARE,
    "nice 19": (*_BARE, "nice", "-n", "19"),
}
"""How a recorder is started. Root may raise itself; without CAP_SYS_NICE nobody may, but by the limit of a unit."""

FORKS = f"""
import os, time
while True:
    began = time.monotonic()
    for _ in range({FORKS_A_SECOND // 10}):
        pid = os.fork()
        if not pid: os._exit(0)
        os.waitpid(pid, 0)
    time.sleep(max(0.0, 0.1 - (time.monotonic() - began)))
"""
READ_AGAIN = """
import os, sys
with open(sys.argv[1], 'rb', buffering=0) as file:
    while True:
        file.seek(0)
        while file.read(1 << 20): pass
"""


@dataclass
class Scene:
    """Where an attack happens: the directory that is recorded into, and whom it is about."""

    scratch: Path
    disk: Path
    pid: int
    seconds: float

    def rest(self) -> None:
        time.sleep(self.seconds)


Attack = Callable[[Scene], None]


def bursts(scene: Scene) -> None:
    end = time.monotonic() + scene.seconds
    while (left_s := end - time.monotonic()) > 0:
        with running(ONE_BUSY_CORE, HOGS_A_CORE * (os.cpu_count() or 1)):
            time.sleep(min(BURST_S, left_s))
        time.sleep(REST_S)


def memory(scene: Scene) -> None:
    """The recorder shares a limit with somebody who reads four times as much as fits: all of it is reclaimed, again and
    again."""
    file = scene.scratch / "large"
    file.write_bytes(bytes(1 << 20) * (4 * MEMORY_LIMIT >> 20))
    with _memory_cgroup(MEMORY_LIMIT) as cage:
        (cage / "cgroup.procs").write_text(str(scene.pid))
        reader = subprocess.Popen([sys.executable, "-c", READ_AGAIN, str(file)])
        (cage / "cgroup.procs").write_text(str(reader.pid))
        try:
            scene.rest()
        finally:
            reader.kill()
            reader.wait()
            (memory_mount() / "cgroup.procs").write_text(str(scene.pid))
    file.unlink()


@contextmanager
def _memory_cgroup(limit: int) -> Iterator[Path]:
    cage = memory_mount() / f"zombiescope-starved-{os.getpid()}"
    cage.mkdir()
    name = "memory.limit_in_bytes" if (cage / "memory.limit_in_bytes").exists() else "memory.max"
    (cage / name).write_text(str(limit))
    try:
        yield cage
    finally:
        for _ in range(100):
            with suppress(OSError):
                cage.rmdir()
                break
            time.sleep(0.1)


def forks(scene: Scene) -> None:
    with running(FORKS):
        scene.rest()


def execs(scene: Scene) -> None:
    with exec_storm(EXECS_A_SECOND):
        scene.rest()


def cgroup_zombies(scene: Scene) -> None:
    with zombies(ZOMBIES, memory_mount(), f"zombiescope-starved-{os.getpid()}"):
        scene.rest()


def full_disk(scene: Scene) -> None:
    ballast = scene.disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    scene.rest()
    ballast.unlink()


def stalled(scene: Scene) -> None:
    """Frozen for half a minute, or for `seconds` where that is longer."""
    subprocess.run(["fsfreeze", "-f", str(scene.disk)], check=True)
    try:
        time.sleep(max(30.0, scene.seconds))
    finally:
        subprocess.run(["fsfreeze", "-u", str(scene.disk)], check=True)


@contextmanager
def _plain(scratch: Path) -> Iterator[Path]:
    yield scratch


@contextmanager
def _small(scratch: Path) -> Iterator[Path]:
    place = scratch / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def _freezable(scratch: Path) -> Iterator[Path]:
    with stalled_disk(scratch) as disk:
        yield disk.place


ATTACKS: dict[str, tuple[Attack, Callable[[Path], Any]]] = {
    f"{HOGS_A_CORE} loops a core, 5 s on and 2.5 s off": (bursts, _plain),
    "memory at its limit, reclaim": (memory, _plain),
    f"{FORKS_A_SECOND} forks a second": (forks, _plain),
    "exec storm": (execs, _plain),
    "disk full": (full_disk, _small),
    "disk hangs for 30 s": (stalled, _freezable),
    f"{ZOMBIES:,} zombie cgroups": (cgroup_zombies, _plain),
}


@dataclass(frozen=True)
class Figures:
    longest_gap_s: float
    ticks: int
    late: int
    lost: int
    records: int
    gaps: int
    marked: int
    seconds: float

    @property
    def lost_percent(self) -> float:
        return 100 * self.lost / max(1, self.lost + self.records)

    def words(self) -> str:
        lost = f"{self.lost:,} of {self.records + self.lost:,} records lost ({self.lost_percent:.2f}%)"
        return f"longest gap {self.longest_gap_s:.2f} s; {lost}; {self.late} of {self.ticks} ticks late"

    def verdict(self, *, privileged: bool) -> str:
        if self.gaps > self.marked:
            return f"{self.gaps - self.marked} of {self.gaps} gaps NOT MARKED"
        if privileged and (self.longest_gap_s > GAP_S or self.lost_percent >= 1):
            return "ABOVE the goal"
        return "as promised"


def figures(place: Path, lost: int) -> Figures:
    with open_recording(place) as opened:
        table = opened.table("cost")
        times = columns.numbers(table.column("time")).tolist()
        late = columns.numbers(table.column("tick_late_us")).tolist()
        records = sum(columns.numbers(table.column("ring_records")).tolist())
        gaps = opened.gaps()
        interval_us = 1_000_000
    holes = [(a, b) for a, b in pairwise(sorted(times)) if b - a > interval_us + GAP_S * 1e6]
    return Figures(
        longest_gap_s=max((b - a - interval_us) / 1e6 for a, b in pairwise(sorted(times))),
        ticks=len(times),
        late=sum(one > interval_us / 2 for one in late),
        lost=lost,
        records=records,
        gaps=len(holes),
        marked=sum(any(_marks(gap, *hole) for gap in gaps) for hole in holes),
        seconds=(max(times) - min(times)) / 1e6,
    )


def _marks(gap: Gap, from_us: int, to_us: int) -> bool:
    """To within an interval: where in it the recorder stopped nobody can know."""
    if gap.source not in ("ticks", "recorder"):
        return False
    return abs((gap.to_us - gap.from_us) - (to_us - from_us)) <= 1_500_000 and gap.from_us < to_us > from_us


def _attacked(attack: Attack, disk: Callable[[Path], Any], prefix: tuple[str, ...], seconds: float) -> Figures:
    with tempfile.TemporaryDirectory(prefix="zombiescope-starved-") as name:
        scratch = Path(name)
        with disk(scratch) as place:
            settings = {"dir": str(place / "r"), "node": "starved", "json": True, "quiet": True}
            process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "zombiescope.recorder", json.dumps(settings)],
                stdout=subprocess.PIPE,
                env={**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": name},
            )
            try:
                while not list(place.glob("r/node=starved/log/*.seg")):
                    time.sleep(0.05)
                time.sleep(SETTLE_S)
                attack(Scene(scratch, place, process.pid, seconds))
                time.sleep(SETTLE_S)
                process.send_signal(signal.SIGTERM)
                out, _ = process.communicate(timeout=60)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
            return figures(place / "r", int(json.loads(out)["lost"]))


def measure(seconds: float, only: tuple[str, ...] = ()) -> list[Row]:
    rows = []
    for name, (attack, disk) in ATTACKS.items():
        if only and attack.__name__ not in only:
            continue
        for priority, prefix in PRIORITIES.items():
            found = _attacked(attack, disk, prefix, seconds)
            rows.append(
                Row(f"{name}, {priority}", found.words(), found.verdict(privileged=priority == "with priority"))
            )
            print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    measure(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS, tuple(sys.argv[2:]))
