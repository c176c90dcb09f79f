"""Over the real protocol of S3, on the loopback: moto's server is the bucket."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import fs
from tests.helpers import object_store
from tests.helpers.recordings import SECOND, START_US, Written, contents, write_recording

from zombiescope.base import python as _python
from zombiescope.store.freeze import freeze
from zombiescope.store.reader import open_recording
from zombiescope.store.shipping.policy import ShippingPolicy
from zombiescope.store.shipping.shipper import Shipper
from zombiescope.store.shipping.target import TargetError, open_target


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with object_store.running() as port:
        yield port


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in object_store.KEYS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    made = write_recording(tmp_path / "here", segment_s=10)
    freeze(made.node_dir, START_US + 12 * SECOND, START_US + 33 * SECOND, "incident 1")
    return made


def _shipper(written: Written, tmp_path: Path, target: str, **policy: Any) -> Shipper:
    state = tmp_path / "state"
    state.mkdir(exist_ok=True)
    chosen = ShippingPolicy(target=target, what="everything", **policy)
    return Shipper(written.node_dir, state, chosen, open_target(chosen))


def _fetched(port: int, prefix: str, place: Path) -> dict[str, list[Any]]:
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1")
    place.mkdir()
    fs.copy_files(f"{object_store.BUCKET}/{prefix}", str(place), source_filesystem=store)
    with open_recording(place) as recording:
        assert recording.damage == []
        return contents(recording)


def _rows(written: Written) -> dict[str, list[Any]]:
    with open_recording(written.dir) as recording:
        return contents(recording)


def test_a_bucket_holds_a_recording_as_the_fleet_reads_it(port: int, written: Written, tmp_path: Path) -> None:
    shipper = _shipper(written, tmp_path, object_store.address(port, "plain"), verify="read")
    assert shipper.round().units == 6
    assert shipper.round().units == 0
    assert _fetched(port, "plain", tmp_path / "fetched") == _rows(written)


def test_connections_that_break_off_cost_time_and_no_rows(port: int, written: Written, tmp_path: Path) -> None:
    with object_store.BreakingWay(port, chance=0.4).running() as way:
        target = object_store.address(way.own_port, "broken")
        failures = 0
        shipper = _shipper(written, tmp_path, target)
        while True:
            try:
                done = shipper.round()
            except TargetError:
                failures += 1
                shipper = _shipper(written, tmp_path, target)  # as after a restart
                continue
            if done.idle:
                break
        assert way.broken > 3
    assert _fetched(port, "broken", tmp_path / "fetched") == _rows(written)


def test_a_bucket_that_is_not_there_is_one_clear_line(port: int, written: Written, tmp_path: Path) -> None:
    target = object_store.address(port).replace(object_store.BUCKET, "absent")
    with pytest.raises(TargetError, match=r"s3://absent.*make the bucket first"):
        _shipper(written, tmp_path, target).round()


def test_a_worker_killed_at_any_moment_is_followed_by_one_that_goes_on(
    port: int, written: Written, tmp_path: Path
) -> None:
    policy = ShippingPolicy(target=object_store.address(port, "killed"), what="everything", every_s=0.05, linger_s=0)
    arguments = _python.module("zombiescope.store.shipping.worker", str(written.node_dir), str(tmp_path / "state"))
    units, kills, taken = 0, 0, []
    for life_s in (0.0, 0.01, 0.03, None):
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=_environment())
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(policy.to_dict()).encode())
        process.stdin.close()
        if life_s is not None:
            _wait_for_object(port, kills)
            time.sleep(life_s)
            process.send_signal(signal.SIGKILL)
            kills += 1
        lines = [json.loads(line) for line in process.stdout]
        units += sum(line.get("units", 0) for line in lines)
        taken.append(process.wait())
        process.stdout.close()
    assert taken[-1] == 0
    assert _fetched(port, "killed", tmp_path / "fetched") == _rows(written)
    receipts = list((tmp_path / "fetched/node=lab/shipped").iterdir())
    assert len(receipts) == 6


def _environment() -> dict[str, str]:
    return {**os.environ, **object_store.KEYS}


def _wait_for_object(port: int, more_than: int) -> None:
    """Until the bucket has something new of this node: then it is in the middle of it."""
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1")
    selector = fs.FileSelector(f"{object_store.BUCKET}/killed", recursive=True, allow_not_found=True)
    for _ in range(400):
        found = [info for info in store.get_file_info(selector) if info.type == fs.FileType.File]
        if len(found) > more_than:
            return
        time.sleep(0.02)
