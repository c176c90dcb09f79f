"""A trial on a machine with a real NVIDIA GPU: stalls of known kind and length, and what the account makes of them.

    PYTHONPATH=KIT python tests/gpu/account.py OUT [--ranks 8] [--seconds 14] [--only-record]
    PYTHONPATH=KIT python tests/gpu/account.py OUT --judge

Eight ranks of one job, of which rank 0 trains on the GPU with DataLoader workers; all meet in a collective (gloo) in
each step. One stall after the other: the data comes late, the workers or the rank itself are stopped, other programs
take its core, a file server does not answer, it computes on the host, another rank is late. Printed is a table, and
OUT/account.json has it too: how long each was, what the account says of it, the error; whether all states add up to the
wall time; which rank is reported as late, and why; what every reader cost. The exit code is 1 if "failed" in it is not
empty. OUT/truth.json and OUT/rec are what --judge needs, anywhere.

Throttling is not made: the driver counts heat and the power brake, and neither can be asked for.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.gpu.stopped import children_of, stopped
from tests.gpu.trial import HERE, running

WARM_S, REST_S = 28.0, 7
LATE_RANK = 5
HOGS, HOG_NICE = 12, -20
ERROR, SUM_ERROR = 0.05, 0.01
COST = 0.04
"""Of a core, all readers and the recorder together, with training beside them."""
DATA, STORAGE, HOST, LATE = "dshl"


@dataclass
class Stall:
    state: str
    how: str
    from_s: float
    to_s: float
    measured_s: float | None = None
    error: float | None = None
    states: dict[str, float] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)


@dataclass
class AccountTrial:
    gpu: bool = True
    ranks: int = 0
    pids: list[int] = field(default_factory=list)
    stalls: list[Stall] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    wall_s: float | None = None
    sum_s: float | None = None
    whole: dict[str, float] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)
    cost: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)


# --- a job and its stalls ---------------------------------------------------------------------------------------------


class Job:
    def __init__(self, python: str, out: Path, ranks: int, workers: int, slow_file: Path) -> None:
        path = out / "control"
        path.write_bytes(b"-" * mmap.PAGESIZE)
        with path.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self._started = []
        for rank in range(ranks):
            env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(ranks),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29531", "OMP_NUM_THREADS": "1"}  # fmt: skip
            command = [python, str(HERE / "ranks_trainer.py"), str(path), str(slow_file), str(workers)]
            self._started.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))

    def wait(self) -> None:
        for one in self._started:
            assert one.stdout is not None
            if not one.stdout.readline():
                raise SystemExit("a rank ended at its start")

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self._started]

    def tell(self, rank: int, letter: str) -> None:
        self._control[rank] = ord(letter)

    def end(self) -> None:
        for one in self._started:
            one.kill()
        for one in self._started:
            one.communicate()


class Server:
    """A file server that does not answer while told so; None where FUSE may not be mounted."""

    def __init__(self, stack: ExitStack) -> None:
        from zombiescope.lab.fuse_server import FuseServer

        place = stack.enter_context(tempfile.TemporaryDirectory(prefix="zombiescope-gpu-"))
        self.file = Path(place) / "data"
        self.hangs = threading.Event()
        self.why: str | None = None
        try:
            server = FuseServer(1 << 30)
            server.mount(place)
        except OSError as error:
            self.why = f"no FUSE: {error}"
            return
        stack.callback(subprocess.run, ["umount", "-l", place], check=False)
        stack.callback(server.close)
        server.delay_s = lambda operation: self._wait() if operation == 15 else 0.0
        threading.Thread(target=server.serve, daemon=True).start()

    def _wait(self) -> float:
        while self.hangs.is_set():
            time.sleep(0.01)
        return 0.0


@contextmanager
def told(job: Job, rank: int, letter: str) -> Iterator[None]:
    job.tell(rank, letter)
    try:
        yield
    finally:
        job.tell(rank, "-")


@contextmanager
def hanging(server: Server, job: Job) -> Iterator[None]:
    server.hangs.set()
    with told(job, 0, STORAGE):
        try:
            yield
        finally:
            server.hangs.clear()


@contextmanager
def starved(pid: int) -> Iterator[None]:
    """Busy loops of a higher priority on the last core, and the process on it."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[-1]
    loop = f"import os\nos.sched_setaffinity(0, {{{core}}})\nos.nice({HOG_NICE})\nwhile True: pass"
    started = [subprocess.Popen([sys.executable, "-S", "-c", loop]) for _ in range(HOGS)]
    try:
        _pin(pid, {core})
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        _pin(pid, set(cores))


