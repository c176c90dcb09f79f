"""A real PyTorch training beside a recorder: what its Python was doing, and what it cost to know.

    python -m benchmarks.python_training [--python /usr/bin/python3] [--workers 8] [--seconds 40]

`--python` is an interpreter that has torch; by default the one that runs this. Where there is a GPU it trains on it,
else on the CPU. Needs root, or the recorder's capabilities. Prints one JSON document: the reader's share of one core,
walks and torn walks, how many samples of the training have Python functions on them, where the main thread and the
workers were, and the steps a second with and without a recorder, in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from benchmarks.recorder import recorder
from zombiescope.query.python import own, threads
from zombiescope.query.python_frames import has_python
from zombiescope.query.selection import Filters, Selection
from zombiescope.store.reader import Recording, open_recording

TRAINING = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Pictures(Dataset):
    def __len__(self):
        return 1 << 20
    def __getitem__(self, number):
        return decode(number), number % 10

def decode(number):
    picture = torch.rand(3, 224, 224)
    return (picture - picture.mean()) / picture.std()

def step(net, optimiser, pictures, labels):
    loss = torch.nn.functional.cross_entropy(net(pictures), labels)
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    return loss.item()

def train(workers):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [torch.nn.Conv2d(3, 32, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(32, 64, 3, 2), torch.nn.ReLU(),
              torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10)]
    net = torch.nn.Sequential(*layers).to(device)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    steps, said = 0, time.monotonic()
    for pictures, labels in DataLoader(Pictures(), batch_size=64, num_workers=workers, pin_memory=device == "cuda"):
        step(net, optimiser, pictures.to(device), labels.to(device))
        steps += 1
        if time.monotonic() - said >= 1:
            print(steps / (time.monotonic() - said), flush=True)
            steps, said = 0, time.monotonic()

if __name__ == "__main__":
    torch.set_num_threads(2)
    train(int(sys.argv[1]))
"""


def measure(python: str, workers: int, seconds: float) -> dict[str, Any]:
    program = subprocess.Popen([python, "-c", TRAINING, str(workers)], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    try:
        for _ in range(8):  # past its start
            if not program.stdout.readline():
                raise SystemExit(f"the training ended: has {python} torch?")
        rates: dict[bool, list[float]] = {True: [], False: []}
        with recorder(python=True, segment_s=30) as watched:
            rates[True] += _rates(program, seconds)
            found = _seen(watched.directory, program.pid)
        rates[False] += _rates(program, seconds / 2)
        with recorder(python=True, segment_s=30):
            rates[True] += _rates(program, seconds / 2)
        rates[False] += _rates(program, seconds / 2)
    finally:
        program.kill()
        program.communicate()
    result = watched.result
    steps = {("with" if looked else "without"): _mean(values) for looked, values in rates.items()}
    return {
        "cores": os.cpu_count(),
        "reader_of_one_core": round(result["python_reader_cpu_seconds"] / result["seconds"], 5),
        "reader_rss_bytes": result["python_reader_max_rss_bytes"],
        "recorder_rss_bytes": result["max_rss_bytes"],
        "recorder_of_one_core": round(result["cpu_seconds"] / result["seconds"], 5),
        "walks": result["python_walks"],
        "torn": result["python_torn"],
        "missing": result["missing"],
        "steps_a_second": steps,
        **found,
    }


def _rates(program: subprocess.Popen[str], seconds: float) -> list[float]:
    assert program.stdout is not None
    end_s = time.monotonic() + seconds
    found = []
    while time.monotonic() < end_s:
        found.append(float(program.stdout.readline()))
    return found[1:]


def _mean(values: list[float]) -> dict[str, float]:
    half = 2 * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return {"mean": round(statistics.fmean(values), 2), "half_of_95_percent": round(half, 2), "seconds": len(values)}


def _seen(directory: Any, trainer: int) -> dict[str, Any]:
    with open_recording(directory) as recording:
        looked_at = threads(recording, recording.start_us, recording.end_us + 1)
        family = {each.pid for each in looked_at if each.pid == trainer or (each.comm or "").startswith("pt_data")}
        main = next((each for each in looked_at if each.tid == trainer), None)
        places: Counter[str] = Counter()
        for each in looked_at:
            if each.pid in family and each is not main:
                for frames, looks in each.stacks().items():
                    places[f"{frames[-1].name} in {own(frames)[0].name}:{own(frames)[0].line}"] += looks
        return {
            "threads": len(looked_at),
            "looks": sum(each.looks for each in looked_at),
            "samples_with_python": _joined(recording, family | {trainer}),
            "main": [] if main is None else _places(main.stacks()),
            "workers": places.most_common(8),
        }


def _places(stacks: Counter[Any]) -> list[Any]:
    found: Counter[str] = Counter()
    for frames, looks in stacks.items():
        mine, called = own(frames)
        found[f"{mine.name}:{mine.line}" + (f" > {called.name}" if called else "")] += looks
    return found.most_common(8)


def _joined(recording: Recording, pids: set[int]) -> dict[str, float]:
    selection = Selection(recording, recording.start_us, recording.end_us + 1, Filters(pids=frozenset(pids)))
    counts, known = selection.counts(), selection.stacks
    total, joined = int(counts.sum()), int(counts[has_python(known)].sum())
    return {"samples": total, "ratio": round(joined / max(total, 1), 4)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=40.0)
    options = parser.parse_args()
    print(json.dumps(measure(options.python, options.workers, options.seconds), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
