"""A user of the node who calls his process "raylet", and a dashboard that was made to hurt."""

from __future__ import annotations

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.unit.node.ray.test_reports import NOW_US, SECOND_ID, _fake_raylet, _view

from zombiescope.agent.health import Health
from zombiescope.agent.ray.part import FAMILIES, RaySection, _Asker, _found
from zombiescope.agent.service import Context
from zombiescope.agent.tally import Tally
from zombiescope.node.ray import event_files
from zombiescope.node.ray import watch as tail
from zombiescope.node.ray.cluster import MOST_ASKED, MOST_KNOWN, Cluster
from zombiescope.node.ray.dashboard import Dashboard, DashboardError
from zombiescope.node.ray.raylet import open_of, parse
from zombiescope.node.ray.watch import MOST_OF_A_USER, Watch

# --- a process that says it is a raylet ------------------------------------------------------------------------------


def _worker_failure(number: int, message: str = "Worker PID: 7 Worker exit detail: x") -> bytes:
    said = {
        "source_type": "RAYLET", "label": "RAY_WORKER_FAILURE", "timestamp": "1794855200", "message": message,
        "custom_fields": {"worker_id": f"{number:056x}"},
    }  # fmt: skip
    return json.dumps(said).encode() + b"\n"


def test_a_line_that_was_made_to_be_searched_for_ever_is_read_at_once() -> None:
    """One expression over the whole message took ten minutes for this one."""
    piece = "Worker IP address: " + "a" * 60 + "Worker PID: 1111111111 " * 3 + "Worker exit type: " + "b" * 40
    report = event_files.parse(_worker_failure(1, piece * 5000))
    assert report is not None
    assert report.fields["pid"] == 1111111111


def test_what_a_command_line_names_is_opened_only_if_it_is_a_plain_file_of_its_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a watchdog's device starts it, and opening a pipe waits: neither is opened at all."""
    pipe, plain = tmp_path / "pipe", tmp_path / "plain"
    os.mkfifo(pipe)
    plain.write_text("received SIGTERM")
    opened: list[str] = []
    real = os.open

    def watched(path: Any, flags: int, *more: Any, **named: Any) -> int:
        if not flags & os.O_PATH:
            opened.append(str(path))
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", watched)
    for path, uid in ((pipe, os.getuid()), (Path("/dev/null"), 0), (plain, os.getuid() + 1), (tmp_path, os.getuid())):
        with pytest.raises(PermissionError):
            open_of(uid, path)
    assert opened == []
    os.close(open_of(os.getuid(), plain))
    line = f"raylet\0--node_id={SECOND_ID}\0--node_ip_address=10.0.0.1\0--stdout_filepath={pipe}".encode()
    raylet = parse(1, line, os.getuid())
    assert raylet is not None
    assert not raylet.was_stopped


def test_what_one_user_reports_has_a_budget(tmp_path: Path) -> None:
    with _fake_raylet(tmp_path) as process:
        watch = Watch(proc=_view(tmp_path, process))
        path = tmp_path / "session/logs/events/event_RAYLET.log"
        path.touch()
        watch.look(NOW_US)
        path.write_bytes(b"".join(_worker_failure(number) for number in range(2 * MOST_OF_A_USER)))
        assert len(watch.look(NOW_US + 1)) == MOST_OF_A_USER
        assert watch.left_out == MOST_OF_A_USER
        path.write_bytes(_worker_failure(9_999_999))
        assert len(watch.look(NOW_US + 61_000_000)) == 1
        watch.close()


def test_lines_without_an_end_and_files_that_go_take_no_memory(tmp_path: Path) -> None:
    files = tail.Tail((tmp_path,), os.getuid())
    assert list(files.lines()) == []
    for number in range(12):
        (tmp_path / f"{number}.log").write_bytes(b"x" * (tail.LINE_BYTES - 1))
    for _ in range(6):
        assert list(files.lines()) == []
    assert sum(len(place.rest) for place in files._places.values()) <= tail.WAITING_BYTES
    for path in tmp_path.iterdir():
        path.unlink()
    list(files.lines())
    assert files._places == {}


def test_a_user_with_many_sessions_pushes_out_his_own(tmp_path: Path) -> None:
    watch = Watch(proc=tmp_path)
    words = f"raylet\0--node_id={SECOND_ID}\0--node_ip_address=10.0.0.1\0--log_dir="
    for number, uid in [(0, 1), *((number, 2) for number in range(100))]:
        raylet = parse(1, f"{words}{tmp_path}/{uid}-{number}".encode(), uid)
        assert raylet is not None
        watch._follow(raylet)
    assert (tmp_path / "1-0", 1) in watch._tails
    watch.close()


# --- the dashboard ---------------------------------------------------------------------------------------------------


