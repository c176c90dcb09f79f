"""Healthy trainings of Lightning, Hugging Face's Trainer and JAX, two ranks each on CPU: is the diagnosis quiet, and
what does it call their waits?

    python -m benchmarks.frameworks --python VENV/bin/python [--seconds 40] [NAME ...]

VENV has torch, lightning, transformers with accelerate, and jax; a program whose library is not there is left out. Each
program saves a checkpoint and evaluates now and then. Prints one JSON document for each: incidents, and of every rank
the seconds in each state with the places where it was. Needs root, or the recorder's capabilities.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.recorder import recorder
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.query import late_ranks
from zombiescope.query.activity import CELL_US, NAMES
from zombiescope.store.reader import Recording, open_recording

DATA = """
import os, sys, time, torch
from torch.utils.data import Dataset

class Numbers(Dataset):
    def __init__(self, many): self.many = many
    def __len__(self): return self.many
    def __getitem__(self, at):
        time.sleep(0.003)
        return torch.rand(32)
"""
LIGHTNING = f"""{DATA}
from torch.utils.data import DataLoader
try:
    import lightning
except ImportError:
    import pytorch_lightning as lightning

class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 8)
    def training_step(self, batch, at): return self.layer(batch).square().mean()
    def validation_step(self, batch, at): self.log("loss", self.layer(batch).square().mean(), sync_dist=True)
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.01)

torch.set_num_threads(1)
trainer = lightning.Trainer(accelerator="cpu", devices=2, strategy="ddp", max_epochs=1000, val_check_interval=60,
                            logger=False, enable_progress_bar=False, default_root_dir=sys.argv[1])
trainer.fit(Net(), DataLoader(Numbers(1 << 20), batch_size=16, num_workers=2),
            DataLoader(Numbers(512), batch_size=16, num_workers=2))
"""
TRAINER = f"""{DATA}
from transformers import Trainer, TrainingArguments

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 8)
    def forward(self, numbers):
        found = self.layer(numbers)
        return {{"loss": found.square().mean(), "logits": found}}

class Named(Numbers):
    def __getitem__(self, at): return {{"numbers": super().__getitem__(at)}}

torch.set_num_threads(1)
said = TrainingArguments(sys.argv[1], max_steps=100000, per_device_train_batch_size=16, dataloader_num_workers=2,
                         use_cpu=True, save_steps=60, eval_strategy="steps", eval_steps=60, report_to=[],
                         disable_tqdm=True, save_total_limit=1, logging_steps=1000, remove_unused_columns=False)
Trainer(model=Net(), args=said, train_dataset=Named(1 << 20), eval_dataset=Named(256)).train()
"""
JAX = """
import os, sys, time
import jax, jax.numpy as jnp
from jax.experimental import multihost_utils

rank = int(os.environ["RANK"])
address = f"127.0.0.1:{int(os.environ['MASTER_PORT']) + 1}"
jax.distributed.initialize(address, num_processes=int(os.environ["WORLD_SIZE"]), process_id=rank)
step = jax.jit(lambda weights, batch: weights - 0.01 * jax.grad(lambda w: (batch @ w).sum() ** 2)(weights))

def load(n):
    time.sleep(0.05 + 0.01 * ((n + rank) % 3))
    return jnp.ones((64, 32))

weights = jnp.ones((32, 8))
n = 0
while True:
    weights = step(weights, load(n)).block_until_ready()
    multihost_utils.sync_global_devices(f"step {n}")
    n += 1
"""
PROGRAMS = {"lightning": LIGHTNING, "transformers": TRAINER, "jax": JAX}
IMPORTS = {
    "lightning": "try: import lightning\nexcept ImportError: import pytorch_lightning",
    "transformers": "import transformers, accelerate",
    "jax": "import jax",
}
WARM_S = 25.0


def measure(name: str, python: str, seconds: float) -> dict[str, Any] | None:
    known = subprocess.run([python, "-c", IMPORTS[name]], capture_output=True, check=False, timeout=120)
    if known.returncode:
        return None
    with tempfile.TemporaryDirectory(prefix="zombiescope-frameworks-") as scratch:
        (Path(scratch) / "train.py").write_text(PROGRAMS[name])
        launcher = [python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29711"]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu", "HF_HUB_OFFLINE": "1"}
        errors = Path(scratch) / "errors"
        with errors.open("w") as file:
            program = subprocess.Popen(
                [*launcher, f"{scratch}/train.py", f"{scratch}/out"],
                env=env, stdout=subprocess.DEVNULL, stderr=file,
            )  # fmt: skip
            try:
                with recorder(diagnose=True, segment_s=120) as watched:
                    time.sleep(WARM_S + seconds)
                    if program.poll() is not None:
                        raise SystemExit(f"{name} ended: {errors.read_text()[-2000:]}")
                    with open_recording(watched.directory) as recording:
                        return {"program": name, **_said(recording)}
            finally:
                program.kill()
                program.wait()
                _end(scratch)


def _end(scratch: str) -> None:
    """Ranks are sessions of their own, and their workers are forked: all have the script's path in their command."""
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if scratch.encode() in place.read_bytes():
                os.kill(int(place.parent.name), signal.SIGKILL)


def _said(recording: Recording) -> dict[str, Any]:
    found = diagnose(recording, recording.start_us, recording.end_us)
    grids = late_ranks.read(recording, recording.start_us + int(WARM_S * 1e6), recording.end_us)
    return {
        "incidents": [f"{one.severity}: {one.symptoms[0].text}" for one in found.incidents],
        "ranks": [_rank(grid, row) for grid in grids for row in range(len(grid.ranks))],
    }


def _rank(grid: late_ranks.Grid, row: int) -> dict[str, Any]:
    doing = grid.doing[row]
    cells = Counter(NAMES[number] for number in doing.cells.tolist())
    places = {
        name: [place for place, _ in doing.places(doing.cells == NAMES.index(name)).most_common(3)] for name in cells
    }
    seconds = {name: round(many * CELL_US / 1e6, 1) for name, many in cells.most_common()}
    native = Counter(one.place for one in doing.natives).most_common(3)
    return {"job": grid.job.id, "rank": grid.ranks[row].rank, "seconds": seconds, "places": places, "native": native}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="*", choices=[*PROGRAMS, []], default=[])
    parser.add_argument("--python", required=True)
    parser.add_argument("--seconds", type=float, default=40.0)
    chosen = parser.parse_args()
    for name in chosen.name or PROGRAMS:
        print(json.dumps(measure(name, chosen.python, chosen.seconds) or {"program": name, "left out": True}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
