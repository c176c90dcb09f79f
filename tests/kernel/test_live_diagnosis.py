"""The doctor beside a real recorder and a real fault: named while it hurts, listed, kept, closed, and the same one
afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Needs
from tests.helpers.recorder_process import RecorderProcess, recording

from zombiescope.lab.scenario import by_id
from zombiescope.lab.scenario_run import stage
from zombiescope.store import incident_file
from zombiescope.store.freeze import list_frozen

pytestmark = pytest.mark.kernel

DEADLINE_S = 60.0
FAULT = by_id("mount-storm")


@dataclass
class Story:
    """What was seen of one fault, from its beginning to after its end."""

    began_us: int
    ended_us: int
    named_after_s: float
    status: dict[str, Any]
    open: dict[str, Any]
    closed: dict[str, Any]
    node_dir: Path
    result: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.open["id"])


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    Needs().perf_events()
    Needs().root()
    place = tmp_path_factory.mktemp("live")
    with recording(place / "r", diagnose=True) as recorder:
        with stage(FAULT, 120) as running:
            running.go()
            seen = awaited(recorder, lambda entry: entry["state"] == "open" and _pattern(entry) == FAULT.truth.pattern)
            named_after_s = time.time() - running.began_us / 1e6
            status = said(place, "status", "--json")
            running.stop()
            ended_us = time.time_ns() // 1000
        closed = awaited(recorder, lambda entry: entry["id"] == seen["id"] and entry["state"] == "closed")
        result = recorder.stop()
    sys.stdout.write(f"named {named_after_s:.1f} s after the fault began; {result['doctor_looks']} looks\n")
    return Story(running.began_us, ended_us, named_after_s, status, seen, closed, recorder.node_dir, result)


def awaited(recorder: RecorderProcess, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first incident in incidents.json that is as wanted."""
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        for entry in incident_file.read(recorder.node_dir):
            if wanted(entry):
                return entry
        time.sleep(0.1)
    known = [(entry["id"], entry["state"], _pattern(entry)) for entry in incident_file.read(recorder.node_dir)]
    raise AssertionError(f"not within {DEADLINE_S} s; known are {known}")


def _pattern(entry: dict[str, Any]) -> str | None:
    return entry["causes"][0]["pattern"] if entry["causes"] else None


def said(place: Path, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "zombiescope.cli.main", *arguments]
    environment = {**os.environ, "ZOMBIESCOPE_RUNTIME_DIR": str(place / "runtime")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in (0, 3), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_it_is_named_while_it_hurts(story: Story) -> None:
    cause = story.open["causes"][0]
    assert (cause["pattern"], cause["hog"]["comm"]) == (FAULT.truth.pattern, FAULT.truth.hog)
    assert cause["culprit"]["comm"] == FAULT.truth.hog
    assert story.began_us - 1_000_000 <= story.open["from"] * 1e6 < story.ended_us


def test_status_lists_it_while_it_is_open(story: Story) -> None:
    assert story.id in {entry["id"] for entry in story.status["incidents"]}


def test_it_closes_when_the_fault_is_over(story: Story) -> None:
    assert story.closed["to"] >= story.open["to"]
    assert story.closed["to"] * 1e6 <= story.ended_us + 2_000_000


def test_its_window_is_frozen_once_and_as_a_whole(story: Story) -> None:
    (mine,) = [frozen for frozen in list_frozen(story.node_dir) if story.id in frozen.why]
    assert mine.from_us <= story.closed["from"] * 1e6
    assert mine.to_us >= story.closed["to"] * 1e6


def test_it_has_the_same_name_offline(story: Story) -> None:
    found = said(story.node_dir, "diagnose", str(story.node_dir.parent), "--json")
    assert story.id in {entry["id"] for entry in found["incidents"]}


def test_it_has_the_same_name_for_somebody_who_knows_nothing_of_the_doctor(story: Story) -> None:
    (story.node_dir / incident_file.NAME).rename(story.node_dir / "aside.json")
    found = said(story.node_dir, "diagnose", str(story.node_dir.parent), "--json")
    assert story.id in {entry["id"] for entry in found["incidents"]}


def test_what_it_cost_is_counted(story: Story) -> None:
    assert story.result["doctor_looks"] >= 2
    assert story.result["doctor_cpu_seconds"] > 0
