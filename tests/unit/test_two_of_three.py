"""A failure is tried twice more: one accident is forgiven and named, a real failure is not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAILS_AT = """
from pathlib import Path

def _try(name: str) -> int:
    seen = Path(__file__).parent / name
    seen.write_text(seen.read_text() + "x" if seen.exists() else "x")
    return len(seen.read_text())
"""


def _run(place: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (place / "test_it.py").write_text(FAILS_AT + tests)
    return subprocess.run(
        [sys.executable, "-m", "tests.two_of_three", "."],
        cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_what_failed_once_is_named_and_passes(tmp_path: Path) -> None:
    done = _run(tmp_path, "def test_once():\n    assert _try('once') != 1\n\ndef test_other():\n    _try('other')\n")
    assert done.returncode == 0, done.stdout
    assert "test_once" in done.stderr.rpartition("passed 2 times of 3")[2]
    assert (tmp_path / "once").read_text() == "xxx"
    assert (tmp_path / "other").read_text() == "x"


@pytest.mark.parametrize("passing", [(), (2,), (3,)])
def test_what_fails_again_has_failed(tmp_path: Path, passing: tuple[int, ...]) -> None:
    done = _run(tmp_path, f"def test_often():\n    assert _try('often') in {passing!r}\n")
    assert done.returncode == 1
    assert "failed again" in done.stderr


@pytest.mark.parametrize(("files", "status", "tries"), [(3, 0, 3), (4, 1, 1)])
def test_failures_all_over_the_place_are_no_accident(tmp_path: Path, files: int, status: int, tries: int) -> None:
    for number in range(1, files):
        (tmp_path / f"test_{number}.py").write_text(f"{FAILS_AT}def test_it():\n    assert _try('{number}') != 1\n")
    done = _run(tmp_path, "def test_it():\n    assert _try('0') != 1\n")
    assert done.returncode == status, done.stdout
    assert [(tmp_path / str(n)).read_text() for n in range(files)] == ["x" * tries] * files


@pytest.mark.parametrize(("tests", "status"), [("import nothing_of_that_name\n", 2), ("", 5)])
def test_a_run_that_did_not_come_to_tests_is_not_tried_again(tmp_path: Path, tests: str, status: int) -> None:
    done = _run(tmp_path, tests)
    assert done.returncode == status
    assert "times more" not in done.stderr
