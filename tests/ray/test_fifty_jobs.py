"""A real Ray that gets fifty jobs at once, and loses a worker, a driver and a raylet: nothing that lives is reported
dead, and what died is reported with how it died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers import ray_cluster
from tests.helpers.cli import Cli
from tests.helpers.ray_cluster import SECOND_IP, RayCluster, wait_for
from tests.helpers.recorder_process import RecorderProcess
from zombiescope.agent import parts
from zombiescope.agent.health import Health
from zombiescope.agent.ray.part import RaySection, RayService
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.base.feed import Feed
from zombiescope.query.events import events
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording

pytestmark = [
    pytest.mark.ray,
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (ray_cluster.HOME / "ray").exists(), reason="`make test-ray` installs Ray"),
]

JOBS = 50
WORK = """
import ray, sys, time
ray.init()
@ray.remote(num_cpus=0, resources={"second": 0.01}, max_retries=0)
def work():
    import os
    open(%(out)r, "w").write(str(os.getpid()))
    time.sleep(600)
ray.get(work.remote())
"""


STARVED = """
import ray, time
ray.init()
@ray.remote(num_cpus=0, max_retries=0)
def work():
    import os
    os.sched_setaffinity(0, {%(core)d})
    open(%(out)r, "w").write(str(os.getpid()))
    end = time.monotonic() + 25
    while time.monotonic() < end: sum(range(10_000))
ray.get(work.remote())
"""
HOG = """
import os, time
os.sched_setaffinity(0, {%(core)d})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
end = time.monotonic() + 8
while time.monotonic() < end: pass
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster.running() as cluster:
        yield cluster


def _events(place: Path, *kinds: str) -> list[Event]:
    with open_recording(place) as recording:
        return events(recording, kinds=kinds)


def _pid(path: Path) -> int:
    wait_for(f"the worker of {path.name}", lambda: path.exists() and path.read_text().isdecimal(), 120)
    return int(path.read_text())


def test_fifty_jobs_at_once_and_then_a_worker_a_driver_and_a_raylet_die(
    cluster: RayCluster, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    recorder = RecorderProcess(tmp_path / "recording")
    place = tmp_path / "recording"
    stop, said = threading.Event(), list[str]()
    context = Context("ray", recorder.node_dir, "here", "here", Tally(parts.families()), Health(said.append))
    service = RayService(RaySection(), make_feed=lambda: Feed([str(tmp_path / "runtime")]))
    thread = threading.Thread(target=service.run, args=(context, stop), daemon=True)
    took: dict[str, float] = {}
    try:
        recorder.wait_for_frames(2)
        thread.start()
        time.sleep(7)  # the first answer of the dashboard is the baseline
        for number in range(JOBS):
            cluster.submit(f"many-{number:02d}", "pass")
        names = {f"many-{number:02d}" for number in range(JOBS)}
        wait_for("fifty jobs", lambda: all(cluster.status(name) == "SUCCEEDED" for name in names), 300)
        assert _events(place, "ray_node_dead") == []
        for name in ("worker", "raylet"):
            cluster.submit(name, WORK % {"out": str(tmp_path / name)})
        os.kill(_pid(tmp_path / "worker"), signal.SIGKILL)
        took["worker"] = wait_for("the worker's end", lambda: bool(_events(place, "ray_worker_died")), 30)
        wait_for("the worker's job", lambda: cluster.status("worker") == "FAILED", 60)
        _pid(tmp_path / "raylet")
        time.sleep(3)
        killed_us = time.time_ns() // 1000
        os.kill(cluster.raylet(SECOND_IP), signal.SIGKILL)
        took["raylet"] = wait_for("the raylet's end", lambda: bool(_events(place, "ray_node_dead")), 30)
        wait_for("the raylet's job", lambda: cluster.status("raylet") == "FAILED", 120)
        failed = {"worker", "raylet"}
        wait_for("their reports", lambda: failed <= _named(place, "ray_job_failed"), 60)
    finally:
        stop.set()
        thread.join(10)
        recorder.stop()
    record_property("on_disk_after_s", {name: round(value, 2) for name, value in took.items()})
    assert all(value < 5 for value in took.values()), took
    (dead,) = _events(place, "ray_node_dead")
    assert 0 <= dead.at_us - killed_us < 5_000_000
    assert dead.fields.get("signal") in (signal.SIGKILL, None)
    assert _named(place, "ray_job_failed") == failed
    assert len(_named(place, "ray_job_finished") & names) == JOBS
    answer = Cli(tmp_path)("diagnose", str(place), "--ray-job", "raylet", "--json").document["ray_job"]
    (told,) = answer
    assert told["pids"]
    assert told["tasks"] > 0
    assert told["fate"] in ("died", "lost")
    text = Cli(tmp_path)("diagnose", str(place), "--ray-job", "many-07").out
    assert "many-07 succeeded." in text


def test_a_job_that_is_starved_and_survives_is_told_who_held_its_core(cluster: RayCluster, tmp_path: Path) -> None:
    recorder = RecorderProcess(tmp_path / "recording")
    place, core = tmp_path / "recording", max(os.sched_getaffinity(0))
    stop, said = threading.Event(), list[str]()
    context = Context("ray", recorder.node_dir, "here", "here", Tally(parts.families()), Health(said.append))
    service = RayService(RaySection(), make_feed=lambda: Feed([str(tmp_path / "runtime")]))
    thread = threading.Thread(target=service.run, args=(context, stop), daemon=True)
    try:
        recorder.wait_for_frames(2)
        thread.start()
        time.sleep(7)
        cluster.submit("starved", STARVED % {"out": str(tmp_path / "starved"), "core": core})
        _pid(tmp_path / "starved")
        time.sleep(4)
        subprocess.run([sys.executable, "-c", HOG % {"core": core}], check=True, timeout=60)
        wait_for("its end", lambda: cluster.status("starved") == "SUCCEEDED", 120)
        wait_for("its report", lambda: "starved" in _named(place, "ray_job_finished"), 60)
    finally:
        stop.set()
        thread.join(10)
        recorder.stop()
    found = Cli(tmp_path)("diagnose", str(place), "--ray-job", "starved", "--json").document
    (told,) = found["ray_job"]
    assert told["fate"] not in ("died", "lost")
    assert told["pids"], "its driver, by the command that Ray was asked to run"
    causes = {cause["pattern"]: cause["hog"]["comm"] for one in found["incidents"] for cause in one["causes"][:1]}
    assert "rt-hog" in causes, causes
    survived = {fate["job"] for one in found["incidents"] for fate in one["jobs"] if fate["fate"] == "survived"}
    assert "starved" in survived


def _named(place: Path, kind: str) -> set[str]:
    return {str(event.fields.get("submission_id")) for event in _events(place, kind)}
