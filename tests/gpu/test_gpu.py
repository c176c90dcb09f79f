"""A real GPU, a real training job, six busy loops: `make test-gpu`. The trial itself (trial.py) needs no pytest."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.gpu import account, stopped
from tests.gpu import trial as trials
from zombiescope.kernel import gpu_driver

pytestmark = [
    pytest.mark.timeout(420),
    pytest.mark.skipif(gpu_driver.read() is None, reason="needs an NVIDIA GPU: no driver is loaded here"),
    pytest.mark.skipif(
        importlib.util.find_spec("torch") is None, reason="needs torch, which no package of ours brings"
    ),
]


def test_a_starved_trainer_shows_on_its_gpu(tmp_path: Path) -> None:
    trial = trials.run(tmp_path / "out")
    assert trial.failed == [], json.dumps(asdict(trial), indent=1, default=str)


def test_stopped_workers_are_reported(tmp_path: Path) -> None:
    trial = stopped.run(tmp_path / "out")
    assert trial.failed == [], json.dumps(asdict(trial), indent=1, default=str)


def test_stalls_of_known_length_are_in_the_account(tmp_path: Path) -> None:
    trial = account.run(tmp_path / "out")
    assert trial.failed == [], json.dumps(asdict(trial), indent=1, default=str)
