"""perf script text: how fast it is read, beside grep on the same file on the same machine.

The text is made up: 64 CPUs at 49 Hz, four samples in ten of an idle core, 6,000 call paths of some 24 frames, and a
return address within a function that differs from sample to sample, as in the text of a real node.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import Row

CPUS, HZ, PATHS, VARIANTS = 64, 49, 6000, 8
MEGABYTES = 250
RAYLET = "/opt/ray/python3.10/site-packages/_raylet.so"
IDLE = ("pv_native_safe_halt", "default_idle", "default_idle_call", "cpuidle_idle_call", "do_idle", "cpu_startup_entry",
        "start_secondary", "secondary_startup_64_no_verify")  # fmt: skip


def measure(seconds: float) -> list[Row]:  # noqa: ARG001  how long it takes is given by the size of the text
    with tempfile.TemporaryDirectory() as scratch:
        text = Path(scratch) / "perf.txt"
        samples = write(text, MEGABYTES * 1_000_000)
        size = text.stat().st_size
        text.read_bytes()  # all that follows reads it from the page cache
        grep_s, grep_cpu_s = min(_run("grep", "-c", "", str(text)) for _ in range(3))
        counted_s, counted_cpu_s = min(_run("grep", "-c", "cpu-clock", str(text)) for _ in range(3))
        parse_s, parse_cpu_s = min(_parse(text) for _ in range(3))
        command_s, command_cpu_s = min(_import(text, Path(scratch) / "recording") for _ in range(3))
        note = f"{size / 1e6:.0f} MB, {samples} samples"
        return [
            Row(
                "parsing, one core",
                f"{size / parse_s / 1e6:.0f} MB/s",
                f"{note}; {parse_cpu_s:.2f} s of CPU; goal: at least 180",
            ),
            Row(
                "`zombiescope import`, all of it",
                f"{size / command_s / 1e6:.0f} MB/s",
                f"with start-up and the recording on disk; {command_cpu_s:.2f} s of CPU",
            ),
            Row("`grep -c cpu-clock`", f"{size / counted_s / 1e6:.0f} MB/s", f"{counted_cpu_s:.2f} s of CPU"),
            Row("`grep -c ''`", f"{size / grep_s / 1e6:.0f} MB/s", f"{grep_cpu_s:.2f} s of CPU"),
        ]


def write(path: Path, size: int) -> int:
    """Text of about so many bytes; answers how many samples it holds."""
    chance = random.Random(7)
    idle = _chains(chance, [_kernel(name) for name in IDLE])
    paths = [_chains(chance, _path(chance)) for _ in range(PATHS)]
    names = ["ray::IDLE", "python3", "kubelet"] * 40
    tasks = [(f"{name}-{at}" if at % 3 else name, 1000 + at) for at, name in enumerate(names)]
    samples = 0
    with path.open("w", encoding="ascii") as file:
        file.write("# ========\n# captured on    : Sun Nov 15 11:38:06 2026\n# hostname : bench\n# ========\n#\n")
        written = 0
        while written < size:
            at = 1000 + samples // CPUS / HZ
            if chance.random() < 0.4:
                comm, tid, chain = "swapper", 0, chance.choice(idle)
            else:
                comm, tid = chance.choice(tasks)
                chain = chance.choice(chance.choice(paths))
            cpu = samples % CPUS
            written += file.write(
                f"{comm} {tid:5}/{tid:<5} [{cpu:03}] {at + cpu / 1e6:12.6f}:   20408163 cpu-clock:ppp: \n{chain}\n"
            )
            samples += 1
    return samples


def _path(chance: random.Random) -> list[tuple[int, str, str]]:
    user = [0x400000 + chance.randrange(3000) * 512 for _ in range(chance.randrange(4, 20))]
    kernel = [_kernel(f"kernel_function_number_{chance.randrange(1500)}") for _ in range(chance.randrange(0, 14))]
    return [*kernel, *((at, f"ray::core::Function{at >> 9}::Call", RAYLET) for at in user)]


def _kernel(name: str) -> tuple[int, str, str]:
    return 0xFFFFFFFF81000000 + sum(map(ord, name)) * 4096, name, "[kernel.kallsyms]"


def _chains(chance: random.Random, frames: list[tuple[int, str, str]]) -> list[str]:
    chains = []
    for _ in range(VARIANTS):
        offsets = [chance.randrange(32) * 7 for _ in frames]
        lines = (
            f"\t{at + off:16x} {name}+0x{off:x} ({dso})\n" for (at, name, dso), off in zip(frames, offsets, strict=True)
        )
        chains.append("".join(lines))
    return chains


def _run(*command: str) -> tuple[float, float]:
    """Seconds, and seconds of CPU."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # Not into /dev/null: grep looks whether its output is that, and then stops at the first match.
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    took_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _parse(text: Path) -> tuple[float, float]:
    from zombiescope.imports.perf_script import PerfScriptImport
    from zombiescope.imports.rows import ImportReport

    start, cpu = time.perf_counter(), time.process_time()
    with text.open("rb") as file:
        for _ in PerfScriptImport(ImportReport()).read(iter(lambda: file.read(1 << 20), b"")):
            pass
    return time.perf_counter() - start, time.process_time() - cpu


def _import(text: Path, place: Path) -> tuple[float, float]:
    shutil.rmtree(place, ignore_errors=True)
    return _run(sys.executable, "-m", "zombiescope.cli.start", "import", str(text), str(place), "--json")