def _pin(pid: int, cores: set[int]) -> None:
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), cores)


def stalls(job: Job, server: Server, seconds: int, trial: AccountTrial) -> Iterator[Stall]:
    first = job.pids[0]
    kinds: list[tuple[str, str, Callable[[], Any]]] = [
        ("data", "the workers make no batch", lambda: told(job, 0, DATA)),
        ("stopped", "the workers are stopped by a signal", lambda: stopped(children_of(first))),
        ("stopped", "the rank is stopped by a signal", lambda: stopped([first])),
        ("core", f"{HOGS} busy loops of nice {HOG_NICE} on its core", lambda: starved(first)),
        ("storage", "a FUSE server does not answer", lambda: hanging(server, job)),
        ("host", "it computes in Python", lambda: told(job, 0, HOST)),
        ("collective", f"rank {LATE_RANK} sleeps", lambda: told(job, min(LATE_RANK, len(job.pids) - 1), LATE)),
    ]
    for state, how, made in kinds:
        if state == "storage" and server.why is not None:
            trial.left_out.append(f"storage: {server.why}")
            continue
        time.sleep(REST_S)
        time.sleep(1 - time.time() % 1)
        stall = Stall(state, how, round(time.time()), 0.0)
        with made():
            time.sleep(max(0.0, stall.from_s + seconds - time.time()))
            stall.to_s = round(time.time())
        yield stall


def record(trial: AccountTrial, python: str, out: Path, ranks: int, seconds: int, stand_in: Any) -> None:
    config = {"dir": str(out / "rec"), "node": "gpu-trial", "json": True, "diagnose": True, "segment_s": 60.0}
    if stand_in is not None:
        config["gpu_library"] = str(stand_in.place)
    workers = max(2, min(8, (os.cpu_count() or 2) - 2))
    with ExitStack() as stack:
        server = Server(stack)
        job = Job(python, out, ranks, workers, server.file)
        stack.callback(job.end)
        job.wait()
        trial.ranks, trial.pids = ranks, job.pids
        if stand_in is not None:  # its samples are of the moment of the question, so its GPU does nothing at all
            stand_in.script("gpus 1", "util 0 0", f"process 0 {job.pids[0]} 1073741824")
        env = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(out / "runtime")}
        with (out / "result.json").open("w") as result:
            recording = [sys.executable, "-m", "zombiescope.recorder", json.dumps(config)]
            with running(*recording, stdout=result, env=env) as recorder:
                time.sleep(WARM_S)
                for stall in stalls(job, server, seconds, trial):
                    trial.stalls.append(stall)
                time.sleep(REST_S + 3)
                recorder.send_signal(signal.SIGTERM)
                recorder.wait(timeout=90)
    (out / "truth.json").write_text(json.dumps(asdict(trial), indent=1))


# --- what the product says --------------------------------------------------------------------------------------------


def judge(trial: AccountTrial, out: Path) -> None:
    from zombiescope.diagnosis.diagnose import diagnose
    from zombiescope.query.gpu_account import account
    from zombiescope.store.reader import open_recording

    with open_recording(out / "rec") as recording:
        first_us, last_us = (round(at * 1e6) for at in (trial.stalls[0].from_s - 5, trial.stalls[-1].to_s))
        if trial.gpu:
            rows = account(recording, first_us, last_us, "gpu").rows
            trial.wall_s = (last_us - first_us) / 1e6
            trial.sum_s = round(sum(row.busy_s + sum(asdict(row.waited).values()) for row in rows), 3)
            trial.whole = _states(rows)
            for stall in trial.stalls:
                _judge_stall(recording, stall)
            trial.idle = [one.text for one in account(recording, first_us, last_us).idle]
        for stall in trial.stalls:
            found = diagnose(recording, round((stall.from_s - 5) * 1e6), round((stall.to_s + 1) * 1e6))
            named = [one for incident in found.incidents for one in incident.symptoms if one.kind == "rank_late"]
            stall.late = [f"rank {one.facts['rank']}, {one.facts['cause']}: {one.text}" for one in named]
    _judge_cost(trial, out)
    _check(trial)


