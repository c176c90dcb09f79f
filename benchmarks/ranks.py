"""Which rank was late, and why: PyTorch with gloo on CPU, one fault after the other, each on a rank chosen at random.

    python -m benchmarks.ranks run --python VENV/bin/python --out build/ranks/1 [--minutes 9] [--healthy]
    python -m benchmarks.ranks judge build/ranks/1
    python -m benchmarks.ranks table build/ranks/*

`run` starts two trainings of four ranks (DDP, a DataLoader with a worker each, batches of uneven sizes) and a recorder
with the live diagnosis. Each training gets a fault of 10 to 12 s, then 5 to 7 s without one, and so on; with --healthy
it gets none and is judged in windows of 15 s. `judge` asks the detector of late ranks about each fault, from 20 s
before it to its end. What was done, the recording and the judgement are kept below OUT, so that several short runs add
up in `table`.

Needs root (cgroups, /dev/fuse) and an interpreter with torch. A delay of the network needs the queueing discipline
netem, which a kernel may lack: the fault is left out there, and the table says so.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptoms import rank_late
from zombiescope.lab.fuse_server import FuseServer
from zombiescope.store.reader import Recording, open_recording

RANKS = 4
JOBS = 2
HEALTHY_S = 15.0
BEFORE_S = 20.0
WITHIN_S = 30.0
HOGS = 24
QUOTA = 0.02
MOST_CORES = 8.0
MOST_BYTES = 8 << 30
ROOM_BYTES = 8 << 20
FILE_BYTES = 400 << 20
NICE = -15
"""Of trainings, busy loops and the recorder, so that what else runs on the machine takes no core from them."""

TRAINING = r"""
import gc, mmap, os, random, sys, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

control = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, prot=mmap.PROT_READ)
slow_file, sparse_file, rank = sys.argv[2], sys.argv[3], int(os.environ["RANK"])
draw = random.Random(rank)

def fault():
    return chr(control[rank])

def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(200))

class Pictures(IterableDataset):
    def __iter__(self):
        place = 0
        while True:
            yield decode(place)
            place += 1

def decode(place):
    burn(0.004)
    now = fault()
    if now == "d":
        time.sleep(0.15 + 0.1 * draw.random())
        burn(0.1)
    elif now == "f":
        file = os.open(slow_file, os.O_RDONLY)
        os.pread(file, 4096, draw.randrange(1 << 13) << 16)
        os.close(file)
    return torch.rand(16)

objects = []

def collect():
    if not objects:
        objects.extend([[]] for _ in range(200000))
    until = time.monotonic() + 0.25
    while time.monotonic() < until:
        gc.collect()

def load_index():
    file = os.open(sparse_file, os.O_RDONLY)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)
    until = time.monotonic() + 0.25
    while time.monotonic() < until:
        os.pread(file, 128 << 10, draw.randrange(3000) << 17)
    os.close(file)

def accelerator():
    time.sleep(0.04 + 0.08 * draw.random())

def train_step(net, optimiser, batch):
    burn(0.015)
    accelerator()
    now = fault()
    if now == "g":
        collect()
    elif now == "m":
        load_index()
    optimiser.zero_grad()
    net(batch).sum().backward()
    optimiser.step()

def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = DistributedDataParallel(torch.nn.Linear(16, 8))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    steps = 0
    for batch in DataLoader(Pictures(), batch_size=4, num_workers=1):
        train_step(net, optimiser, batch)
        steps += 1
        if steps == 3:
            print("trains", flush=True)

main()
"""


@dataclass(frozen=True)
class Outcome:
    """A fault, or a window without one, and what was said about it."""

    cause: str
    rank: int | None
    seconds: float
    detail: str
    named_rank: bool
    named_cause: bool
    said: list[str]
    others: list[str]
    """Late ranks that were named and had no fault."""
    live_after_s: float | None
    at: float


@dataclass
class Fault:
    cause: str
    job: int
    rank: int
    pid: int
    from_s: float
    to_s: float
    detail: str = ""


# --- trainings --------------------------------------------------------------------------------------------------------


class Training:
    """Four ranks, and one byte of shared memory for each that says which fault it has."""

    def __init__(self, number: int, python: str, scratch: Path, slow: Path, sparse: Path) -> None:
        self.number = number
        path = scratch / f"control-{number}"
        path.write_bytes(b"-" * mmap.PAGESIZE)
        with path.open("r+b") as file:
            self._control = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        (scratch / "train.py").write_text(TRAINING)
        port = str(29_600 + number + os.getpid() % 300 * 2)
        self._ranks = []
        self.groups: list[Group] = []
        with suppress(OSError):  # a container may not make cgroups
            self.groups = [Group(f"bench-ranks-{os.getpid()}-{number}-{rank}") for rank in range(RANKS)]
        for rank in range(RANKS):
            env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
                   "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}  # fmt: skip
            command = [python, str(scratch / "train.py"), str(path), str(slow), str(sparse)]
            started = subprocess.Popen(
                ["nice", "-n", str(NICE), *command],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            if self.groups:
                self.groups[rank].take(started.pid)
            self._ranks.append(started)

    def wait(self) -> None:
        for one in self._ranks:
            assert one.stdout is not None
            if not one.stdout.readline():
                raise SystemExit("a rank ended at its start: has this interpreter torch?")

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self._ranks]

    def worker(self, rank: int) -> int:
        """Its DataLoader's."""
        for task in Path(f"/proc/{self.pids[rank]}/task").iterdir():
            children = (task / "children").read_text().split()
            if children:
                return int(children[0])
        raise SystemExit("a rank has no worker")

    def tell(self, rank: int, letter: str) -> None:
        self._control[rank] = ord(letter)

    def end(self) -> None:
        for one in self._ranks:
            one.kill()
        for one in self._ranks:
            one.communicate()
        for group in self.groups:
            group.end()


