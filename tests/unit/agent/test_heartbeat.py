"""The heartbeat file of the services, as `status` reads it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from zombiescope.agent import services
from zombiescope.agent.health import Health
from zombiescope.agent.node_parts import SERVICES
from zombiescope.agent.services import Heartbeat
from zombiescope.store import health
from zombiescope.store.health import Part


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ZOMBIESCOPE_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def parts_of(node_dir: Path, runtime: Path) -> dict[str, Part]:
    return {part.name: part for part in health.parts_of(node_dir, [runtime])}


def test_services_are_published_and_a_clean_end_removes_them(tmp_path: Path, runtime: Path) -> None:
    own = Health(lambda _: None)
    own.say("webhook", "failed", "no luck")
    own.say("ray", "ok")
    made = Heartbeat(tmp_path, own, lambda _: None)
    made.publish()
    found = parts_of(tmp_path, runtime)
    assert {name: part.state for name, part in found.items()} == {SERVICES: "ok", "webhook": "failed", "ray": "ok"}
    assert found["webhook"].why == "failed: no luck"
    assert found[SERVICES].pid == os.getpid()
    assert (found[SERVICES].rss_bytes or 0) > 1_000_000
    assert 0 < made.wait_s <= health.EVERY_S
    made.end()
    assert parts_of(tmp_path, runtime) == {}


def test_one_that_died_before_is_replaced(tmp_path: Path, runtime: Path) -> None:
    child = os.fork()
    if child == 0:  # pragma: no cover
        health.publish(health.path_of(runtime, os.getpid()), SERVICES, tmp_path, [])
        os._exit(1)
    os.waitpid(child, 0)
    assert parts_of(tmp_path, runtime)[SERVICES].state == "failed"
    made = Heartbeat(tmp_path, Health(lambda _: None), lambda _: None)
    made.begin()
    made.publish()
    assert parts_of(tmp_path, runtime)[SERVICES].state == "ok"


def test_a_process_that_stood_still_blames_no_service(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.monotonic()]
    own = Health(lambda _: None, lambda: now[0])
    own.say("ray", "ok")
    own.beat("ray", 2.0)
    made = Heartbeat(tmp_path, own, lambda _: None)
    made.publish()
    now[0] += 100
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    made.publish()
    assert parts_of(tmp_path, runtime)["ray"].state == "ok"
    for _ in range(4):
        now[0] += health.EVERY_S
        made.publish()
    assert parts_of(tmp_path, runtime)["ray"].state == "hung"


def test_a_runtime_directory_that_cannot_be_written_is_logged_once(tmp_path: Path, runtime: Path) -> None:
    runtime.rmdir()
    said: list[str] = []
    made = Heartbeat(tmp_path, Health(said.append), said.append)
    for _ in range(2 * services.SAY_AFTER):
        made._published_s -= health.EVERY_S
        made.publish()
    assert said == [f"no heartbeat of the services in {runtime}: No such file or directory"]
