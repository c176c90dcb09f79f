"""What a real Ray of two nodes wrote (2.60, one raylet killed, one job with a bug, one actor that exits), and what we
make of it. The files are in tests/fixtures/ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from zombiescope.node.ray import event_files
from zombiescope.node.ray.cluster import Cluster
from zombiescope.node.ray.dashboard import Dashboard, DashboardError
from zombiescope.node.ray.raylet import Raylets, parse
from zombiescope.node.ray.report import Report
from zombiescope.node.ray.watch import Watch

FIXTURES = Path(__file__).parents[3] / "fixtures/ray"
HEAD, SECOND = "192.0.2.2", "127.0.0.2"
SECOND_ID = "a8dc9fdfecc1e451e86cec0d10a7f303cb301235695bd5e707f5cae3"
NOW_US = 1_794_855_200_000_000


def _reports(pattern: str) -> list[Report]:
    lines = [line for path in sorted(FIXTURES.glob(pattern)) for line in path.read_bytes().splitlines()]
    return [report for line in lines if (report := event_files.parse(line)) is not None]


# --- files -----------------------------------------------------------------------------------------------------------


def test_event_files_tell_of_workers_nodes_and_jobs() -> None:
    reports = {(report.kind, report.key): report for report in _reports("events/*.log")}
    dead = reports["ray_node_dead", SECOND_ID]
    assert dead.fields == {"node_id": SECOND_ID, "node_ip": SECOND, "why": "missed too many heartbeats"}
    assert dead.severity == "critical"
    (worker,) = [report for report in reports.values() if report.kind == "ray_worker_died"]
    assert worker.fields["job"] == "04000000"
    assert worker.fields["node_ip"] == SECOND
    assert worker.fields["pid"] == 15194
    assert worker.fields["exit_type"] == "SYSTEM_ERROR"
    failed = sorted(key for kind, key in reports if kind == "ray_job_failed")
    assert failed == ["raysubmit_bug", "raysubmit_victim"]
    assert ("ray_job_finished", "raysubmit_actor") in reports


def test_the_export_api_tells_which_tasks_were_lost_and_to_what() -> None:
    reports = _reports("export_events/*.log")
    lost = {(report.fields["job"], report.fields["error"]) for report in reports if report.kind == "ray_task_lost"}
    assert lost == {("03000000", "NODE_DIED"), ("04000000", "ACTOR_DIED")}
    (node,) = {report.key: report for report in reports if report.kind == "ray_node_dead"}.values()
    assert (node.key, node.fields["node_ip"], node.at_us) == (SECOND_ID, SECOND, 1_794_855_143_902_000)
    actors = {report.fields["actor"] for report in reports if report.kind == "ray_actor_died"}
    assert actors == {"A"}  # supervisors that were told to end are no deaths
    bug = next(report for report in reports if report.kind == "ray_job_failed" and report.key == "raysubmit_bug")
    assert bug.fields["said"] == "ValueError: own bug"
    assert bug.fields["exit_code"] == 1


@pytest.mark.parametrize(
    "line",
    [
        b"", b"{", b"[]", b"null", b'{"source_type": "GCS"}', b'{"source_type": "RAYLET", "timestamp": 1e300}',
        b'{"source_type": "GCS", "timestamp": 5, "label": "RAY_NODE_REMOVED", "custom_fields": []}',
        b'{"source_type": "EXPORT_TASK", "timestamp": "99999999999999999999", "event_data": {}}',
        b'{"source_type": "EXPORT_ACTOR", "timestamp": 5, "event_data": {"state": "DEAD", "death_cause": 3}}',
        b'{"source_type": "JOBS", "timestamp": true, "message": 4}',
        b'{"source_type": ["x"], "timestamp": 3}',
    ],
)  # fmt: skip
def test_lines_of_another_shape_raise_nothing(line: bytes) -> None:
    report = event_files.parse(line)
    assert report is None or report.at_us > 0


def test_a_job_that_prints_much_is_cut() -> None:
    said = {"source_type": "EXPORT_SUBMISSION_JOB", "timestamp": 5, "event_data": {
        "status": "FAILED", "submission_job_id": "x", "message": "a\n" * 20_000 + "\x1b[2J" + "b" * 9000,
        "entrypoint": "python " + "c" * 9000}}  # fmt: skip
    report = event_files.parse(json.dumps(said).encode())
    assert report is not None
    assert len(report.text) < 400
    assert len(report.fields["command"]) <= 200


# --- processes -------------------------------------------------------------------------------------------------------


def _cmdline() -> bytes:
    return (FIXTURES / "raylet.cmdline").read_bytes().replace(b"\n", b"\0")


def test_a_raylets_command_line_says_all_that_is_needed() -> None:
    raylet = parse(7, _cmdline())
    assert raylet is not None
    assert (raylet.node_ip, raylet.head, raylet.dashboard) == (HEAD, True, "127.0.0.1:28265")
    assert raylet.log_dir == Path("/tmp/ray/session_2026-11-16_18-41-34_290868_30545/logs")
    assert parse(7, b"raylet\0--node_id=x\0--node_ip_address=1.2.3.4") is None
    assert parse(7, _cmdline().replace(HEAD.encode(), b"$(reboot)")) is None
    hostile = parse(7, _cmdline().replace(b"--log_dir=/tmp", b"--log_dir=/tmp/../etc"))
    assert hostile is not None
    assert hostile.log_dir is None


@contextmanager
def _fake_raylet(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a raylet's name and command line, and a session of its own."""
    logs = tmp_path / "session/logs"
    (logs / "events").mkdir(parents=True)
    options = [f"--node_id={SECOND_ID}", f"--node_ip_address={SECOND}", f"--log_dir={logs}",
               f"--stdout_filepath={logs}/raylet.out"]  # fmt: skip
    script = "import ctypes, time; ctypes.CDLL(None).prctl(15, b'raylet', 0, 0, 0); time.sleep(60)"
    process = subprocess.Popen(["python3", "-c", script, *options])
    for _ in range(200):
        if Path(f"/proc/{process.pid}/comm").read_text() == "raylet\n":
            break
        time.sleep(0.02)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _view(tmp_path: Path, process: subprocess.Popen[bytes]) -> Path:
    """A /proc in which there is nobody else."""
    proc = tmp_path / "proc"
    proc.mkdir(exist_ok=True)
    (proc / str(process.pid)).symlink_to(f"/proc/{process.pid}")
    return proc


