"""A fleet reported: how long, how much memory, how often right; and a fleet of ten thousand nodes listed and planned.

Fleets are generated once (benchmarks/fleets) and kept below $XDG_CACHE_HOME/zombiescope/bench.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fleets.nodes import Fleet, Plant, write
from benchmarks.table import Row

NODES, MANY_NODES, HOURS = 1_000, 10_000, 24
LIMIT_S = 60
FLEETS, FLEET_NODES, FLEET_HOURS = 20, 200, 1
RAY = Path(__file__).parents[1] / ".venv-ray" / "bin" / "python"


def measure(_: float) -> list[Row]:
    root = _generated("fleet-1000", Fleet(NODES, HOURS))
    rows = _whole(root)
    rows += _right()
    rows += _planned(_generated("fleet-10000", Fleet(MANY_NODES, HOURS, rollups_only=True)))
    return rows + _ray(root)


def _generated(name: str, fleet: Fleet) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "zombiescope" / "bench" / name
    write(fleet, base)
    return base


def _whole(root: Path) -> list[Row]:
    """From nothing, and again when all of it is known."""
    with tempfile.TemporaryDirectory() as results:
        first, cpu_s, rss_mb = _reported(root, results)
        again, _, _ = _reported(root, results)
        size = sum(path.stat().st_size for path in Path(results).rglob("*.parquet"))
    files = [path.stat().st_size for path in root.rglob("*") if path.is_file()]
    return [
        Row(f"{NODES:,} nodes x {HOURS} h reported", f"{first:.1f} s", f"limit {LIMIT_S} s; {cpu_s:.0f} core-seconds"),
        Row("the same again, all of it known", f"{again:.1f} s"),
        Row("most memory of a process", f"{rss_mb:.0f} MB"),
        Row("of each node and day", f"{sum(files) / NODES / 1000:.0f} kB", f"{len(files) / NODES:.1f} files"),
        Row("results of each node and day", f"{size / NODES / 1000:.1f} kB"),
    ]  # fmt: skip


def _reported(root: Path, results: str) -> tuple[float, float, float]:
    """Seconds, core-seconds and megabytes of the command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [
        sys.executable,
        "-m",
        "zombiescope.cli.main",
        "fleet",
        "report",
        str(root),
        "--results",
        results,
        "--json",
    ]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == 3
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.perf_counter() - began, cpu_s, after.ru_maxrss / 1024


def _right() -> list[Row]:
    """Of twenty fleets with a planted cause, and twenty without, read from their files."""
    plant = Plant()
    first = sum(
        set(_first(Fleet(FLEET_NODES, FLEET_HOURS, seed, plant)) or ()) == set(plant.labels) for seed in range(FLEETS)
    )
    quiet = sum(_first(Fleet(FLEET_NODES, FLEET_HOURS, seed, None, background=0.12)) is None for seed in range(FLEETS))
    return [
        Row("planted cause first", f"{first} of {FLEETS} fleets", f"at least 19; {FLEET_NODES} nodes each"),
        Row("nothing planted, nothing found", f"{quiet} of {FLEETS} fleets", "at least 19"),
    ]


def _first(fleet: Fleet) -> tuple[tuple[str, str], ...] | None:
    from zombiescope.fleet.engines.local import LocalEngine
    from zombiescope.fleet.gather import gather
    from zombiescope.fleet.report import make

    place = Path(tempfile.mkdtemp(prefix="fleet-"))
    try:
        write(fleet, place / "root")
        found = gather(str(place / "root"), place / "results", LocalEngine(1), None)
        groups = make(found, "duckdb").by.found
        found.statistics.close()
        return groups[0].terms if groups else None
    finally:
        shutil.rmtree(place)


def _planned(root: Path) -> list[Row]:
    from zombiescope.fleet import plan, results

    began, cpu = time.perf_counter(), time.process_time()
    found = plan.listing(str(root))
    batches = results.batches(found.items)
    return [
        Row(f"{MANY_NODES:,} nodes listed and planned", f"{time.perf_counter() - began:.1f} s",
            f"{found.files:,} files, {len(batches)} batches; {time.process_time() - cpu:.1f} core-seconds"),
    ]  # fmt: skip


def _ray(root: Path) -> list[Row]:
    if not RAY.exists():
        return [Row("Ray", "not measured", "make test-ray installs it")]
    rows = []
    for workers in (1, 2):
        for engine in ("duckdb", "ray"):
            seconds = _with(root, engine, workers)
            rows.append(Row(f"{engine}, {workers} worker{'s' * (workers > 1)}", f"{seconds:.1f} s"))
    return rows


def _with(root: Path, engine: str, workers: int) -> float:
    environment: dict[str, Any] = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}
    with tempfile.TemporaryDirectory() as results:
        began = time.perf_counter()
        command = [str(RAY), "-m", "zombiescope.cli.main", "fleet", "report", str(root), "--results", results,
                   "--engine", engine, "--workers", str(workers), "--json"]  # fmt: skip
        done = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        assert done.returncode == 3
        return time.perf_counter() - began