class _Server:
    """Answers whatever is asked; keeps what it was asked."""

    def __init__(self) -> None:
        self.tokens: list[str | None] = []
        self.asked: Counter[str] = Counter()
        self.nodes: list[Any] = []
        self.jobs: Any = []
        self.tasks: Any = []

    @contextmanager
    def running(self) -> Iterator[str]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.tokens.append(self.headers.get("Authorization"))
                name = next(name for name in ("jobs", "nodes", "tasks") if f"/{name}" in self.path)
                server.asked[name] += 1
                found = getattr(server, name)
                data = json.dumps(found if name == "jobs" else {"data": {"result": {"result": found}}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
            threading.Thread(target=listening.serve_forever, daemon=True).start()
            yield f"127.0.0.1:{listening.server_address[1]}"
            listening.shutdown()


def test_many_jobs_at_once_are_not_as_many_questions() -> None:
    server = _Server()
    server.jobs = [
        {"submission_id": f"j{number}", "job_id": f"{number:08x}", "status": "RUNNING"} for number in range(500)
    ]
    server.tasks = [{"node_id": [], "error_type": ["NODE_DIED"]}, {"error_type": {}}]
    with server.running() as place:
        cluster = Cluster(Dashboard(f"http://{place}"))
        assert len(cluster.ask(NOW_US)) == 500
        server.jobs = [{**job, "status": "FAILED", "end_time": 10**30} for job in server.jobs]
        assert len(cluster.ask(NOW_US)) == 500
    assert server.asked["tasks"] <= 3 * MOST_ASKED


def test_nodes_that_are_others_in_every_answer_are_not_all_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()
    cluster = Cluster(Dashboard("http://127.0.0.1:1"))
    monkeypatch.setattr(cluster._dashboard, "jobs", list)
    for answer in range(3):
        server.nodes = [
            {"node_id": f"{answer * 10_000 + number:056x}", "node_ip": "10.0.0.1"} for number in range(10_000)
        ]
        monkeypatch.setattr(cluster._dashboard, "nodes", lambda: server.nodes)
        cluster.ask(NOW_US)
    assert len(cluster._addresses) == MOST_KNOWN


def test_an_answer_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    server = _Server()
    server.jobs = ["x" * (17 << 20)]
    with server.running() as place, pytest.raises(DashboardError, match="larger than 16 MB"):
        Dashboard(f"http://{place}").jobs()


@pytest.mark.parametrize("url", ["http://[", "http://x:99999999", "http://x:y", "ftp://x", "http://", "http://x:0"])
def test_an_address_that_is_none_is_said_and_no_crash(url: str) -> None:
    with pytest.raises(DashboardError, match="is not the address of a dashboard"):
        Dashboard(url)
    assert [key for key, _, _ in RaySection(dashboard=url).problems()] == ["ray.dashboard"]


# --- the token -------------------------------------------------------------------------------------------------------


def _asker(section: RaySection, tmp_path: Path, stop: threading.Event) -> _Asker:
    context = Context("ray", tmp_path, "n", "n", Tally(FAMILIES), Health(lambda _: None))
    return _Asker(section, context, stop)


def _asked_of(asker: _Asker, url: str, server: _Server, stop: threading.Event, times: int) -> None:
    asker._url, asker._every_s = url, 0.01
    thread = threading.Thread(target=asker._run, daemon=True)
    thread.start()
    for _ in range(500):
        if server.asked["nodes"] >= times or not thread.is_alive():
            break
        time.sleep(0.02)
    stop.set()
    thread.join(10)
    assert server.asked["nodes"] >= times


def test_the_token_goes_to_the_dashboard_of_the_configuration_and_to_no_raylets(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")
    server, stop = _Server(), threading.Event()
    with server.running() as place:
        section = RaySection(token_file=str(tmp_path / "token"), dashboard="http://10.0.0.1:8265")
        _asked_of(_asker(section, tmp_path, stop), f"http://{place}", server, stop, 1)
        assert set(server.tokens) == {None}
        server.tokens, stop = [], threading.Event()
        section = RaySection(token_file=str(tmp_path / "token"), dashboard=f"http://{place}")
        _asked_of(_asker(section, tmp_path, stop), f"http://{place}", server, stop, 1)
        assert "Bearer s3cret" in server.tokens


def test_a_token_needs_a_dashboard_and_an_encrypted_way(tmp_path: Path) -> None:
    def problems(**given: Any) -> list[str]:
        return [what for _, what, _ in RaySection(token_file="/t", **given).problems()]

    assert problems() == ["is set without ray.dashboard"]
    assert problems(dashboard="http://head:8265") == ["would be sent to ray.dashboard unencrypted"]
    assert problems(dashboard="http://head:8265", plain_http=True) == []
    assert problems(dashboard="https://head:8265") == problems(dashboard="http://127.0.0.1:8265") == []


def test_whatever_a_dashboard_answers_it_is_asked_again(tmp_path: Path) -> None:
    server, stop = _Server(), threading.Event()
    server.nodes = [{"node_id": "a" * 56, "state": "DEAD", "end_time_ms": True, "state_message": []}, 7, None]
    server.jobs = [{"submission_id": "x", "status": {}}, {"submission_id": 7, "job_id": [], "status": "FAILED"}]
    (tmp_path / "token").write_bytes(b"\xff")  # no text
    section = RaySection(token_file=str(tmp_path / "token"))
    with server.running() as place:
        _asked_of(_asker(section, tmp_path, stop), f"http://{place}", server, stop, 3)


@pytest.mark.parametrize(
    "place", ["169.254.169.254:80", "[fe80::1]:80", "0.0.0.0:80", "metadata.internal:80", ":80", ""]
)
def test_what_a_raylet_may_not_make_us_ask(place: str) -> None:
    assert _found(place) is None
    assert _found("10.0.0.1:8265") == "http://10.0.0.1:8265"
