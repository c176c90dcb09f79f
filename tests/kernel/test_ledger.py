"""The ledger on a real kernel: real cgroups die, real tracepoints tell of it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import recording
from tests.helpers.zombies import zombie_farm

from zombiescope.kernel.cgroup_dying import held
from zombiescope.query.cgroups import cgroups
from zombiescope.query.node_counters import last_by_key
from zombiescope.recorder.dying import MANY
from zombiescope.store.reader import open_recording

pytestmark = pytest.mark.kernel

NAME = "zombiescope-test-ledger"
PATH = f"/{NAME}/job-*"
COUNT = 5000


def test_five_thousand_zombies_are_counted_named_and_seen_to_go(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    with zombie_farm(mount, NAME) as farm, recording(tmp_path / "r") as recorder:
        before = _look(tmp_path / "r")
        # WHEN a process makes 5,000 zombies
        pid = farm.leak(COUNT)
        recorder.wait_for_frames(3)
        after = _look(tmp_path / "r")
        leak = next(leak for leak in after.leaks if leak.path == PATH)
        # THEN path and creator are named and the numbers are exact
        assert (leak.dying, leak.created, leak.released) == (COUNT, COUNT, 0)
        assert (leak.creator.comm, leak.creator.pid) == ("leaky", pid)
        assert leak.exact
        assert after.memory.dying is not None
        assert before.memory.dying is not None
        # The machine reclaims other zombies by itself meanwhile: the census may have lost those, and only those.
        assert COUNT - before.memory.dying <= after.memory.dying - before.memory.dying <= COUNT + 50
        # AND what keeps them: a page of tmpfs each, and no page cache; noted once a minute, the first time as soon as
        # there were many, which may have been before there were all
        page, noted, now = os.sysconf("SC_PAGESIZE"), _noted(tmp_path / "r"), held(str(farm.parent))
        assert now is not None
        assert now.shmem_bytes == COUNT * page
        assert MANY * page // 2 <= noted["shmem"] <= COUNT * page
        assert max(now.file_bytes, noted["file"]) <= COUNT * page // 100
        # AND when they are freed it says so
        farm.free()
        end = time.monotonic() + 30
        while (leak := _leak(tmp_path / "r")).dying and time.monotonic() < end:
            recorder.wait_for_frames(1)
        assert (leak.dying, leak.released) == (0, COUNT)
        result = recorder.stop()
    assert result["lost"] == 0


def test_the_ledger_outlives_its_recorder(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    with zombie_farm(mount, NAME) as farm:
        with recording(tmp_path / "r") as recorder:
            farm.leak(50)
            recorder.wait_for_frames(3)
            recorder.stop()
        # WHEN another recorder of the same boot takes over
        with recording(tmp_path / "r") as recorder:
            recorder.wait_for_frames(2)
            leak = _leak(tmp_path / "r")
            # THEN it knows the zombies, and says that nobody watched in between
            assert (leak.dying, leak.exact, leak.creator.comm) == (50, False, "leaky")
            farm.free()
            recorder.wait_for_frames(4)
            assert _leak(tmp_path / "r").dying == 0


def test_churn_under_one_parent_is_an_event(needs: Needs, tmp_path: Path) -> None:
    needs.perf_events()
    needs.tracefs()
    mount = needs.memory_cgroup()
    with zombie_farm(mount, NAME) as farm, recording(tmp_path / "r") as recorder:
        farm.leak(30)
        recorder.wait_for_frames(3)
        with open_recording(tmp_path / "r") as opened:
            events = opened.table("events").to_pylist()
    churn = [event for event in events if event["kind"] == "cgroup_churn" and PATH in event["text"]]
    assert churn, events
    assert "leaky" in churn[0]["text"]


def _look(directory: Path):  # type: ignore[no-untyped-def]
    with open_recording(directory) as opened:
        return cgroups(opened)


def _noted(directory: Path) -> dict[str, int]:
    """Bytes below the farm, by what they are."""
    with open_recording(directory) as opened:
        kinds = {kind: last_by_key(opened, "dying", kind, opened.end_us) for kind in ("file", "shmem")}
    return {kind: values[f"/{NAME}"] for kind, values in kinds.items()}


def _leak(directory: Path):  # type: ignore[no-untyped-def]
    return next(leak for leak in _look(directory).leaks if leak.path == PATH)
