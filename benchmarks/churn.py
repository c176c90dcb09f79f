"""`make soak-churn`: hours of processes, programs, cgroups, mappings and containers that come and go; is the recorder
flat?

What comes and goes has a new name each time, so that a table which remembers too much shows it. The load measures
itself and rests as long as it must to stay below SHARE of one core. Memory, descriptors and threads of the recorder and
its children are read from /proc, the sizes of its tables by itself (watched_recorder.py). A line is printed every five
minutes, and at the end what each of them did over the second half, with a verdict.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.mount import memory_mount
from benchmarks.table import Row
from zombiescope.base import python as _python

SHARE = 0.2
EVERY_S = 10.0
TOLD_EVERY_S = 300.0
FLAT_BYTES = 1_500_000
"""Over the second half. A page of the allocator that is touched late is no leak."""
SHORTEST_S = 1800.0
"""Caches fill for the first quarter of an hour."""
TABLE_RATIO, TABLE_ROWS = 1.25, 64

LOAD = Path(__file__).with_name("churn_load.py")
CGROUP = "zombiescope-churn"
ROUND = "each a fork, a program, a cgroup, a mapping and a container"
BUSYBOX = "/bin/busybox"
"""Statically linked: the one program in the root of a container that comes and goes."""


@dataclass
class Reading:
    at_s: float
    rss: int
    descriptors: int
    threads: int
    children_rss: int


@dataclass
class Watch:
    """What was read of one recorder."""

    pid: int
    readings: list[Reading] = field(default_factory=list)

    def read(self, at_s: float) -> Reading:
        place = Path(f"/proc/{self.pid}")
        children = (place / f"task/{self.pid}/children").read_text().split()
        reading = Reading(
            at_s,
            _rss(self.pid),
            len(list((place / "fd").iterdir())),
            len(list((place / "task").iterdir())),
            sum(_rss(int(child)) for child in children),
        )
        self.readings.append(reading)
        return reading


def _rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    except (OSError, IndexError):
        return 0


@contextmanager
def _churn(scratch: Path) -> Iterator[subprocess.Popen[str]]:
    cgroups, files = memory_mount() / CGROUP, scratch / "files"
    cgroups.mkdir(exist_ok=True)
    files.mkdir()
    for program in ("/bin/true", BUSYBOX):
        shutil.copy(program, files)
    runc = shutil.which("runc")
    command = [sys.executable, str(LOAD), str(SHARE), str(cgroups), str(files), *([runc] if runc else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        yield process
    finally:
        process.kill()
        process.wait()
        _remove_cgroups(cgroups)


def _remove_cgroups(cgroups: Path) -> None:
    """runc makes them in every hierarchy. What was running in one has a moment to end."""
    end_s = time.monotonic() + EVERY_S
    while left := [top for top in {cgroups, *cgroups.parent.parent.glob(f"*/{CGROUP}")} if top.exists()]:
        for place in (place for top in left for place, _, _ in os.walk(top, topdown=False)):
            with suppress(OSError):
                Path(place).rmdir()
        if time.monotonic() > end_s:
            print(f"left behind: {', '.join(map(str, left))}", file=sys.stderr)
            return
        time.sleep(0.1)


@contextmanager
def _recorder(scratch: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    settings = {
        "dir": str(scratch / "r"), "node": "churn", "json": True, "quiet": True, "diagnose": True,
        "compact_every_s": 300.0, "max_bytes": 256 << 20,
    }  # fmt: skip
    command = ["-m", "benchmarks.watched_recorder", str(scratch / "sizes"), json.dumps(settings)]
    process = subprocess.Popen(
        [sys.executable, *command],
        stdout=subprocess.PIPE,
        text=True,
        env=_python.steady_environment() | {"ZOMBIESCOPE_RUNTIME_DIR": str(scratch)},  # as `record` starts it
        cwd=Path(__file__).parents[1],
    )
    result: dict[str, Any] = {}
    try:
        yield process, result
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        result.update(json.loads(out))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def measure(seconds: float) -> list[Row]:
    _end_in_order()
    with tempfile.TemporaryDirectory(prefix="zombiescope-churn-") as place:
        scratch = Path(place)
        with _recorder(scratch) as (process, result), _churn(scratch) as churn:
            watch, rounds = Watch(process.pid), 0
            started = told = time.monotonic()
            while (elapsed := time.monotonic() - started) < seconds:
                time.sleep(min(EVERY_S, seconds / 20))
                reading = watch.read(elapsed)
                rounds = _last_number(churn, rounds)
                if churn.poll() is not None:
                    raise SystemExit("what comes and goes has ended: nothing is measured any more")
                if time.monotonic() - told >= TOLD_EVERY_S:
                    told = time.monotonic()
                    print(_line(reading, rounds), flush=True)
        tables = _sizes(scratch / "sizes")
    return _rows(watch, tables, rounds, result, seconds)


def _sizes(path: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = []
    for line in path.read_text().splitlines():
        with suppress(ValueError):  # written while the disk became full
            read.append(json.loads(line))
    return read


def _last_number(churn: subprocess.Popen[str], before: int) -> int:
    assert churn.stdout is not None
    with suppress(BlockingIOError, TypeError, IndexError):
        return int((churn.stdout.read() or "").split()[-1])
    return before


def _line(reading: Reading, rounds: int) -> str:
    return (
        f"{reading.at_s / 60:5.1f} min  {reading.rss / 1e6:6.2f} MB  children {reading.children_rss / 1e6:6.1f} MB  "
        f"{reading.descriptors} descriptors  {reading.threads} threads  {rounds:,} rounds"
    )


def _rows(watch: Watch, tables: list[dict[str, Any]], rounds: int, result: dict[str, Any], seconds: float) -> list[Row]:
    half = [one for one in watch.readings if one.at_s > seconds / 2]
    grown = _slope([(one.at_s, one.rss) for one in half]) * seconds / 2
    most = {name: max(getattr(one, name) for one in watch.readings) for name in ("descriptors", "threads", "rss")}
    grows = growing(tables)
    flat = "too short to say" if seconds < SHORTEST_S else "flat" if grown < FLAT_BYTES else "GROWS"
    return [
        Row(
            "load",
            f"{rounds:,} rounds",
            f"{ROUND}; {seconds / 60:.0f} min",
        ),
        Row("resident at the end", f"{watch.readings[-1].rss / 1e6:.2f} MB", f"peak {most['rss'] / 1e6:.2f} MB"),
        Row("trend over the second half", f"{grown / (seconds / 7200) / 1e6:+.2f} MB an hour", flat),
        _level("descriptors", [one.descriptors for one in half], most["descriptors"]),
        _level("threads", [one.threads for one in half], most["threads"]),
        Row("children", f"{max(one.children_rss for one in half) / 1e6:.0f} MB at most"),
        Row("tables", f"{len(tables[-1]['sizes'])} watched", "flat" if not grows else f"GROW: {', '.join(grows)}"),
        Row("memory in the middle", _composition(tables[len(tables) // 2])),
        Row("memory at the end", _composition(tables[-1])),
        Row("largest tables", ", ".join(_largest(tables[-1]["sizes"]))),
        Row("records lost", f"{result['lost']:,}", f"{result['ticks_late']} of {result['ticks']} ticks late"),
    ]


def _level(name: str, values: list[int], most: int) -> Row:
    first, last = (statistics.median(part) for part in (values[: len(values) // 2], values[len(values) // 2 :]))
    return Row(name, f"{first:.0f}, then {last:.0f}", f"{'flat' if last <= first + 1 else 'GROWS'}; {most} at most")


def growing(tables: list[dict[str, Any]]) -> list[str]:
    """Those that were larger in each quarter than in the one before, and not by chance."""
    quarters = [tables[len(tables) * part // 4 : len(tables) * (part + 1) // 4] for part in range(4)]
    if not all(quarters):
        return []
    found = []
    for name in tables[-1]["sizes"]:
        sizes = [statistics.median(one["sizes"].get(name, 0) for one in part) for part in quarters]
        steady = sizes[1] < sizes[2] < sizes[3]
        if steady and sizes[3] > TABLE_RATIO * sizes[1] and sizes[3] - sizes[1] > TABLE_ROWS:
            found.append(f"{name} {sizes[1]:.0f} to {sizes[3]:.0f}")
    return found


def _composition(reading: dict[str, Any]) -> str:
    """What it is made of; of what malloc holds, in use and not."""
    memory = dict(reading["memory"])
    blocks = memory.pop("blocks")
    return ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in memory.items()) + f"; {blocks:,} blocks of Python"


def _largest(sizes: dict[str, int]) -> list[str]:
    return [f"{name} {size:,}" for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:6]]


def _slope(points: list[tuple[float, int]]) -> float:
    """A second, by least squares."""
    mean_x, mean_y = (statistics.mean(column) for column in zip(*points, strict=True))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0


def _end_in_order() -> None:
    """Also from a shell that has it in the background, and by a plain `kill`."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


if __name__ == "__main__":
    for row in measure(float(sys.argv[1]) if len(sys.argv) > 1 else 7200.0):
        print(row)
