"""Limits of the real kernel: what it says when a cgroup may have no more processes, and what its tables hold."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Needs

from zombiescope.kernel import limits
from zombiescope.kernel.kmsg import KmsgReader
from zombiescope.kernel.log_formats import LogEvent, event_of

pytestmark = pytest.mark.kernel

FORKS = r"""
import os, sys, time
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
children = []
try:
    for _ in range(16):
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        children.append(child)
except BlockingIOError:
    print("rejected after", len(children), flush=True)
finally:
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
"""


@pytest.fixture
def cage(needs: Needs) -> Iterator[Path]:
    """A pids cgroup with room for four processes."""
    needs.root()
    needs.kmsg()
    mount = next((path for path in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")) if _has_pids(path)), None)
    if mount is None:
        needs.lack("a pids controller")
    made = mount / f"zombiescope-test-{os.getpid()}"
    made.mkdir()
    (made / "pids.max").write_text("4")
    yield made
    made.rmdir()


def _has_pids(path: Path) -> bool:
    controllers = path / "cgroup.subtree_control"
    return path.name == "pids" and path.is_dir() if not controllers.exists() else "pids" in controllers.read_text()


def test_a_fork_that_is_rejected_is_an_event_with_the_cgroups_name(cage: Path) -> None:
    reader = KmsgReader()
    try:
        done = subprocess.run(
            [sys.executable, "-c", FORKS, str(cage)], capture_output=True, text=True, timeout=30, check=True
        )
        assert done.stdout.split() == ["rejected", "after", "3"]
        event = _event(reader, "pids_limit")
    finally:
        reader.close()
    assert event.fields["cgroup"] == f"/{cage.name}"


def _event(reader: KmsgReader, kind: str) -> LogEvent:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        select.select([reader], [], [], 0.1)
        for record in reader.read()[0]:
            event = event_of(record)
            if event is not None and event.kind == kind:
                return event
    raise AssertionError(f"no {kind} in the log")


def test_open_files_are_counted(needs: Needs) -> None:
    needs.file("/proc/sys/fs/file-nr")
    before = limits.read()["files_open"]
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(512)]
    try:
        rose = limits.read()["files_open"] - before
    finally:
        for descriptor in held:
            os.close(descriptor)
    assert rose >= 256  # others open and close files too, and the kernel counts in batches for each CPU
