"""A training loop with numpy on all cores: user time, large arrays that come and go, and nothing wrong."""

from __future__ import annotations

from zombiescope.lab.scenario import GB, Needs, Scenario, Truth

SCRIPT = r"""
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
wait_for_the_word()
def train():
    dice = np.random.default_rng(39)
    weights = dice.standard_normal((512, 512), dtype=np.float32)
    while True:
        batch = dice.standard_normal((2048, 512), dtype=np.float32)
        out = np.tanh(batch @ weights)
        weights -= 1e-4 * (batch.T @ (out - batch))
        weights /= np.linalg.norm(weights) / 20
for _ in range(os.cpu_count()):
    if os.fork() == 0:
        dies_with_its_parent()
        train()
time.sleep(100000)
"""

SCENARIO = Scenario(
    id="healthy-training",
    title="A training loop on all cores",
    does="trains a small model with numpy, one process a core",
    truth=Truth(None),
    script=SCRIPT,
    comm="trainer",
    seconds=60.0,
    needs=Needs(2 * GB, processes=1024),
    kind="healthy",
)