# --- faults -----------------------------------------------------------------------------------------------------------


class Node:
    """What faults are made with; one at a time where they need the whole of it."""

    def __init__(self, stack: ExitStack, scratch: Path) -> None:
        self.core = threading.Lock()
        self.slow_s = 0.3
        self.sparse = scratch / "sparse"
        with self.sparse.open("wb") as file:
            file.truncate(FILE_BYTES)
        self.mounted = scratch / "slow"
        self.mounted.mkdir()
        self.serves = False
        try:
            self.server = FuseServer(1 << 30)
            self.server.mount(str(self.mounted))
        except OSError:
            return
        self.serves = True
        stack.callback(subprocess.run, ["umount", "-l", str(self.mounted)], check=False)
        stack.callback(self.server.close)
        self.server.delay_s = lambda operation: self.slow_s if operation == 15 else 0.0
        threading.Thread(target=self.server.serve, daemon=True).start()


class Group:
    """A cgroup of one rank from its start to its end, as a pod's container has one: in each hierarchy that matters."""

    def __init__(self, name: str) -> None:
        root = Path("/sys/fs/cgroup")
        if (root / "cgroup.controllers").exists():
            (root / "cgroup.subtree_control").write_text("+cpu +memory")
            self._places = {"cpu": root / name, "memory": root / name}
        else:
            hierarchies = [one for one in ("cpu", "memory", "systemd") if (root / one).is_dir()]
            self._places = {one: root / one / name for one in hierarchies}
        for place in set(self._places.values()):
            place.mkdir()
        self.quota(MOST_CORES)
        self._limit(MOST_BYTES)

    def take(self, pid: int) -> None:
        for place in set(self._places.values()):
            (place / "cgroup.procs").write_text(str(pid))

    def quota(self, cores: float) -> None:
        place, us = self._places["cpu"], int(cores * 100_000)
        if (place / "cpu.max").exists():
            (place / "cpu.max").write_text(f"{us} 100000")
        else:
            (place / "cpu.cfs_quota_us").write_text(str(us))

    def squeeze(self) -> None:
        """As much as it has now, and ROOM_BYTES."""
        place = self._places["memory"]
        used = place / "memory.current"
        used = used if used.exists() else place / "memory.usage_in_bytes"
        self._limit(int(used.read_text()) + ROOM_BYTES)

    def relax(self) -> None:
        self._limit(MOST_BYTES)

    def _limit(self, bytes_: int) -> None:
        place = self._places["memory"]
        limit = place / "memory.max"
        (limit if limit.exists() else place / "memory.limit_in_bytes").write_text(str(bytes_))

    def end(self) -> None:
        for place in set(self._places.values()):
            for _ in range(50):
                with suppress(OSError):
                    place.rmdir()
                    break
                time.sleep(0.1)


@contextmanager
def _told(job: Training, rank: int, letter: str, detail: str) -> Iterator[str]:
    job.tell(rank, letter)
    try:
        yield detail
    finally:
        job.tell(rank, "-")


@contextmanager
def slow_data(_: Node, job: Training, rank: int) -> Iterator[str]:
    with _told(job, rank, "d", "0.3 s a sample") as detail:
        yield detail


@contextmanager
def garbage(_: Node, job: Training, rank: int) -> Iterator[str]:
    with _told(job, rank, "g", "0.25 s a step") as detail:
        yield detail


@contextmanager
def slow_files(node: Node, job: Training, rank: int) -> Iterator[str]:
    node.slow_s = random.choice((0.3, 1.0, 3.0))
    with _told(job, rank, "f", f"{node.slow_s} s a read") as detail:
        yield detail


@contextmanager
def small_memory(_: Node, job: Training, rank: int) -> Iterator[str]:
    job.groups[rank].squeeze()
    try:
        with _told(job, rank, "m", f"{ROOM_BYTES >> 20} MB of room") as detail:
            yield detail
    finally:
        job.groups[rank].relax()


