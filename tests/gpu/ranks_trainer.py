"""A rank of the training of account.py: rank 0 trains on the GPU, the others are on the CPU and meet it in each step.

    RANK=R WORLD_SIZE=N ... python ranks_trainer.py CONTROL FILE WORKERS

CONTROL is shared memory with a letter for each rank, that says what it does besides its steps; FILE is on a file server
that can be made slow. It prints `trains` once it does. Without CUDA rank 0 trains on the CPU. Needs torch.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, IterableDataset

NOTHING, DATA, STORAGE, HOST, LATE = "-dshl"
BATCH, SIDE = 32, 128


def letter(control: mmap.mmap, rank: int) -> str:
    return chr(control[rank])


class Pictures(IterableDataset[Any]):  # type: ignore[misc] # torch is not installed where types are checked
    def __init__(self, control: str, rank: int) -> None:
        self.path, self.rank = control, rank

    def __iter__(self) -> Any:
        control = shared(self.path)
        while True:
            yield decode(control, self.rank)


def decode(control: mmap.mmap, rank: int) -> torch.Tensor:
    while letter(control, rank) == DATA:
        time.sleep(0.01)
    return torch.rand(3, SIDE, SIDE)


def shared(path: str) -> mmap.mmap:
    return mmap.mmap(os.open(path, os.O_RDONLY), mmap.PAGESIZE, prot=mmap.PROT_READ)


def read_shard(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.pread(descriptor, 4096, time.monotonic_ns() % 4096 << 16)
    os.close(descriptor)


def tokenize(control: mmap.mmap, rank: int) -> int:
    words = 0
    while letter(control, rank) == HOST:
        words += sum(range(1000)) % 7
    return words


def sleep_in_its_own_code(control: mmap.mmap, rank: int) -> None:
    while letter(control, rank) == LATE:
        time.sleep(0.05)


def network(device: str) -> torch.nn.Module:
    width = 128 if device == "cuda" else 4
    layers: list[torch.nn.Module] = [torch.nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(8 if device == "cuda" else 1):
        layers += [torch.nn.ReLU(), torch.nn.Conv2d(width, width, 3, padding=1)]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(width, 10))


def train_step(net: torch.nn.Module, optimiser: Any, pictures: torch.Tensor) -> float:
    loss = net(pictures).square().mean()
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    optimiser.step()
    return float(loss.item())


def main(path: str, file: str, workers: int) -> None:
    rank = int(os.environ["RANK"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    control, device = shared(path), "cuda" if rank == 0 and torch.cuda.is_available() else "cpu"
    gradients, steps = torch.zeros(1024), 0
    if rank == 0:
        net = network(device).to(device)
        optimiser = torch.optim.SGD(net.parameters(), lr=0.01)
        batches = iter(DataLoader(Pictures(path, rank), batch_size=BATCH, num_workers=workers))
    while True:
        now = letter(control, rank)
        if now == STORAGE:
            read_shard(file)
        elif now == HOST:
            tokenize(control, rank)
        elif now == LATE:
            sleep_in_its_own_code(control, rank)
        if rank == 0:
            train_step(net, optimiser, next(batches).to(device))
        dist.all_reduce(gradients)
        steps += 1
        if steps == 5:
            print("trains", flush=True)  # noqa: T201 - what the trial waits for


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