def test_a_raylet_that_is_killed_is_told_at_the_next_look_with_its_jobs(tmp_path: Path) -> None:
    with _fake_raylet(tmp_path) as process:
        logs = tmp_path / "session/logs"
        worker = "81990d31060a649d58ce7127ca747f30906fb11caf047d3ac59ea262"
        (logs / f"worker-{worker}-03000000-{process.pid}.out").touch()
        (logs / f"worker-{worker}-05000000-1.out").touch()  # nobody of this number lives in that /proc
        watch = Watch(proc=_view(tmp_path, process))
        (jobs,) = watch.look(NOW_US)
        fields = {"jobs": "03000000", "node_ip": SECOND, "workers": f"03000000={process.pid}"}
        assert (jobs.kind, jobs.fields) == ("ray_jobs", fields)
        assert watch.look(NOW_US + 1) == []
        process.send_signal(signal.SIGKILL)
        process.wait()
        (dead,) = watch.look(NOW_US + 2)
        assert (dead.kind, dead.fields["node_ip"], dead.fields["jobs"]) == ("ray_node_dead", SECOND, "03000000")
        assert dead.fields.get("signal") in (signal.SIGKILL, None)  # None: before Linux 6.15
        assert ("SIGKILL" in dead.text) == ("signal" in dead.fields)
        assert watch.hurry
        # The head says the same some fifteen seconds later.
        assert [report for each in _reports("events/event_GCS.log") for report in watch.told(each)] == []
        watch.close()


FORKING = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"raylet", 0, 0, 0)
open(sys.argv[-1], "w").write("ready")
while not os.path.exists(sys.argv[-1] + ".fork"):
    time.sleep(0.01)
