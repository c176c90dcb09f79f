"""A real Ray of two nodes beside a real recorder: what happens to Ray is on the axis, and jobs are joined to what they
died of."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers import ray_cluster
from tests.helpers.ray_cluster import SECOND_IP, RayCluster, wait_for
from tests.helpers.recorder_process import RecorderProcess
from zombiescope.agent import parts
from zombiescope.agent.health import Health
from zombiescope.agent.ray.part import RaySection, RayService
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.base.feed import Feed
from zombiescope.diagnosis.diagnose import diagnose
from zombiescope.query.events import events
from zombiescope.store.event import Event
from zombiescope.store.reader import open_recording

pytestmark = [
    pytest.mark.ray,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not (ray_cluster.HOME / "ray").exists(), reason="`make test-ray` installs Ray"),
]

BUG = "import ray, time\nray.init()\ntime.sleep(1)\nraise ValueError('own bug')\n"
VICTIM = """
import ray, time
ray.init()
@ray.remote(resources={"second": 1}, max_retries=0)
def work():
    time.sleep(600)
ray.get(work.remote())
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster.running() as cluster:
        yield cluster


def _events(place: Path, *kinds: str) -> list[Event]:
    with open_recording(place) as recording:
        return events(recording, kinds=kinds)


def test_a_raylet_that_is_killed_is_on_the_axis_within_five_seconds_and_takes_its_job_along(
    cluster: RayCluster, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    recorder = RecorderProcess(tmp_path / "recording")
    place = tmp_path / "recording"
    stop = threading.Event()
    said: list[str] = []
    tally = Tally(parts.families())
    context = Context("ray", recorder.node_dir, "here", "here", tally, Health(said.append))
    service = RayService(RaySection(), make_feed=lambda: Feed([str(tmp_path / "runtime")]))
    thread = threading.Thread(target=service.run, args=(context, stop), daemon=True)
    try:
        recorder.wait_for_frames(2)
        thread.start()
        time.sleep(7)  # the first answer of the dashboard is the baseline
        cluster.submit("victim", VICTIM)
        cluster.submit("bug", BUG)
        wait_for("the bug", lambda: cluster.status("bug") == "FAILED", 120)
        wait_for("the victim's worker", lambda: _has_worker(cluster, place), 120)
        killed_us = time.time_ns() // 1000
        os.kill(cluster.raylet(SECOND_IP), signal.SIGKILL)
        took_s = wait_for("the event", lambda: bool(_events(place, "ray_node_dead")), 30)
        wait_for("the victim's end", lambda: cluster.status("victim") == "FAILED", 120)
        wait_for("the victim's report", lambda: _failed(place) == {"bug", "victim"}, 60)
    finally:
        stop.set()
        thread.join(10)
        recorder.stop()
    (dead,) = _events(place, "ray_node_dead")
    assert 0 <= dead.at_us - killed_us < 5_000_000
    assert took_s < 5
    assert dead.fields["node_ip"] == SECOND_IP
    record_property("on_disk_after_s", round(took_s, 2))
    with open_recording(place) as recording:
        found = diagnose(recording, recording.start_us, recording.end_us)
    incident = next(
        each for each in found.incidents
        if any(symptom.facts.get("event") == "ray_node_dead" for symptom in each.symptoms)
    )  # fmt: skip
    fates = {fate.job: fate.fate for fate in incident.jobs}
    assert fates["victim"] == "died"
    assert fates.get("bug") != "died"


def _has_worker(cluster: RayCluster, place: Path) -> bool:
    """Whether the task runs on the second node, and the axis knows the job."""
    tasks = cluster.ask("/api/v0/tasks?detail=1")["data"]["result"]["result"]
    runs = any(task["name"] == "work" and task["state"] == "RUNNING" for task in tasks)
    return runs and any("victim" in str(event.fields) for event in _events(place, "ray_jobs", "ray_job_started"))


def _failed(place: Path) -> set[str]:
    return {str(event.fields.get("submission_id")) for event in _events(place, "ray_job_failed")}
