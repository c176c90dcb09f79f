"""Child processes: one at a time, paid for, ended when they last too long."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from zombiescope.recorder import compactor as compactor_module
from zombiescope.recorder import doctor_process
from zombiescope.recorder.compactor import ChildProcess, Compactor, Ended

MODULE = "zombiescope_child_of_a_test"
DEADLINE_S = 20.0
SECOND_US = 1_000_000


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The module that the child runs, on PYTHONPATH."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(folder))
    return folder / f"{MODULE}.py"


@pytest.fixture
def child() -> Iterator[ChildProcess]:
    made = ChildProcess(MODULE, max_run_us=60 * SECOND_US)
    yield made
    made.stop()


def ended(child: ChildProcess, now_us: int = 0) -> Ended:
    end = time.monotonic() + DEADLINE_S
    while (found := child.reap(now_us)) is None:
        assert time.monotonic() < end, "the child does not end"
        time.sleep(0.01)
    return found


def test_its_exit_its_time_and_its_memory_are_known_once(program: Path, child: ChildProcess) -> None:
    program.write_text("import sys, time\nwhile time.process_time() < 0.1: pass\nsys.exit(int(sys.argv[1]))")
    child.start(0, "3")
    found = ended(child)
    assert found.exit_code == 3
    assert found.cpu_us >= 100_000
    assert (child.cpu_us, child.peak_rss_bytes, child.runs) == (found.cpu_us, found.max_rss_bytes, 1)
    assert not child.running
    assert child.reap(0) is None


def test_it_reads_nothing_and_its_output_is_ours(program: Path, child: ChildProcess, tmp_path: Path) -> None:
    out = tmp_path / "out"
    program.write_text("import sys\nprint('noise')\nopen(sys.argv[1], 'w').write(repr(sys.stdin.read()))")
    child.start(0, str(out))
    assert ended(child).exit_code == 0
    assert out.read_text() == "''"
    assert child.pulse.state == "ok"


def test_a_file_in_the_current_directory_does_not_stand_in_for_a_module(
    program: Path, child: ChildProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text("import json, sys\nsys.exit(json.__name__ != 'json' or not hasattr(json, 'loads'))")
    (tmp_path / "json.py").write_text("raise SystemExit(77)")
    monkeypatch.chdir(tmp_path)
    child.start(0)
    assert ended(child).exit_code == 0


def test_one_that_runs_too_long_is_killed(program: Path, child: ChildProcess) -> None:
    program.write_text("import time\ntime.sleep(600)")
    child.start(0)
    assert child.reap(60 * SECOND_US) is None
    assert child.running
    assert ended(child, 61 * SECOND_US).exit_code == -signal.SIGKILL


def test_stop_ends_it_and_counts_what_it_used(program: Path, child: ChildProcess) -> None:
    program.write_text("import time\ntime.sleep(600)")
    child.start(0)
    child.stop()
    assert not child.running
    assert child.cpu_us > 0
    child.stop()


def test_one_that_somebody_else_reaped_is_over(program: Path, child: ChildProcess) -> None:
    program.write_text("")
    child.start(0)
    assert child._pid is not None
    os.waitpid(child._pid, 0)
    assert child.reap(0) == Ended(0, 0, 0)
    assert not child.running


def test_a_program_that_cannot_be_started_is_an_error_and_it_may_be_tried_again(
    program: Path, child: ChildProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.write_text("")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(OSError, match="No such file"):
            child.start(0)
    assert not child.running
    child.start(0)
    assert ended(child).exit_code == 0


class StandInChild:
    """Started and ended by hand."""

    def __init__(self) -> None:
        self.started: list[tuple[str, ...]] = []
        self.running = False

    def start(self, _: int, *arguments: str) -> None:
        self.started.append(arguments)
        self.running = True

    def reap(self, _: int) -> None:
        return None


def test_compaction_waits_for_its_time_for_segments_and_for_the_one_before() -> None:
    compactor, child = Compactor(Path("/r"), 10 * SECOND_US), StandInChild()
    compactor.process = child  # type: ignore[assignment]
    for now_s, segments in ((0, ["a"]), (9, ["a"]), (10, []), (11, ["a", "b"]), (25, ["c"])):
        compactor.start_if_due(now_s * SECOND_US, segments)
    assert child.started == [("/r", "a", "b")]
    child.running = False
    compactor.start_if_due(26 * SECOND_US, ["c"])
    assert child.started[1:] == [("/r", "c")]


def test_both_children_are_modules_that_exist() -> None:
    for module in (doctor_process.MODULE, compactor_module.MODULE):
        assert importlib.util.find_spec(module) is not None