child = os.fork()
if child == 0:
    while not os.path.exists(sys.argv[-1] + ".exec"):
        time.sleep(0.01)
    os.execvp("sleep", ["sleep", "60"])
open(sys.argv[-1] + ".child", "w").write(str(child))
time.sleep(60)
"""


def _file(path: Path) -> str:
    for _ in range(500):
        if path.exists() and path.read_text():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} is not there")


def _add(proc: Path, pid: int) -> None:
    (proc / str(pid)).symlink_to(f"/proc/{pid}")


@pytest.mark.parametrize("parent_is_known", [True, False])
def test_a_child_that_a_raylet_forked_is_not_a_raylet_and_the_raylets_own_end_is_reported(
    tmp_path: Path, parent_is_known: bool
) -> None:
    ready = tmp_path / "ready"
    options = [f"--node_id={SECOND_ID}", f"--node_ip_address={SECOND}", str(ready)]
    process = subprocess.Popen(["python3", "-c", FORKING, *options])
    child = 0
    try:
        _file(ready)
        proc = _view(tmp_path, process)
        watch = Watch(proc=proc)
        if parent_is_known:
            watch.look(NOW_US)
        (tmp_path / "ready.fork").touch()
        child = int(_file(tmp_path / "ready.child"))
        _add(proc, child)
        watch.look(NOW_US + 6_000_000)
        assert [raylet.pid for raylet in watch.raylets] == [process.pid]
        os.kill(child, signal.SIGKILL)
        assert watch.look(NOW_US + 12_000_000) == []
        process.kill()
        process.wait()
        assert [report.kind for report in watch.look(NOW_US + 18_000_000)] == ["ray_node_dead"]
        watch.close()
    finally:
        process.kill()
        process.wait()


def test_the_end_of_a_living_raylet_is_reported_though_another_source_reported_it_before(tmp_path: Path) -> None:
    with _fake_raylet(tmp_path) as process:
        watch = Watch(proc=_view(tmp_path, process))
        watch.look(NOW_US)
        early = event_files.node_dead(NOW_US, SECOND_ID, SECOND, "missed heartbeats")
        assert watch.told(early) == [early]
        assert watch.told(early) == []
        process.kill()
        process.wait()
        (dead,) = watch.look(NOW_US + 70_000_000)
        assert (dead.kind, dead.fields["pid"]) == ("ray_node_dead", process.pid)
        watch.close()


def test_a_raylet_that_was_told_to_stop_is_no_death(tmp_path: Path) -> None:
    with _fake_raylet(tmp_path) as process:
        watch = Watch(proc=_view(tmp_path, process))
        watch.look(NOW_US)
        (tmp_path / "session/logs/raylet.out").write_text("main.cc:1: received SIGTERM, shutting down\n")
        process.terminate()
        process.wait()
        (stopped,) = watch.look(NOW_US + 1)
        assert (stopped.kind, stopped.severity) == ("ray_node_stopped", "info")
        watch.close()


def test_what_is_written_while_it_watches_is_told_once_and_what_was_there_before_is_not(tmp_path: Path) -> None:
    lines = (FIXTURES / "events/event_RAYLET.log").read_bytes()
    with _fake_raylet(tmp_path) as process:
        path = tmp_path / "session/logs/events/event_RAYLET.log"
        path.write_bytes(lines)
        watch = Watch(proc=_view(tmp_path, process))
        assert watch.look(NOW_US) == []
        with open(path, "ab") as file:
            file.write(lines[: len(lines) // 2])
        assert watch.look(NOW_US + 1) == []
        with open(path, "ab") as file:
            file.write(lines[len(lines) // 2 :] + lines)
        assert [report.kind for report in watch.look(NOW_US + 2)] == ["ray_worker_died"]
        os.truncate(path, 0)
        path.write_bytes(lines.replace(b"0fbb501c", b"1fbb501c"))
        assert [report.kind for report in watch.look(NOW_US + 3)] == ["ray_worker_died"]
        watch.close()


def test_another_nodes_death_is_told_by_the_head_and_by_nobody_else(tmp_path: Path) -> None:
    other = event_files.node_dead(NOW_US, "b" * 56, "10.9.9.9", "x")
    with _fake_raylet(tmp_path) as process:
        watch = Watch(proc=_view(tmp_path, process))
        watch.look(NOW_US)
        assert watch.told(other) == []
        watch.close()


def test_a_process_that_only_has_the_name_is_no_raylet(tmp_path: Path) -> None:
    raylets = Raylets()
    new, ended = raylets.look()
    assert ended == []
    assert all(raylet.node_id for raylet in new)
    raylets.close()


# --- the dashboard ---------------------------------------------------------------------------------------------------


@contextmanager
def _dashboard(answers: dict[str, Any]) -> Iterator[str]:
    """Answers as Ray's did; `answers` by the first part of the path after /api/."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = next((name for name in answers if f"/{name}" in self.path), None)
            body = answers.get(name or "", b"{}")
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(200 if name else 404)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def _recorded() -> dict[str, Any]:
    return {name: json.loads((FIXTURES / f"dashboard/{name}.json").read_bytes()) for name in ("jobs", "nodes", "tasks")}


