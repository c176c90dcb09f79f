"""Cgroups nested deeper than a path can be written: the recorder starts, goes on, starts again, and says what it left
out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording

from zombiescope.kernel.cgroup_census import MAX_DEPTH
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

MOST = 1_000
"""From 819 on the path is longer than any call accepts (PATH_MAX)."""
NESTING_S = 60.0
DEEPEST, DEEPEST_S = 20_000, 12.0
"""The kernel has no limit of its own: cgroup.max.depth is "max", and each level costs as much time and memory as there
are above it, so twice as deep takes four times as long. What can be made in this time is all that somebody has."""
NEST = """
import os, sys, time
made, end = 0, time.monotonic() + float(sys.argv[3])
os.chdir(sys.argv[1])
try:
    while made < int(sys.argv[2]) and time.monotonic() < end:
        os.mkdir("deep")
        made += 1
        os.chdir("deep")
except OSError as error:
    print(error, file=sys.stderr)
print(made)
"""
REMOVE = """
import os, sys
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.chdir("deep")
for _ in range(int(sys.argv[2])):
    os.chdir("..")
    os.rmdir("deep")
"""


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120, check=True).stdout


@pytest.fixture
def depth(needs: Needs) -> Iterator[int]:
    """How deep they are."""
    top = needs.memory_cgroup() / f"zombiescope-test-deep-{os.getpid()}"
    top.mkdir()
    made = 0
    try:
        made = int(run(NEST, top, MOST, NESTING_S))
        yield made
    finally:
        run(REMOVE, top, made)
        top.rmdir()


def test_the_recorder_starts_with_them_and_starts_again(depth: int, tmp_path: Path) -> None:
    assert depth > 5 * MAX_DEPTH
    for _ in range(2):
        with recording(tmp_path / "rec") as recorder:
            recorder.wait_for_frames(3)
            result = recorder.stop()
        said = {one["source"]: one for one in result["missing"]}
        # THEN what was not entered is said, with the first path of it
        assert "too deep" in said["cgroup directories"]["why"]
        assert "/deep/deep" in said["cgroup directories"]["why"]
    # AND it is a gap, while everything else was recorded
    with open_recording(tmp_path / "rec") as opened:
        assert opened.table("census").num_rows >= 4
        assert opened.table("cores").num_rows >= 4
        assert "cgroup directories" in {row["source"] for row in opened.table("gaps").to_pylist()}


def test_one_that_is_made_while_it_records_costs_nothing_else(needs: Needs, tmp_path: Path) -> None:
    top = needs.memory_cgroup() / f"zombiescope-test-deeper-{os.getpid()}"
    top.mkdir()
    made = 0
    try:
        with recording(tmp_path / "rec") as recorder:
            recorder.wait_for_frames(2)
            made = int(run(NEST, top, MOST, NESTING_S))
            recorder.wait_for_frames(2)
            run(REMOVE, top, made)
            made = 0
            recorder.wait_for_frames(2)
            result = recorder.stop()
    finally:
        run(REMOVE, top, made)
        top.rmdir()
    assert result["ticks"] >= 5
    assert not [one for one in result["missing"] if "fault of zombiescope" in one["grant"]]


@pytest.mark.long
@pytest.mark.parametrize("mount", ["memory", "unified"])
def test_as_deep_as_can_be_made(needs: Needs, tmp_path: Path, mount: str) -> None:
    memory = needs.memory_cgroup()
    place = memory if mount == "memory" else memory.parent / "unified"
    if not (place / "cgroup.procs").exists():
        pytest.skip(f"no cgroups are mounted at {place}")
    top = place / f"zombiescope-test-deepest-{os.getpid()}"
    top.mkdir()
    made = 0
    try:
        made = int(run(NEST, top, DEEPEST, DEEPEST_S))
        sys.stdout.write(f"{mount}: {made} levels\n")
        assert made > MAX_DEPTH
        with recording(tmp_path / "rec") as recorder:
            recorder.wait_for_frames(3)
            result = recorder.stop()
    finally:
        run(REMOVE, top, made)
        top.rmdir()
    assert result["ticks"] >= 4
    assert not [one for one in result["missing"] if "fault of zombiescope" in one["grant"]]
