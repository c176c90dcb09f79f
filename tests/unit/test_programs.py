"""Modules that are run by themselves: asked for help, or given an option that it does not have, one says how it is
used and writes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "zombiescope"

BY_PEOPLE = (
    "agent.config.json_schema", "agent.metrics.reference", "cli.lab.calibration", "cli.lab.unseen",
    "cli.manual",
    "diagnosis.patterns", "web.description",
)  # fmt: skip
"""They make what is in docs and in packages."""
WITH_A_DIRECTORY = ("diagnosis.standby", "query.exports.continuous", "store.compact", "store.shipping.worker")
"""Children that are given the directory of a recording."""
CHILDREN = (
    "agent", "agent.services", "lab.cage", "lab.guest_agent", "lab.supervisor", "recorder",
    "recorder.closer_look_reader", "recorder.gpu_reader", "recorder.hardware_reader",
    "recorder.python_reader", "recorder.stack_reader", "recorder.wait_helper", "fix.dead_man",
    "fix.reclaim_worker", "web",
)  # fmt: skip
"""What they are given is not a place to write to."""
COMMAND_LINE = ("cli.main", "cli.start")


def run(module: str, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"zombiescope.{module}", *arguments]
    return subprocess.run(
        command, cwd=place, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )


def test_every_module_that_can_be_run_is_in_one_of_the_lists() -> None:
    names = [
        ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__main__")
        for path in SOURCE.rglob("*.py")
        if '\nif __name__ == "__main__":' in path.read_text()
    ]
    assert sorted(names) == sorted([*BY_PEOPLE, *WITH_A_DIRECTORY, *CHILDREN, *COMMAND_LINE])


@pytest.mark.parametrize("module", BY_PEOPLE)
def test_help_is_shown_and_nothing_is_written(module: str, tmp_path: Path) -> None:
    done = run(module, tmp_path, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: python -m zombiescope.{module} ")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", [*BY_PEOPLE, *WITH_A_DIRECTORY])
def test_an_option_that_it_does_not_have_is_refused_and_no_directory(module: str, tmp_path: Path) -> None:
    places = 2 if module in ("query.exports.continuous", "store.shipping.worker") else 1
    done = run(module, tmp_path, *["--wrong"] * places)
    assert done.returncode == 2
    assert done.stderr.startswith(f"usage: python -m zombiescope.{module} ")
    assert not list(tmp_path.iterdir())