def test_a_job_that_died_of_a_node_is_known_from_one_that_died_of_its_own_error() -> None:
    answers = _recorded()
    running = [{**job, "status": "RUNNING", "end_time": None} for job in answers["jobs"]]
    ended, answers["jobs"] = answers["jobs"], running
    tasks = answers["tasks"]["data"]["result"]["result"]
    with _dashboard(answers) as url:
        cluster = Cluster(Dashboard(url))
        assert {report.kind for report in cluster.ask(NOW_US)} == {"ray_job_started"}
        answers["jobs"] = ended
        # The stand-in does not filter by job, so each job is asked for with its own tasks.
        found: dict[str, Report] = {}
        for job in ended:
            answers["jobs"] = [job if each["submission_id"] == job["submission_id"] else each for each in running]
            mine = [task for task in tasks if task["job_id"] == job["job_id"]]
            answers["tasks"] = {"data": {"result": {"result": mine}}}
            cluster._jobs = {each["submission_id"]: "RUNNING" for each in running}
            found |= {report.key: report for report in cluster.ask(NOW_US)}
    victim, bug = found["raysubmit_victim"], found["raysubmit_bug"]
    assert (victim.kind, victim.fields["lost_on"], victim.fields["lost_to"]) == ("ray_job_failed", SECOND, "NODE_DIED")
    assert bug.kind == "ray_job_failed"
    assert "lost_on" not in bug.fields
    assert found["raysubmit_actor"].kind == "ray_job_finished"


def test_a_node_that_dies_is_told_once_and_one_that_was_dead_before_is_not() -> None:
    answers = _recorded()
    with _dashboard(answers) as url:
        cluster = Cluster(Dashboard(url))
        assert [report.kind for report in cluster.ask(NOW_US)] == []
        fresh = Cluster(Dashboard(url))
        nodes = answers["nodes"]["data"]["result"]["result"]
        answers["nodes"] = {"data": {"result": {"result": [{**node, "state": "ALIVE"} for node in nodes]}}}
        fresh.ask(NOW_US)
        answers["nodes"] = {"data": {"result": {"result": nodes}}}
        assert [report.kind for report in fresh.ask(NOW_US)] == ["ray_node_dead"]
        assert fresh.ask(NOW_US) == []


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1, 2]", b'{"data": null}', b"\xff\xfe"])
def test_a_dashboard_that_is_none_is_one_clear_line(body: bytes) -> None:
    with _dashboard({"nodes": body}) as url, pytest.raises(DashboardError, match="dashboard"):
        Cluster(Dashboard(url)).ask(NOW_US)


def test_a_dashboard_that_is_away_is_one_clear_line() -> None:
    with pytest.raises(DashboardError, match=r"cannot be reached: Connection refused; is the head alive\?"):
        Dashboard("http://127.0.0.1:9").jobs()
