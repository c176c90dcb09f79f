"""Views of a large recording: how long a heat map, a flame graph and the hottest functions take, and in what memory.

Each is measured twice, in a process of its own: the whole command as a person types it, and the library alone, from
opening the recording to the finished picture without the start of Python and its imports. Before each run the pages of
the recording are dropped from the page cache; what was then read from the disk is printed, so a run that was not cold
can be told. The recording is made by generate.py and kept.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import generate
from benchmarks.table import Row

if TYPE_CHECKING:
    from zombiescope.query.selection import Selection

ROUNDS = 6
_COMMAND = (sys.executable, "-m", "zombiescope.cli.main")


@dataclass(frozen=True, slots=True)
class View:
    name: str
    arguments: tuple[str, ...]
    library: str | None = None
    """The entry of LIBRARY that does the same."""
    goal_s: float | None = None


@dataclass(frozen=True, slots=True)
class Used:
    seconds: float
    cpu_s: float
    rss_bytes: int
    read_bytes: int
    out_bytes: int


def measure(seconds: float) -> list[Row]:
    """`seconds` of recording: 43,200 of them are what the goals are about."""
    place = generate.cached(generate.Plan(hours=seconds / 3600))
    rows = [*_sizes(place)]
    busy = [os.getloadavg()[0]]
    five = _five_seconds(seconds)
    with tempfile.TemporaryDirectory() as scratch:
        for view in _views(five, Path(scratch)):
            rows.append(_row(view, place, five))
            busy.append(os.getloadavg()[0])
        rows += _sent(Path(scratch))
    load = f"{min(busy):.1f} to {max(busy):.1f} on {os.cpu_count()} CPUs"
    return [*rows, Row("load average meanwhile", load, "1 would be this benchmark alone")]


def _five_seconds(seconds: float) -> tuple[str, str]:
    start = random.Random(3).uniform(0, seconds - 5)
    return f"+{start:.2f}s", f"+{start + 5:.2f}s"


def _views(five: tuple[str, str], scratch: Path) -> list[View]:
    short = ("--from", five[0], "--to", five[1])
    html, svg = str(scratch / "flame.html"), str(scratch / "flame.svg")
    return [
        View("heat map of all of it", ("heatmap",), "subsecond", 1.0),
        View("heat map of all of it, --json", ("heatmap", "--json")),
        View("heat map by core", ("heatmap", "--by", "core"), "by_core", 1.0),
        View("flame graph of 5 s", ("flamegraph", *short, "--json"), "five", 0.2),
        View("flame graph of all of it", ("flamegraph", "--json"), "flame", 5.0),
        View("hottest functions and stacks of all of it", ("stacks", "--top", "20"), "stacks"),
        View("flame graph of all of it, as SVG", ("flamegraph", "-o", svg)),
        View("page of 5 s", ("flamegraph", *short, "-o", str(scratch / "five.html"))),
        View("page of all of it", ("flamegraph", "-o", html)),
        View("flame graph of one program of all of it", ("flamegraph", "--comm", "kubelet", "--json")),
        View("heat map of one core of all of it", ("heatmap", "--cpu", "3")),
    ]


# --- one view --------------------------------------------------------------------------------------------------------


def _row(view: View, place: Path, five: tuple[str, str]) -> Row:
    name, *options = view.arguments
    rounds = ROUNDS if view.goal_s else 2
    command = _best([_run([*_COMMAND, name, str(place), *options], place) for _ in range(rounds)])
    value = f"{command.seconds:.2f} s ({command.cpu_s:.2f} s CPU), {command.rss_bytes / 1e6:.0f} MB"
    notes = [f"read {command.read_bytes / 1e6:.1f} MB"]
    if command.out_bytes > 100_000:
        notes.append(f"wrote {command.out_bytes / 1e3:.0f} kB")
    if view.library:
        alone = _best([_alone(view.library, place, five) for _ in range(rounds)])
        notes.insert(0, f"library alone {alone.seconds:.3f} s ({alone.cpu_s:.3f} s CPU)")
    if view.goal_s:
        notes.insert(0, f"goal: {view.goal_s:g} s, 1,500 MB")
    return Row(view.name, value, "; ".join(notes))


def _best(runs: list[Used]) -> Used:
    """The fastest run, because what others do meanwhile only adds; the median of CPU time; the largest of the rest."""
    return Used(
        min(run.seconds for run in runs),
        statistics.median(run.cpu_s for run in runs),
        max(run.rss_bytes for run in runs),
        max(run.read_bytes for run in runs),
        max(run.out_bytes for run in runs),
    )


def _run(command: list[str], place: Path) -> Used:
    _forget(place)
    with tempfile.TemporaryFile() as out:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env=_environment())
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{' '.join(command)}: {child.stderr.read().decode() if child.stderr else ''}")
        written = out.seek(0, os.SEEK_END)
    cpu = used.ru_utime + used.ru_stime
    return Used(seconds, cpu, used.ru_maxrss * 1024, used.ru_inblock * 512, written)


def _environment() -> dict[str, str]:
    root = Path(__file__).parents[1]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}


def _forget(place: Path) -> None:
    """Drops the recording, and nothing else, from the page cache."""
    for path in place.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _alone(name: str, place: Path, five: tuple[str, str]) -> Used:
    _forget(place)
    command = [sys.executable, "-m", "benchmarks.views", name, str(place), *five]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, env=_environment()).stdout)
    return Used(said["seconds"], said["cpu_s"], 0, 0, 0)


# --- the library, in a process of its own ----------------------------------------------------------------------------


def _subsecond(selection: Selection) -> object:
    from zombiescope.query import heatmap

    return heatmap.subsecond(selection)


def _by_core(selection: Selection) -> object:
    from zombiescope.query import heatmap

    return heatmap.by_core(selection)


def _flame(selection: Selection) -> object:
    from zombiescope.query import flame

    return flame.fold(selection.stacks, selection.counts())


def _stacks(selection: Selection) -> object:
    from zombiescope.query import top

    counts = selection.counts()
    return top.functions(selection.stacks, counts, 20), top.stacks(selection.stacks, counts, 20)


LIBRARY: dict[str, Callable[[Selection], object]] = {
    "subsecond": _subsecond,
    "by_core": _by_core,
    "five": _flame,
    "flame": _flame,
    "stacks": _stacks,
}


def _one(name: str, place: str, start: str, end: str) -> dict[str, float]:
    import zombiescope.query.flame
    import zombiescope.query.heatmap
    import zombiescope.query.top  # noqa: F401 - imports are not what is measured
    from zombiescope.query.selection import Selection
    from zombiescope.store.reader import open_recording

    started, cpu = time.perf_counter(), time.process_time()
    with open_recording(place) as recording:
        window = (recording.start_us, recording.end_us + 1)
        if name == "five":
            low, high = (recording.start_us + round(float(text.strip("+s")) * 1e6) for text in (start, end))
            window = (low, high)
        LIBRARY[name](Selection(recording, *window))
        return {"seconds": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}


# --- bytes -----------------------------------------------------------------------------------------------------------


def _sizes(place: Path) -> list[Row]:
    from zombiescope.store.reader import open_recording

    with open_recording(place) as recording:
        tables: dict[str, int] = {}
        for manifest in recording.manifests:
            for name, facts in manifest.tables.items():
                tables[name] = tables.get(name, 0) + facts.bytes
        samples = sum(manifest.tables["samples"].rows for manifest in recording.manifests)
        stacks = sum(manifest.ids["stack"] for manifest in recording.manifests)
        cores = sum(manifest.tables["cores"].rows for manifest in recording.manifests)
        parts = len(recording.manifests)
    summaries = tables["heat"] + tables["stack_counts"]
    return [
        Row("recording", f"{samples:,} samples", f"{parts} parts, {stacks:,} stacks in their dictionaries, made up"),
        Row("samples table, bytes a sample", f"{tables['samples'] / samples:.2f}", "goal: at most 8"),
        Row(
            "whole recording, bytes a sample", f"{sum(tables.values()) / samples:.2f}", f"with {cores:,} rows of cores"
        ),
        Row("summaries, bytes a sample", f"{summaries / samples:.3f}", f"{summaries / 1e6:.1f} MB"),
    ]


def _sent(scratch: Path) -> list[Row]:
    return [
        Row(f"what a browser gets: {path.name}", f"{path.stat().st_size / 1e3:.0f} kB", "goal: below 1,000 kB")
        for path in sorted(scratch.iterdir())
    ]


if __name__ == "__main__":
    print(json.dumps(_one(*sys.argv[1:5])))
