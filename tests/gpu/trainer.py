"""A small training job for the trial: a convolutional net in bf16, batches from DataLoader workers.

    python trainer.py CORE WORKERS

Its own threads stay on CORE; the workers on the other cores. It prints a line `STEPS UNIX_TIME` every half second and
ends when its standard input is closed. Needs torch and a GPU.
"""

from __future__ import annotations

import os
import select
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

BATCH, SIDE = 64, 224


class Pictures(IterableDataset[Any]):  # type: ignore[misc] # torch is not installed where types are checked
    def __iter__(self) -> Any:
        while True:
            yield torch.rand(3, SIDE, SIDE), int(time.monotonic_ns() % 10)


def spread(core: int) -> None:
    """A worker leaves the trainer's core."""
    others = set(range(os.cpu_count() or 1)) - {core}
    os.sched_setaffinity(0, others or {core})


def network() -> torch.nn.Module:
    layers: list[torch.nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 128), (128, 256)):
        layers += [torch.nn.Conv2d(before, after, 3, stride=2, padding=1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(256, 10))


def stopped() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0]) and not sys.stdin.read(1)


def main(core: int, workers: int) -> None:
    torch.set_num_threads(1)
    loader = DataLoader(
        Pictures(), batch_size=BATCH, num_workers=workers, pin_memory=True, worker_init_fn=lambda _: spread(core)
    )
    batches = iter(loader)
    os.sched_setaffinity(0, {core})
    net = network().cuda().to(memory_format=torch.channels_last)
    optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
    for task in Path("/proc/self/task").iterdir():  # threads that CUDA started meanwhile
        os.sched_setaffinity(int(task.name), {core})
    steps, said_s = 0, time.monotonic()
    while not stopped():
        pictures, labels = next(batches)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            answer = net(pictures.cuda(non_blocking=True).to(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(answer, labels.cuda(non_blocking=True))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        loss.item()
        steps += 1
        if time.monotonic() - said_s >= 0.5:
            said_s = time.monotonic()
            print(steps, time.time(), flush=True)  # noqa: T201 - what the trial reads


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