@contextmanager
def small_quota(_: Node, job: Training, rank: int) -> Iterator[str]:
    job.groups[rank].quota(QUOTA)
    try:
        yield f"{QUOTA * 100:.0f}% of a core"
    finally:
        job.groups[rank].quota(MOST_CORES)


@contextmanager
def stopped(_: Node, job: Training, rank: int) -> Iterator[str]:
    whose = random.choice(("rank", "worker"))
    pid = job.pids[rank] if whose == "rank" else job.worker(rank)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield f"its {whose}"
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def busy_core(node: Node, job: Training, rank: int) -> Iterator[str]:
    """All others leave one core, and busy loops come to it."""
    cores = sorted(os.sched_getaffinity(0))
    core = cores[-1]
    with node.core, ExitStack() as stack:
        for each, pid in enumerate(job.pids):
            _pin(pid, {core} if each == rank else set(cores[:-1]))
        loop = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
        for _ in range(HOGS):
            hog = subprocess.Popen(["nice", "-n", str(NICE), sys.executable, "-S", "-c", loop])
            stack.callback(hog.wait)
            stack.callback(hog.kill)
        try:
            yield f"{HOGS} loops on its core"
        finally:
            for pid in job.pids:
                _pin(pid, set(cores))


def _pin(pid: int, cores: set[int]) -> None:
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):
            os.sched_setaffinity(int(task.name), cores)


Made = Callable[[Node, Training, int], Any]
FAULTS: dict[str, tuple[Made, frozenset[str]]] = {
    "core": (busy_core, frozenset({"core"})),
    "data": (slow_data, frozenset({"data"})),
    "stopped": (stopped, frozenset({"stopped"})),
    "storage": (slow_files, frozenset({"storage"})),
    "memory": (small_memory, frozenset({"memory"})),
    "gc": (garbage, frozenset({"gc"})),
    "quota": (small_quota, frozenset({"quota"})),
}
NOT_HERE = "network"


# --- a run ------------------------------------------------------------------------------------------------------------


def run(python: str, out: Path, minutes: float, causes: list[str], *, healthy: bool) -> None:
    ends_s = time.monotonic() + minutes * 60
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zombiescope-ranks-")))
        node = Node(stack, scratch)
        found = [Training(each, python, scratch, node.mounted / "data", node.sparse) for each in range(JOBS)]
        for job in found:
            stack.callback(job.end)
        if not all(job.groups for job in found):
            causes = [cause for cause in causes if cause not in ("quota", "memory")]
        if not node.serves:
            causes = [cause for cause in causes if cause != "storage"]
        for job in found:
            job.wait()
        directory = out / "recording"
        live: dict[tuple[int, str], float] = {}
        made: list[Fault] = []
        with _recorder(directory, scratch / "runtime"):
            time.sleep(BEFORE_S)
            ended = threading.Event()
            threads = [threading.Thread(target=_watch, args=(directory, found, live, ended))]
            threads += [
                threading.Thread(target=_inject, args=(node, job, made, causes, ends_s, healthy)) for job in found
            ]
            for thread in threads:
                thread.start()
            for thread in threads[1:]:
                thread.join()
            ended.set()
            threads[0].join()
            time.sleep(4)
        done = {
            "pids": [job.pids for job in found],
            "faults": [asdict(one) for one in sorted(made, key=lambda one: one.from_s)],
            "live": [[pid, at_s] for (pid, _), at_s in live.items()],
        }
        (out / "faults.json").write_text(json.dumps(done))


def judge(out: Path) -> None:
    done = json.loads((out / "faults.json").read_text())
    faults = [Fault(**one) for one in done["faults"]]
    with open_recording(out / "recording") as recording, (out / "judged.jsonl").open("w") as file:
        for fault in faults:
            before_s = max(
                (one.to_s for one in faults if one.job == fault.job and one.to_s < fault.from_s), default=0.0
            )
            found = _judge(recording, fault, before_s + 1, done["pids"][fault.job], done["live"])
            file.write(json.dumps(asdict(found)) + "\n")
            file.flush()


@contextmanager
def _recorder(directory: Path, runtime: Path) -> Iterator[None]:
    runtime.mkdir()
    settings = {"dir": str(directory), "node": "bench", "json": True, "quiet": True, "diagnose": True}
    command = ["nice", "-n", str(NICE), sys.executable, "-m", "zombiescope.recorder", json.dumps(settings)]
    env = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(runtime)}
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=120)