def _judge_stall(recording: Any, stall: Stall) -> None:
    from zombiescope.query.gpu_account import account

    rows = account(recording, round(stall.from_s * 1e6), round(stall.to_s * 1e6), "gpu").rows
    stall.states = _states(rows)
    stall.measured_s = stall.states.get(stall.state, 0.0)
    stall.error = round(stall.measured_s / (stall.to_s - stall.from_s) - 1, 4)


def _states(rows: Any) -> dict[str, float]:
    found = {"busy": round(sum(row.busy_s for row in rows), 2)}
    for row in rows:
        for name, value in asdict(row.waited).items():
            found[name] = round(found.get(name, 0.0) + value, 2)
    return {name: value for name, value in found.items() if value}


def _judge_cost(trial: AccountTrial, out: Path) -> None:
    said = json.loads((out / "result.json").read_text() or "{}")
    lasted_s = said.get("seconds") or 0
    if lasted_s:
        trial.cost = {name.removesuffix("_cpu_seconds"): round(value / lasted_s, 5)
                      for name, value in said.items() if name.endswith("cpu_seconds")}  # fmt: skip


def _check(trial: AccountTrial) -> None:
    if trial.gpu:
        for stall in trial.stalls:
            if stall.error is None or abs(stall.error) > ERROR:
                trial.failed.append(f"{stall.state} ({stall.how}): an error of {stall.error}")
        if trial.sum_s is None or trial.wall_s is None or abs(trial.sum_s / trial.wall_s - 1) > SUM_ERROR:
            trial.failed.append("the states do not add up to the wall time")
    for stall in trial.stalls:
        late = min(LATE_RANK, trial.ranks - 1) if stall.state == "collective" else 0
        if not any(text.startswith(f"rank {late},") for text in stall.late):
            trial.failed.append(f"rank {late} is not reported as late: {stall.how}")


def run(out: Path, python: str = sys.executable, ranks: int = 8, seconds: int = 14) -> AccountTrial:
    out.mkdir(parents=True, exist_ok=True)
    trial = AccountTrial()
    record(trial, python, out, ranks, seconds, None)
    judge(trial, out)
    return trial


def table(trial: AccountTrial) -> str:
    lines = [f"{'stall':<11}{'seconds':>8}{'account':>9}{'error':>8}  late rank"]
    for one in trial.stalls:
        measured = "?" if one.measured_s is None else f"{one.measured_s:.2f}"
        error = "?" if one.error is None else f"{one.error * 100:+.1f}%"
        late = "; ".join(text.partition(":")[0] for text in one.late) or "-"
        lines.append(f"{one.state:<11}{one.to_s - one.from_s:>8.1f}{measured:>9}{error:>8}  {late}   ({one.how})")
        if one.states:
            lines.append(f"{'':<11}{one.states}")
    lines.append(f"wall {trial.wall_s} s, all states {trial.sum_s} s: {trial.whole}")
    lines += [f"idle: {text}" for text in trial.idle]
    lines.append("cost, of a core: " + ", ".join(f"{name} {value:.4f}" for name, value in trial.cost.items()))
    lines += [f"left out: {text}" for text in trial.left_out]
    lines += [f"FAILED: {text}" for text in trial.failed] or ["nothing failed"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=14, help="of each stall")
    parser.add_argument("--trainer-python", default=sys.executable, help="the one that has torch, if it is another")
    parser.add_argument("--only-record", action="store_true")
    parser.add_argument("--judge", action="store_true", help="judge what --only-record left in OUT")
    parser.add_argument(
        "--stand-in", action="store_true", help="a library in place of the driver: tries the trial itself"
    )
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started and mounted goes
    chosen.out.mkdir(parents=True, exist_ok=True)
    if chosen.judge:
        known = json.loads((chosen.out / "truth.json").read_text())
        trial = AccountTrial(**{**known, "stalls": [Stall(**one) for one in known["stalls"]]})
    else:
        trial = AccountTrial()
        stand_in = None
        if chosen.stand_in:
            from tests.helpers.nvml_stand_in import StandIn

            stand_in = StandIn(chosen.out)
        record(trial, chosen.trainer_python, chosen.out, chosen.ranks, chosen.seconds, stand_in)
        if chosen.only_record:
            return 0
    judge(trial, chosen.out)
    (chosen.out / "account.json").write_text(json.dumps(asdict(trial), indent=1))
    print(table(trial))  # noqa: T201 - its answer
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
