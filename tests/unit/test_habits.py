"""A test that goes wrong ends, its children end with it, and the run goes on: shown by runs of pytest over tests that
go wrong on purpose. Those runs take seconds each: `make test-long` makes them, and whoever changes tests/conftest.py or
tests/helpers runs this file."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from tests import helpers
from tests.helpers import children

ROOT = Path(__file__).parents[2]
SLEEP = "[sys.executable, '-c', 'import time; time.sleep(600)']"


@dataclass(frozen=True)
class Run:
    code: int
    text: str
    seconds: float

    def counted(self, *words: str) -> bool:
        """The line with the figures has all of these: "1 passed"."""
        figures = next(line for line in reversed(self.text.splitlines()) if line.startswith("===="))
        return all(word in figures for word in words)


def run(place: Path, tests: str, *options: str, shell: str = "") -> Run:
    """Our rules of pytest, on a file of its own."""
    file = place / "test_made.py"
    file.write_text(f"import os, subprocess, sys, time\nimport pytest\n{tests}")
    command = [
        sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml",
        f"--rootdir={ROOT}", f"--basetemp={place / 'base'}", "-o", "addopts=--import-mode=importlib", *options, file,
    ]  # fmt: skip
    line = shlex.join(str(word) for word in command)
    started = time.monotonic()
    done = subprocess.run(["sh", "-c", f"{shell}{line}"], cwd=ROOT, capture_output=True, text=True, timeout=120)
    return Run(done.returncode, done.stdout + done.stderr, time.monotonic() - started)


@pytest.mark.long
def test_a_test_that_hangs_fails_and_the_next_one_runs(tmp_path: Path) -> None:
    done = run(tmp_path, "def test_hangs(): time.sleep(600)\ndef test_next(): pass\n", "--timeout=2")
    assert done.counted("1 failed", "1 passed"), done.text
    assert "Timeout (>2" in done.text


@pytest.mark.long
def test_a_test_that_waits_for_its_child_for_ever_ends_with_the_child(tmp_path: Path) -> None:
    """Leaving the block waits again: an alarm that rings once does not help."""
    hangs = f"def test_hangs():\n    with subprocess.Popen({SLEEP}) as child: child.wait()\n"
    done = run(tmp_path, f"{hangs}\ndef test_next(): pass\n", "--timeout=2")
    assert done.counted("1 failed", "1 passed"), done.text
    assert done.seconds < 60


@pytest.mark.long
def test_a_fixture_that_hangs_after_a_failure_ends(tmp_path: Path) -> None:
    fixture = "@pytest.fixture\ndef slow():\n    yield\n    time.sleep(600)\n"
    done = run(tmp_path, f"{fixture}\ndef test_fails(slow): assert False\ndef test_next(): pass\n", "--timeout=2")
    assert done.counted("1 failed", "1 passed", "1 error"), done.text


@pytest.mark.long
def test_code_that_hears_no_alarm_ends_the_run_with_its_stacks(tmp_path: Path) -> None:
    deaf = (
        "from tests.helpers import limits\nlimits.DEAF_S = 1.0\nimport signal\n"
        "def test_deaf():\n    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})\n    time.sleep(600)\n"
    )
    done = run(tmp_path, deaf, "--timeout=2")
    assert done.code != 0
    assert "in test_deaf" in done.text


@pytest.mark.long
def test_a_wider_fixture_that_waits_for_its_child_ends(tmp_path: Path) -> None:
    """Once while it is made, once at its end."""
    making = f"@pytest.fixture(scope='module')\ndef making(): subprocess.run({SLEEP})\n"
    ending = f"@pytest.fixture(scope='module')\ndef ending():\n    with subprocess.Popen({SLEEP}): yield\n"
    tests = "def test_making(making): pass\ndef test_ending(ending): pass\n"
    done = run(tmp_path, making + ending + tests, "--timeout=2")
    assert done.counted("1 passed", "2 errors"), done.text


@pytest.mark.long
def test_children_of_a_test_that_failed_are_ended(tmp_path: Path) -> None:
    """One of them in a session of its own, with another environment and an orphan of its own."""
    orphan = f"import subprocess, sys; print(subprocess.Popen({SLEEP}).pid)"
    started = (
        f"def test_fails():\n    one = subprocess.Popen({SLEEP})\n"
        f'    two = subprocess.run([sys.executable, "-c", "{orphan}"], env={{}}, start_new_session=True,\n'
        "                         stdout=open('orphan', 'w'))\n"
        "    open('child', 'w').write(str(one.pid))\n    assert False\n"
    )
    done = run(tmp_path, f"import os\nos.chdir({str(tmp_path)!r})\n{started}")
    assert "1 failed" in done.text
    for name in ("child", "orphan"):
        assert not children.runs(int((tmp_path / name).read_text())), name


@pytest.mark.long
def test_a_test_that_passes_and_leaves_a_child_is_an_error(tmp_path: Path) -> None:
    done = run(tmp_path, f"def test_leaves(): globals()['kept'] = subprocess.Popen({SLEEP})\ndef test_next(): pass\n")
    assert done.counted("2 passed", "1 error"), done.text
    assert "left behind" in done.text


def test_what_a_wider_fixture_starts_lives_until_its_end(tmp_path: Path) -> None:
    fixture = (
        f"@pytest.fixture(scope='module')\ndef child():\n    child = subprocess.Popen({SLEEP})\n"
        "    yield child\n    assert child.poll() is None\n    child.kill()\n    child.wait()\n"
    )
    done = run(
        tmp_path, f"{fixture}\ndef test_first(child): pass\ndef test_second(child): assert child.poll() is None\n"
    )
    assert done.counted("2 passed"), done.text
    assert "error" not in done.text


@pytest.mark.long
def test_children_hear_sigint_under_a_shell_that_ignores_it(tmp_path: Path) -> None:
    hears = (
        "def test_interrupt():\n"
        f"    child = subprocess.Popen({SLEEP}, stderr=subprocess.DEVNULL)\n"
        "    time.sleep(0.5)\n    child.send_signal(2)\n    assert child.wait(20) != 0\n"
    )
    assert run(tmp_path, hears, shell="trap '' INT; ").counted("1 passed")


@pytest.mark.long
def test_slower_markers_have_a_larger_limit(tmp_path: Path) -> None:
    limits = (
        "@pytest.mark.node\ndef test_node(request): assert request.node.get_closest_marker('timeout').args == (1500,)\n"
        "@pytest.mark.node\n@pytest.mark.timeout(5)\n"
        "def test_own(request): assert request.node.get_closest_marker('timeout').args == (5,)\n"
    )
    assert run(tmp_path, limits).counted("2 passed")


def test_a_forked_child_is_found_without_an_environment_of_its_own() -> None:
    before = children.own()
    child = os.fork()
    if child == 0:
        time.sleep(600)
    with children.owned_by("somebody") as owner:
        assert children.of(owner, before) == {child}
        children.kill({child})
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        assert not children.of(owner, before)


def test_the_index_of_helpers_names_each_of_them() -> None:
    """And nothing else."""
    folder = Path(helpers.__path__[0])
    text = (folder / "__init__.py").read_text()
    index = [line.split()[0] for line in text.splitlines() if line.startswith("    ")]
    assert sorted(index) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def test_no_child_of_the_recorder_takes_its_priority_along() -> None:
    """Each is spawned where nobody goes first."""
    folder = Path(__file__).parents[2] / "src" / "zombiescope" / "recorder"
    for file in folder.glob("*.py"):
        lines = file.read_text().splitlines()
        for before, line in pairwise(lines):
            if "os.posix_spawn(" in line:
                assert "priority.usual()" in before, file.name