def _inject(node: Node, job: Training, made: list[Fault], causes: list[str], ends_s: float, healthy: bool) -> None:
    order: list[str] = []
    time.sleep(random.uniform(0, 5))
    while time.monotonic() < ends_s - HEALTHY_S:
        if healthy:
            began_s = time.time()
            time.sleep(HEALTHY_S)
            made.append(Fault("healthy", job.number, 0, 0, began_s, began_s + HEALTHY_S))
            continue
        order = order or random.sample(causes, len(causes))
        cause, rank = order.pop(), random.randrange(RANKS)
        with FAULTS[cause][0](node, job, rank) as detail:
            began_s = time.time()
            time.sleep(random.uniform(10, 12))
            fault = Fault(cause, job.number, rank, job.pids[rank], began_s, time.time(), detail)
        made.append(fault)
        time.sleep(random.uniform(5, 7))


def _watch(directory: Path, jobs: list[Training], live: dict[tuple[int, str], float], ended: threading.Event) -> None:
    """When the live diagnosis first said each sentence's beginning about each rank."""
    while not ended.wait(0.5):
        for file in directory.glob("node=*/incidents.json"):
            with suppress(OSError, ValueError):
                for incident in json.loads(file.read_text()).get("incidents", []):
                    for symptom in incident.get("symptoms", []):
                        text = symptom.get("text") or ""
                        for pid in (pid for job in jobs for pid in job.pids if f"pid {pid}) of" in text):
                            live.setdefault((pid, f"{symptom.get('at')}"), time.time())


def _judge(
    recording: Recording, fault: Fault, least_s: float, pids: list[int], live: list[tuple[int, float]]
) -> Outcome:
    """`least_s`: when the fault before it had ended."""
    from_s = fault.from_s if fault.cause == "healthy" else max(fault.from_s - BEFORE_S, least_s)
    symptoms = list(rank_late.find(Facts(recording, int(from_s * 1e6), int((fault.to_s + 1) * 1e6))))
    named = [one for one in symptoms if one.facts["pid"] in pids and one.to_us > fault.from_s * 1e6]
    right = [one for one in named if one.facts["pid"] == fault.pid]
    accepted = FAULTS[fault.cause][1] if fault.cause in FAULTS else frozenset()
    said = [f"{one.facts['cause']}: {one.text}" for one in right]
    others = [f"{one.facts['cause']}: {one.text}" for one in named if one.facts["pid"] != fault.pid]
    afterwards = (at_s - fault.from_s for pid, at_s in live if pid == fault.pid and at_s >= fault.from_s)
    after_s = min((one for one in afterwards if one <= WITHIN_S), default=None)
    return Outcome(
        fault.cause, None if fault.cause == "healthy" else fault.rank, round(fault.to_s - fault.from_s, 1),
        fault.detail, bool(right), any(one.facts["cause"] in accepted for one in right), said, others,
        None if after_s is None else round(after_s, 1), fault.from_s,
    )  # fmt: skip


# --- added up ---------------------------------------------------------------------------------------------------------


def table(places: list[Path]) -> str:
    files = [place / "judged.jsonl" for place in places]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    lines = ["| fault | n | right rank | right cause | another rank named too | named live within 30 s |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    faults = [row for row in rows if row["cause"] != "healthy"]
    names = [name for name in FAULTS if any(row["cause"] == name for row in faults)]
    for name, some in [
        *((name, [row for row in faults if row["cause"] == name]) for name in names),
        ("**all**", faults),
    ]:
        many: Counter[str] = Counter()
        for row in some:
            many["rank"] += row["named_rank"]
            many["cause"] += row["named_cause"]
            many["others"] += bool(row["others"])
            many["live"] += row["live_after_s"] is not None
        lines.append(f"| {name} | {len(some)} | {many['rank']} | {many['cause']} | {many['others']} | {many['live']} |")
    healthy = [row for row in rows if row["cause"] == "healthy"]
    wrong = sum(bool(row["others"] or row["said"]) for row in healthy)
    lines += ["", f"Healthy: {len(healthy)} windows of {HEALTHY_S:.0f} s, a rank was named in {wrong}.",
              f"Not made here: {NOT_HERE}."]  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("--python", required=True, help="an interpreter that has torch")
    runs.add_argument("--out", type=Path, default=Path("build/ranks/1"))
    runs.add_argument("--minutes", type=float, default=9.0, help="of trainings, without their start")
    runs.add_argument("--cause", action="append", choices=sorted(FAULTS), help="may be repeated; all of them without")
    runs.add_argument("--healthy", action="store_true", help="no fault: nothing may be named")
    for name in ("judge", "table"):
        commands.add_parser(name).add_argument("out", type=Path, nargs="+")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started and mounted goes
    if chosen.command == "run":
        chosen.out.mkdir(parents=True)
        run(chosen.python, chosen.out, chosen.minutes, chosen.cause or list(FAULTS), healthy=chosen.healthy)
    elif chosen.command == "judge":
        for place in chosen.out:
            judge(place)
    else:
        print(table(chosen.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
