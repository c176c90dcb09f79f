"""Heartbeat files: the reader judges a publisher's life itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from zombiescope.store import health, process_identity
from zombiescope.store.health import Part


@pytest.fixture
def node_dir(tmp_path: Path) -> Path:
    return tmp_path / "recording" / "node=n"


def _publish(runtime: Path, node_dir: Path, *parts: Part) -> Path:
    path = health.path_of(runtime, os.getpid())
    health.publish(path, health.RECORDER, node_dir, parts)
    return path


def _rewritten(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _states(node_dir: Path, runtime: Path) -> dict[str, str]:
    return {part.name: part.state for part in health.parts_of(node_dir, [runtime])}


def test_a_living_publisher_and_its_parts_are_reported_as_told(tmp_path: Path, node_dir: Path) -> None:
    _publish(tmp_path, node_dir, Part("GPU reader", "failed", 1.0, why="it was ended by SIGSEGV"))
    assert _states(node_dir, tmp_path) == {"recorder": "ok", "GPU reader": "failed"}


def test_an_old_beat_makes_the_publisher_and_all_that_runs_under_it_hung(tmp_path: Path, node_dir: Path) -> None:
    path = _publish(tmp_path, node_dir, Part("GPU reader", "ok", 1.0), Part("live diagnosis", "off", 1.0))
    _rewritten(path, beat_s=time.monotonic() - health.SILENT_S - 1)
    assert _states(node_dir, tmp_path) == {"recorder": "hung", "GPU reader": "hung", "live diagnosis": "off"}


def test_a_publisher_that_died_without_removing_its_file_has_failed(tmp_path: Path, node_dir: Path) -> None:
    child = subprocess.Popen(["sleep", "60"])
    path = _publish(tmp_path, node_dir)
    _rewritten(path, pid=child.pid, start_ticks=process_identity.start_ticks(child.pid))
    assert _states(node_dir, tmp_path) == {"recorder": "ok"}
    child.send_signal(signal.SIGSTOP)
    os.waitpid(child.pid, os.WUNTRACED)
    (stopped,) = health.parts_of(node_dir, [tmp_path])
    assert (stopped.state, stopped.fix) == ("hung", f"kill -CONT {child.pid}")
    child.kill()
    child.wait()
    assert _states(node_dir, tmp_path) == {"recorder": "failed"}


def test_another_process_of_the_same_number_is_not_the_publisher(tmp_path: Path, node_dir: Path) -> None:
    _rewritten(_publish(tmp_path, node_dir), start_ticks=1)
    assert _states(node_dir, tmp_path) == {"recorder": "failed"}


def test_a_new_publisher_removes_the_files_of_dead_ones_of_its_kind(tmp_path: Path, node_dir: Path) -> None:
    dead = _publish(tmp_path, node_dir)
    _rewritten(dead, start_ticks=1)
    health.clear_dead(tmp_path, node_dir, "page")
    assert dead.exists()
    health.clear_dead(tmp_path, node_dir, health.RECORDER)
    assert not dead.exists()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"node_dir": 3}', '{"parts": [{"name": 1}]}'])
def test_a_damaged_file_reports_nothing(tmp_path: Path, node_dir: Path, content: str) -> None:
    (tmp_path / "health-1.json").write_text(content)
    assert health.parts_of(node_dir, [tmp_path]) == []


def test_a_recorder_that_died_is_known_until_another_takes_its_directory(tmp_path: Path, node_dir: Path) -> None:
    node_dir.mkdir(parents=True)
    _rewritten(_publish(tmp_path, node_dir), start_ticks=1)
    ((where, part),) = health.deaths([tmp_path])
    assert (where, part.state) == (node_dir, "failed")
    assert part.why == f"has died (pid {os.getpid()})"
    health.clear_dead(tmp_path, node_dir, health.RECORDER)
    assert health.deaths([tmp_path]) == []


def test_what_an_earlier_boot_left_says_nothing(tmp_path: Path, node_dir: Path) -> None:
    node_dir.mkdir(parents=True)
    _rewritten(_publish(tmp_path, node_dir), start_ticks=1, boot="another")
    assert health.deaths([tmp_path]) == []
    assert health.parts_of(node_dir, [tmp_path]) == []
