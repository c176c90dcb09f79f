"""The page's server reports the health of every part that publishes a heartbeat for a recording that it serves."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.page_server import page_server
from tests.helpers.recordings import Written, write_recording

from zombiescope.store import health
from zombiescope.store.health import LIVE_DIAGNOSIS, RECORDER, Part


@pytest.fixture
def flight(tmp_path: Path) -> Written:
    return write_recording(tmp_path / "flight", seconds=5, incident=False)


def publish(home: Path, node_dir: Path, *parts: Part) -> None:
    (home / "run").mkdir(mode=0o700, exist_ok=True)
    health.publish(health.path_of(home / "run", os.getpid()), RECORDER, node_dir, parts)


def part(**known: Any) -> Part:
    given = {"name": LIVE_DIAGNOSIS, "state": "failed", "since": 1e9, "why": "SIGSEGV", "fix": "zombiescope selftest"}
    return Part(**{**given, **known})


@pytest.mark.parametrize("spelling", ["flight", "./flight", "{home}/flight", "link"])
def test_parts_are_found_however_the_directory_is_spelled(flight: Written, tmp_path: Path, spelling: str) -> None:
    (tmp_path / "link").symlink_to("flight")
    publish(tmp_path, flight.node_dir, part())
    with page_server(spelling.format(home=tmp_path), home=tmp_path) as server:
        answer = server.api("health").document
    assert [(one["name"], one["state"]) for one in answer["parts"]] == [(RECORDER, "ok"), (LIVE_DIAGNOSIS, "failed")]
    assert answer["parts"][1] | {"why": "SIGSEGV", "fix": "zombiescope selftest"} == answer["parts"][1]
    assert answer["live"] is False


def test_a_recorder_of_another_recording_says_nothing_about_this_one(flight: Written, tmp_path: Path) -> None:
    publish(tmp_path, tmp_path / "other/node=lab", part())
    with page_server("flight", home=tmp_path) as server:
        assert server.api("health").document["parts"] == []


def test_a_publisher_that_is_silent_is_reported_by_the_server(flight: Written, tmp_path: Path) -> None:
    publish(tmp_path, flight.node_dir, part(state="ok", why=""))
    with page_server("flight", home=tmp_path) as server:
        assert [one["state"] for one in server.api("health").document["parts"]] == ["ok", "ok"]
        end = time.monotonic() + 60
        while (parts := server.api("health").document["parts"])[0]["state"] == "ok":
            assert time.monotonic() < end
            time.sleep(0.2)
    assert [one["state"] for one in parts] == ["hung", "hung"]
    assert parts[1]["obscured_by"] == "recorder"


def test_health_is_answered_before_anything_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "flight/node=lab/log").mkdir(parents=True)
    publish(tmp_path, tmp_path / "flight/node=lab", part())
    with page_server("flight", home=tmp_path) as server:
        assert server.api("info").status == 503
        assert len(server.api("health").document["parts"]) == 2
