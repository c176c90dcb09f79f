"""A trial on a machine with a real NVIDIA GPU: the DataLoader workers of a training job are stopped for twelve seconds.

    PYTHONPATH=KIT python tests/gpu/stopped.py OUT [--pack FILE]

Nothing is killed and no core is busy: the trainer waits in next(loader), the GPU falls to 0 %, and no task is in D
state. The live diagnosis has to report it while it lasts, and `diagnose` afterwards. What the driver says of clocks,
their reasons and heat is read while nothing runs and while the training does; nothing about the GPU is changed. Prints
one JSON object; the exit code is 1 if "failed" in it is not empty. Arguments are those of trial.py.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.gpu.trial import HERE, Phase, Steps, pack, running

SETTLE_S, BEFORE_S, STOPPED_S, AFTER_S = 15.0, 25.0, 12.0, 20.0
COUNTED_S = 10.0
PATTERN = "workers-stopped"
PINNED = "scheduler-contention"
"""The trainer keeps its own threads on one core: that is true, and reported."""


@dataclass
class StoppedTrial:
    workers: int = 0
    driver: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps_per_s: dict[str, float | None] = field(default_factory=dict)
    reported_live_after_s: float | None = None
    live: list[dict[str, Any]] = field(default_factory=list)
    offline: list[dict[str, Any]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    recorder: dict[str, Any] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


def driver_says() -> dict[str, Any]:
    """Of the first GPU, over COUNTED_S; what a call refuses is its error."""
    from zombiescope.kernel import nvml_codes as codes
    from zombiescope.kernel.nvml import Library, NvmlError
    from zombiescope.store.gpu_rules import is_cool, is_low

    library = Library()
    library.start()
    device = library.device(0)

    def ask(call: Any) -> Any:
        try:
            return call()
        except NvmlError as error:
            return str(error)

    def counters() -> dict[int, Any]:
        found = device.fields([*codes.LOST_CLOCKS.values(), codes.MEMORY_TEMPERATURE])
        return {field: str(value) if isinstance(value, NvmlError) else value for field, value in found.items()}

    before = counters()
    time.sleep(COUNTED_S)
    after = counters()
    bits, mhz, most = ask(device.reasons), ask(device.clock_sm), ask(device.clock_sm_max)
    celsius, limit = ask(device.temperature), ask(device.slowdown_temperature)
    lost = {
        name: after[field] - before[field] if isinstance(after[field], int) else after[field]
        for name, field in codes.LOST_CLOCKS.items()
    }
    return {
        "reasons": bits, "reasons_by_name": codes.reasons(bits) if isinstance(bits, int) else None, "clock_mhz": mhz,
        "clock_max_mhz": most, "temperature_c": celsius, "slowdown_c": limit, "margin_c": ask(device._margin),
        "memory_temperature_c": after[codes.MEMORY_TEMPERATURE], "lost_ns": lost, "of_s": COUNTED_S,
        "is_cool": is_cool(celsius, limit if isinstance(limit, int) else None), "is_low": is_low(mhz, most),
    }  # fmt: skip


def children_of(pid: int) -> list[int]:
    """The direct children of a process that run Python code of a DataLoader worker."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


@contextmanager
def stopped(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def incidents(out: Path) -> list[dict[str, Any]]:
    found = list((out / "rec").glob("node=*/incidents.json"))
    return json.loads(found[0].read_text()).get("incidents", []) if found else []


def wait_for_report(out: Path, since_s: float) -> float | None:
    """Seconds from the stop until incidents.json holds an incident of the right pattern."""
    while time.time() < since_s + STOPPED_S:
        if any(is_right(each) for each in incidents(out)):
            return round(time.time() - since_s, 1)
        time.sleep(0.2)
    return None


def is_right(incident: dict[str, Any]) -> bool:
    return first_pattern(incident) == PATTERN


def first_pattern(incident: dict[str, Any]) -> str | None:
    causes = incident.get("causes") or [{}]
    pattern = causes[0].get("pattern")
    return None if pattern is None else str(pattern)


def brief(each: dict[str, Any]) -> dict[str, Any]:
    causes = [f"{cause['pattern']}: {cause['summary']}" for cause in each.get("causes", [])[:2]]
    said = [symptom.get("text") for symptom in each.get("symptoms", [])[:3]]
    return {"severity": each.get("severity"), "causes": causes, "symptoms": said}


def record(trial: StoppedTrial, out: Path, python: str) -> None:
    workers = max(2, min(8, (os.cpu_count() or 2) - 2))
    config = {"dir": str(out / "rec"), "node": "gpu-trial", "json": True, "diagnose": True}
    steps = Steps(out / "steps")
    trial.driver["idle"] = driver_says()
    with (out / "steps").open("w") as said, (out / "result.json").open("w") as result:
        command = [python, str(HERE / "trainer.py"), str(sorted(os.sched_getaffinity(0))[-1]), str(workers)]
        with running(*command, stdin=subprocess.PIPE, stdout=said) as trainer:
            steps.wait_for_first()
            made = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(out / "runtime")}
            recording = [sys.executable, "-m", "zombiescope.recorder", json.dumps(config)]
            with running(*recording, stdout=result, env=made) as recorder:
                time.sleep(SETTLE_S)
                before = Phase("before", time.time(), time.time() + BEFORE_S)
                trial.driver["busy"] = driver_says()
                time.sleep(BEFORE_S - COUNTED_S)
                pids = children_of(trainer.pid)
                trial.workers = len(pids)
                since_s = time.time()
                with stopped(pids):
                    trial.reported_live_after_s = wait_for_report(out, since_s)
                    time.sleep(max(0.0, since_s + STOPPED_S - time.time()))
                after = Phase("after", time.time() + 2, time.time() + AFTER_S)
                time.sleep(AFTER_S)
                trial.parts = parts(out)
                recorder.send_signal(signal.SIGTERM)
                recorder.wait(timeout=60)
    trial.recorder = json.loads((out / "result.json").read_text() or "{}")
    trial.steps_per_s = {phase.name: steps.per_s(phase) for phase in (before, after)}
    trial.live = [brief(each) for each in incidents(out)]


def parts(out: Path) -> list[str]:
    from zombiescope.store import health

    found = health.parts_of(out / "rec" / "node=gpu-trial", [out / "runtime"])
    return [f"{part.name}: {part.state} {part.why}".rstrip() for part in found]


def diagnose(out: Path) -> list[dict[str, Any]]:
    program = "from zombiescope.cli.start import main; main()"
    command = [sys.executable, "-c", program, "diagnose", str(out / "rec"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return json.loads(done.stdout)["incidents"] if done.stdout else []


def run(out: Path, packed: Path | None = None, trainer_python: str = sys.executable) -> StoppedTrial:
    out.mkdir(parents=True, exist_ok=True)
    trial = StoppedTrial()
    record(trial, out, trainer_python)
    offline = diagnose(out)
    trial.offline = [brief(each) for each in offline]
    if trial.reported_live_after_s is None:
        trial.failed.append("the live diagnosis did not report it while it lasted")
    if not any(is_right(each) for each in offline):
        trial.failed.append(f"diagnose does not name {PATTERN}")
    expected = (PATTERN, PINNED)
    others = [each for each in offline if first_pattern(each) not in expected and each.get("severity") != "info"]
    if others:
        trial.failed.append(f"{len(others)} other incidents")
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
