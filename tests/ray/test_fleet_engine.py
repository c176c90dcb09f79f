"""A real Ray: the same answers as without it, lost workers, a cluster that is joined; and a real object store's
protocol, slow and refusing. `make test-ray` runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from benchmarks.fleets.nodes import Fleet, Plant, write

from zombiescope.fleet.engines import BatchRows, Engine
from zombiescope.fleet.engines.cluster import NoRayError, RayEngine
from zombiescope.fleet.engines.local import LocalEngine
from zombiescope.fleet.gather import gather
from zombiescope.fleet.report import make
from zombiescope.fleet.results import Batch
from zombiescope.store.reader import open_recording

pytest.importorskip("ray", reason="make test-ray installs it")
SMALL = Fleet(nodes=40, hours=2, seed=3, plant=Plant(rate=1.0, stray=0.0), compare=0.1)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("fleet")
    write(SMALL, root)
    return root


def answer(place: str, results: Path, engine: Engine) -> dict[str, Any]:
    found = gather(place, results, engine, None)
    try:
        document = make(found, "").document()
    finally:
        found.statistics.close()
    said: dict[str, Any] = json.loads(json.dumps(document))
    said["read"]["core_seconds"] = 0
    return said | {"root": ""}


def test_both_engines_say_the_same(fleet: Path, tmp_path: Path) -> None:
    with_ray = answer(str(fleet), tmp_path / "ray", RayEngine(workers=2))
    without = answer(str(fleet), tmp_path / "local", LocalEngine(1))
    assert with_ray == without
    assert with_ray["by"][0]["label"] == "image,zone"


class Murderous(RayEngine):
    """Kills a worker of its own cluster once, while it works."""

    killed = 0

    def read(self, place: str, batches: Sequence[Batch]) -> Iterator[BatchRows]:
        threading.Thread(target=self._kill, daemon=True).start()
        yield from super().read(place, batches)

    def _kill(self) -> None:
        for _ in range(300):
            time.sleep(0.1)
            for pid in workers_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)
                self.killed += 1
                return


def workers_of(parent: int) -> list[int]:
    """Ray's worker processes below this one that run a task."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                title = (entry / "cmdline").read_bytes()
                ancestors = list(_ancestors(int(entry.name)))
            except OSError:
                continue
            if title.startswith(b"ray::read_batch") and parent in ancestors:
                found.append(int(entry.name))
    return found


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


def test_a_lost_worker_is_retried_and_nothing_is_missing(fleet: Path, tmp_path: Path) -> None:
    engine = Murderous(workers=1)
    with_ray = answer(str(fleet), tmp_path / "ray", engine)
    assert engine.killed == 1
    assert with_ray == answer(str(fleet), tmp_path / "local", LocalEngine(1))
    assert with_ray["damage"] == []


def test_a_cluster_that_is_not_there_is_said(fleet: Path, tmp_path: Path) -> None:
    with pytest.raises(NoRayError, match="no Ray cluster at"):
        answer(str(fleet), tmp_path / "ray", RayEngine("127.0.0.1:1"))


# --- an object store -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """moto's server on the loopback: S3 as boto knows it."""
    pytest.importorskip("moto", reason="make test-ray installs it")
    port = 5557
    process = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(300):
            try:
                urlopen(f"http://127.0.0.1:{port}/", timeout=1).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


class Proxy:
    """Stands before a store: every third request gets 503, and the others wait a little."""

    def __init__(self, behind: str, refuse_every: int, wait_s: float) -> None:
        proxy = self
        self.requests = self.refused = 0

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                proxy.requests += 1
                if refuse_every and proxy.requests % refuse_every == 0:
                    proxy.refused += 1
                    self._send(503, b"<Error><Code>SlowDown</Code><Message>slow down</Message></Error>", {})
                    return
                time.sleep(wait_s)
                headers = {key: value for key, value in self.headers.items() if key.lower() != "host"}
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
                try:
                    with urlopen(
                        Request(f"http://{behind}{self.path}", data, headers, method=self.command), timeout=20
                    ) as got:
                        self._send(got.status, got.read(), dict(got.headers))
                except HTTPError as error:
                    self._send(error.code, error.read(), dict(error.headers))

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_one  # noqa: N815 - as the base class calls them

            def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for key, value in headers.items():
                    if key.lower() not in ("content-length", "transfer-encoding", "connection", "date", "server"):
                        self.send_header(key, value)
                length = headers.get("Content-Length", len(body)) if self.command == "HEAD" else len(body)
                self.send_header("Content-Length", str(length))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.server_port}"


@pytest.fixture(scope="module")
def bucket(moto: str, fleet: Path) -> str:
    """The fleet, put there as the agent would."""
    import pyarrow.fs

    os.environ |= {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_EC2_METADATA_DISABLED": "true"}
    store = pyarrow.fs.S3FileSystem(
        endpoint_override=moto, scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    store.create_dir("fleet")
    pyarrow.fs.copy_files(str(fleet), "fleet/prod", destination_filesystem=store)
    return "s3://fleet/prod?region=us-east-1&scheme=http&endpoint_override="


def test_a_fleet_in_an_object_store_is_read_where_it_is(bucket: str, moto: str, fleet: Path, tmp_path: Path) -> None:
    from_store = answer(bucket + moto, tmp_path / "s3", LocalEngine(1))
    on_disk = answer(str(fleet), tmp_path / "disk", LocalEngine(1))
    # mtimes differ, and with them fingerprints; nothing that is said does.
    assert from_store == on_disk


def test_a_store_that_is_slow_and_says_503_is_asked_again(bucket: str, moto: str, fleet: Path, tmp_path: Path) -> None:
    proxy = Proxy(moto, refuse_every=3, wait_s=0.01)
    found = answer(bucket + proxy.address, tmp_path / "s3", LocalEngine(1))
    assert proxy.refused > 20
    assert found["damage"] == []
    assert found["headline"] == answer(str(fleet), tmp_path / "disk", LocalEngine(1))["headline"]


def test_one_node_is_opened_in_the_store_without_copying_it(bucket: str, moto: str, fleet: Path) -> None:
    proxy = Proxy(moto, refuse_every=0, wait_s=0)
    sick = next(path.parents[1].name.removeprefix("node=") for path in fleet.glob("node=*/date=*/stacks-*"))
    with open_recording(bucket + proxy.address, sick) as recording:
        assert recording.table("samples").num_rows > 0
        assert recording.table("minutes").num_rows == SMALL.hours * 60
    files = sum(1 for path in (fleet / f"node={sick}").rglob("*") if path.is_file())
    assert proxy.requests < files + 40


def test_nobody_at_the_address_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="object store"):
        answer("s3://fleet/prod?region=us-east-1&scheme=http&endpoint_override=127.0.0.1:9", tmp_path, LocalEngine(1))
