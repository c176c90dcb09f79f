"""How long a diagnosis takes: twelve hours of 96 cores, two minutes of them, and half an hour of two busy cores, as a
person types it and the library alone. Recordings are made once and kept: the large one is that of views.py, made by
generate.py; the half hour is of real rows (half_hour.py), once all in the log and once half of it compacted. Their
pages are dropped from the page cache before each run."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import generate, half_hour
from benchmarks.table import Row
from benchmarks.views import _environment, _forget

ROUNDS = 3
SHORT_S = 120
HALF_HOUR_GOAL = "2 s CPU, 200 MB"
HALF_HOURS = {
    "half an hour of two busy cores, all of it in the log": False,
    "the same, the older half compacted": True,
}


def measure(seconds: float) -> list[Row]:
    """`seconds` of recording: 43,200 of them are what the goals are about."""
    plan = generate.Plan(hours=seconds / 3600)
    place = generate.cached(plan)
    hang_s = (plan.stuck_us - generate.START_US) / 1e6
    around = (max(0.0, hang_s - SHORT_S / 2), min(seconds, hang_s + SHORT_S / 2))
    quiet = (around[0] + SHORT_S * 2, around[1] + SHORT_S * 2)
    load = os.getloadavg()[0]
    rows = [
        _row(f"{seconds / 3600:g} hours of 96 cores", place, (0.0, seconds), "10 s, 1,000 MB"),
        _row("two minutes around a hang", place, around, "1 s"),
        _row("two minutes without one", place, quiet, "1 s"),
        *(
            _row(name, half_hour.cached(compacted=compacted), (0.0, half_hour.SECONDS), HALF_HOUR_GOAL)
            for name, compacted in HALF_HOURS.items()
        ),
    ]
    meanwhile = f"{load:.1f} to {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"
    return [*rows, Row("load average meanwhile", meanwhile, "1 would be this benchmark alone")]


def _row(name: str, place: Path, window: tuple[float, float], goal: str) -> Row:
    runs = [_command(place, window) for _ in range(ROUNDS)]
    alone = [_alone(place, window) for _ in range(ROUNDS)]
    middle = statistics.median(run["seconds"] for run in runs)
    cpu, rss = statistics.median(run["cpu_s"] for run in runs), max(run["rss"] for run in runs)
    library, library_cpu = (statistics.median(run[key] for run in alone) for key in ("seconds", "cpu_s"))
    said = alone[0]
    notes = (
        f"goal: {goal}; library alone {library:.2f} s ({library_cpu:.2f} s CPU); {said['incidents']} incidents, "
        f"first {said['first']}"
    )
    return Row(name, f"{middle:.2f} s ({cpu:.2f} s CPU), {rss / 1e6:.0f} MB", notes)


def _command(place: Path, window: tuple[float, float]) -> dict[str, float]:
    _forget(place)
    window_options = ["--from", f"+{window[0]:.2f}s", "--to", f"+{window[1]:.2f}s"]
    command = [sys.executable, "-m", "zombiescope.cli.main", "diagnose", str(place), "--json", *window_options]
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, env=_environment())
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in (0, 3):
            raise RuntimeError(" ".join(command))
    return {"seconds": seconds, "cpu_s": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss * 1024}


def _alone(place: Path, window: tuple[float, float]) -> dict[str, Any]:
    _forget(place)
    command = [sys.executable, "-m", "benchmarks.diagnosis", str(place), *map(str, window)]
    said: dict[str, Any] = json.loads(
        subprocess.run(command, check=True, capture_output=True, env=_environment()).stdout
    )
    return said


def _one(place: str, from_s: float, to_s: float) -> dict[str, Any]:
    from zombiescope.diagnosis import patterns, symptoms
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.store.reader import open_recording

    list(patterns.every())  # imports are not what is measured
    symptoms.every()
    started, cpu = time.perf_counter(), time.process_time()
    with open_recording(place) as recording:
        start_us = recording.start_us
        found = diagnose(recording, start_us + round(from_s * 1e6), start_us + round(to_s * 1e6))
    taken = {"seconds": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
    first = found.incidents[0] if found.incidents else None
    cause = first.causes[0] if first and first.causes else None
    told = "none" if first is None or cause is None else f"{cause.pattern} by {cause.hog.comm}, {first.seconds:.0f} s"
    return {**taken, "incidents": len(found.incidents), "first": told, "not_checked": found.not_checked}


if __name__ == "__main__":
    print(json.dumps(_one(sys.argv[1], float(sys.argv[2]), float(sys.argv[3]))))
