"""A trial on a machine with a real NVIDIA GPU: a training job is recorded, starved for ten seconds, and let go on.

    PYTHONPATH=KIT python tests/gpu/trial.py OUT [--pack FILE]

OUT is a directory for the recording; KIT is where zombiescope and what it imports is. Only the product, torch and its
numpy are needed; no pytest, no network. It prints one JSON object: what the reader of the GPUs cost, how many rows
came, utilisation, power and steps a second before, during and after, what each call of the driver costs, what the
diagnosis says, and under "failed" what is not as it should be; the exit code is 1 if that is not empty. --pack
also writes the recording as a file in which names are replaced, for a fixture.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

HERE = Path(__file__).parent
WARM_S, BEFORE_S, STARVED_S, AFTER_S = 25.0, 30.0, 10.0, 25.0
HOGS = 6
LONGEST_START_S = 120.0
COST = 0.002
"""Of a core: for one GPU an eighth of what eight may cost is expected, and this much is allowed."""


@dataclass
class Phase:
    name: str
    from_s: float
    to_s: float
    utilisation: float | None = None
    power_w: float | None = None
    steps_per_s: float | None = None
    rows: int = 0


@dataclass
class Trial:
    core: int
    trainer_python: str = sys.executable
    phases: list[Phase] = field(default_factory=list)
    reader_cpu_ratio: float | None = None
    reader_start_cpu_s: float | None = None
    reader_rss_bytes: int | None = None
    recorder: dict[str, Any] = field(default_factory=dict)
    gpus: list[dict[str, Any]] = field(default_factory=list)
    processes: list[dict[str, Any]] = field(default_factory=list)
    trainer_pid: int | None = None
    gaps: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    calls_cpu_us: dict[str, float] = field(default_factory=dict)
    calls_wall_us: dict[str, float] = field(default_factory=dict)
    sample_period_s: float | None = None
    incidents: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def check(self, what: str, holds: object) -> None:
        if not holds:
            self.failed.append(what)


# --- what runs beside it ---------------------------------------------------------------------------------------------


@contextmanager
def running(*command: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone after the block."""
    with subprocess.Popen(command, text=True, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def hogs(core: int) -> Iterator[None]:
    """Busy loops at an ordinary priority, all on one core."""
    loop = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    started = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(HOGS)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


class Steps:
    """What the trainer said: (steps, Unix time)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[tuple[int, float]]:
        lines = [line.split() for line in self._path.read_text().splitlines()]
        return [(int(line[0]), float(line[1])) for line in lines if len(line) == 2]

    def per_s(self, phase: Phase) -> float | None:
        inside = [(steps, at_s) for steps, at_s in self.read() if phase.from_s <= at_s <= phase.to_s]
        if len(inside) < 2:
            return None
        (first, from_s), (last, to_s) = inside[0], inside[-1]
        return round((last - first) / (to_s - from_s), 2)

    def wait_for_first(self) -> None:
        end = time.monotonic() + LONGEST_START_S
        while not self.read():
            if time.monotonic() > end:
                raise SystemExit("the trainer made no step: is there a GPU, and torch with CUDA?")
            time.sleep(0.5)


def phases(trial: Trial, recorder: subprocess.Popen[str]) -> Iterator[Phase]:
    """Each while it runs; its time is known when the next one is asked for."""
    for name, lasts_s in (("warm", WARM_S), ("before", BEFORE_S), ("starved", STARVED_S), ("after", AFTER_S)):
        phase = Phase(name, time.time(), 0.0)
        if name == "starved":
            with hogs(trial.core):
                time.sleep(lasts_s)
                phase.to_s = time.time()
        else:
            time.sleep(lasts_s)
            phase.to_s = time.time()
        if recorder.poll() is not None:
            raise SystemExit(f"the recorder ended with {recorder.returncode}")
        yield phase


def record(trial: Trial, out: Path) -> None:
    steps = Steps(out / "steps")
    workers = str(max(2, min(8, (os.cpu_count() or 2) - 2)))
    config = {"dir": str(out / "rec"), "node": "gpu-trial", "json": True, "diagnose": False}
    with (out / "steps").open("w") as said, (out / "result.json").open("w") as result:
        command = [trial.trainer_python, str(HERE / "trainer.py"), str(trial.core), workers]
        with running(*command, stdin=subprocess.PIPE, stdout=said) as trainer:
            trial.trainer_pid = trainer.pid
            steps.wait_for_first()
            recorder_command = [sys.executable, "-m", "zombiescope.recorder", json.dumps(config)]
            runtime = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(out / "runtime")}
            with running(*recorder_command, stdout=result, env=runtime) as recorder:
                trial.phases = list(phases(trial, recorder))
                time.sleep(7)  # the driver is asked every five seconds
                recorder.send_signal(signal.SIGTERM)
                recorder.wait(timeout=60)
    trial.recorder = json.loads((out / "result.json").read_text() or "{}")
    for phase in trial.phases:
        phase.steps_per_s = steps.per_s(phase)


# --- what it left ----------------------------------------------------------------------------------------------------


def read_back(trial: Trial, out: Path) -> None:
    from zombiescope.store import columns
    from zombiescope.store.reader import open_recording

    with open_recording(out / "rec") as opened:
        seconds = columns.records(opened.table("gpu_seconds"))
        trial.gpus = columns.records(opened.table("gpus"))[-1:]
        trial.processes = columns.records(opened.table("gpu_processes"))
        trial.gaps = [f"{gap.source}: {gap.why}" for gap in opened.gaps()]
        trial.events = [row["text"] for row in columns.records(opened.table("events")) if row["source"] == "gpu"]
    for phase in trial.phases:
        inside = [row for row in seconds if phase.from_s + 1 < row["time"] / 1e6 <= phase.to_s]
        phase.rows = len(inside)
        phase.utilisation = _mean(row["utilisation"] for row in inside)
        phase.power_w = _mean(row["power_w"] for row in inside)
    sampled = [len(row["utilisation_samples"]) for row in seconds if row["utilisation_samples"]]
    trial.sample_period_s = round(1 / fmean(sampled), 3) if sampled else None
    lasted_s = trial.recorder.get("seconds") or 0
    trial.reader_rss_bytes = trial.recorder.get("gpu_reader_max_rss_bytes")
    if lasted_s:
        total_s = float(trial.recorder.get("gpu_reader_cpu_seconds") or 0)
        trial.reader_start_cpu_s = _start_cost_s()
        trial.reader_cpu_ratio = round(max(0.0, total_s - trial.reader_start_cpu_s) / lasted_s, 6)


def _mean(values: Any) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 2) if known else None


def _start_cost_s() -> float:
    """CPU until the first message: Python, the library, the driver's first answers."""
    command = [sys.executable, "-m", "zombiescope.recorder.gpu_reader"]
    with running(*command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
    return float(said.get("cpu_us", 0)) / 1e6


def measure_calls(trial: Trial, rounds: int = 6) -> None:
    """What each question costs, asked as rarely as the reader asks: answers that are asked for at once are cached."""
    from zombiescope.kernel import nvml_codes as codes
    from zombiescope.kernel.nvml import Library, NvmlError

    library = Library()
    library.start()
    device = library.device(0)
    calls: dict[str, Any] = {
        "utilisation samples": lambda: device.samples(codes.UTILISATION_SAMPLES, int(time.time() * 1e6) - 5_000_000),
        "memory samples": lambda: device.samples(codes.MEMORY_SAMPLES, int(time.time() * 1e6) - 5_000_000),
        "power samples": lambda: device.samples(codes.POWER_SAMPLES, int(time.time() * 1e6) - 5_000_000),
        "lost clocks": lambda: device.fields([*codes.LOST_CLOCKS.values(), codes.MEMORY_TEMPERATURE]),
        "counters": lambda: device.fields([one for several in codes.COUNTERS.values() for one in several]),
        "memory": device.memory, "clock": device.clock_sm, "temperature": device.temperature,
        "reasons": device.reasons, "processes": device.processes,
    }  # fmt: skip
    cpu: dict[str, list[float]] = {}
    wall: dict[str, list[float]] = {}
    for _ in range(rounds):
        time.sleep(5)
        for name, call in calls.items():
            before = time.process_time(), time.perf_counter()
            try:
                call()
            except NvmlError as error:
                trial.events.append(f"{name}: {error}")
            cpu.setdefault(name, []).append(time.process_time() - before[0])
            wall.setdefault(name, []).append(time.perf_counter() - before[1])
    trial.calls_cpu_us = {name: round(fmean(values) * 1e6, 1) for name, values in cpu.items()}
    trial.calls_wall_us = {name: round(fmean(values) * 1e6, 1) for name, values in wall.items()}


def diagnose(trial: Trial, out: Path) -> None:
    """What the product says about it, in its own words."""
    program = "from zombiescope.cli.start import main; main()"
    command = [sys.executable, "-c", program, "diagnose", str(out / "rec"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        trial.incidents.append(f"diagnose ended with {done.returncode}: {done.stderr[-300:]}")
        return
    for incident in found.get("incidents", []):
        causes = [f"{cause.get('pattern')}: {cause.get('summary')}" for cause in incident.get("causes", [])[:3]]
        trial.incidents.append(f"{incident.get('severity')}: {causes or incident.get('symptoms')}")


def pack(out: Path, file: Path) -> None:
    program = "from zombiescope.cli.start import main; main()"
    command = [sys.executable, "-c", program, "pack", str(out / "rec"), "-o", str(file), "--redact"]
    subprocess.run(command, check=True, timeout=120)


def judge(trial: Trial) -> None:
    by_name = {phase.name: phase for phase in trial.phases}
    before, starved, after = by_name["before"], by_name["starved"], by_name["after"]
    for phase in (before, starved, after):
        trial.check(f"a row for nearly every second {phase.name}", phase.rows >= 0.8 * (phase.to_s - phase.from_s - 1))
    trial.check("samples about every 0.2 s", trial.sample_period_s is not None and 0.05 < trial.sample_period_s < 0.6)
    trial.check("no gap of the GPU", not any(gap.startswith("gpu") for gap in trial.gaps))
    trial.check("the trainer's process is on the GPU", trial.trainer_pid in {row["pid"] for row in trial.processes})
    trial.check("it costs less than it may", trial.reader_cpu_ratio is not None and trial.reader_cpu_ratio < COST)
    if before.steps_per_s and starved.steps_per_s and after.steps_per_s:
        trial.check("starvation cost steps", starved.steps_per_s < 0.6 * before.steps_per_s)
        trial.check("steps came back", after.steps_per_s > 0.7 * before.steps_per_s)
    if before.utilisation and starved.utilisation is not None:
        trial.check("starvation shows in utilisation", starved.utilisation < 0.7 * before.utilisation)
    else:
        trial.check("utilisation was measured", False)


def run(out: Path, packed: Path | None = None, trainer_python: str = sys.executable) -> Trial:
    out.mkdir(parents=True, exist_ok=True)
    trial = Trial(sorted(os.sched_getaffinity(0))[-1], trainer_python)
    record(trial, out)
    measure_calls(trial)
    read_back(trial, out)
    judge(trial)
    diagnose(trial, out)
    if packed is not None:
        pack(out, packed)
    return trial


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pack", type=Path)
    parser.add_argument("--trainer-python", default=sys.executable, help="the one that has torch, if it is another")
    chosen = parser.parse_args()
    trial = run(chosen.out, chosen.pack, chosen.trainer_python)
    print(json.dumps(asdict(trial), indent=1, default=str))  # noqa: T201 - its answer
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
