"""Profiles all the time: each span once, nothing kept in memory for a peer that is away."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from tests.helpers.recordings import SECOND, START_US, Written, write_recording
from tests.helpers.stand_in import StandIn, running

from zombiescope.query.exports.continuous import PushPolicy, run, run_on
from zombiescope.query.exports.peer import PushError
from zombiescope.query.exports.push import Target

END_US = START_US + 60 * SECOND


@pytest.fixture
def peer() -> Iterator[StandIn]:
    with running() as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("node"), segment_s=10)


def _run(
    written: Written, state: Path, url: str, now_us: int, to: Target = "otlp", **more: Any
) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    policy = PushPolicy(to=to, url=url, labels={"team": "ml"}, timeout_s=2.0, **more)
    run(written.node_dir, state / "profiles.json", policy, said.append, now_us)
    return said


def _samples(peer: StandIn) -> list[tuple[int, dict[str, Any]]]:
    """Time and attributes of every sample, read with OpenTelemetry's own package."""
    found = []
    for asked in peer.asked:
        request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(gzip.decompress(asked.body))
        table = request.dictionary
        for resource in request.resource_profiles:
            about = {each.key: each.value.string_value for each in resource.resource.attributes}
            for sample in (one for scope in resource.scope_profiles for each in scope.profiles for one in each.samples):
                known = [table.attribute_table[number] for number in sample.attribute_indices]
                labels = {table.string_table[one.key_strindex]: one.value.string_value for one in known}
                found += [(at_ns // 1000, {**about, **labels}) for at_ns in sample.timestamps_unix_nano]
    return found


def test_run_after_run_each_sample_arrives_once_with_its_labels(
    written: Written, tmp_path: Path, peer: StandIn
) -> None:
    state = tmp_path
    (state / "profiles.json").write_text(json.dumps({"sent_us": START_US // 60_000_000 * 60_000_000}))
    for second in (20, 50, 70, 130, 131):
        _run(written, state, peer.url, START_US + second * SECOND, backlog_s=3600)
    samples = _samples(peer)
    times = [at_us for at_us, _ in samples]
    whole_us = min(END_US, START_US + 126 * SECOND) // 60_000_000 * 60_000_000
    assert len(times) > 0
    assert max(times) < whole_us
    again = len(peer.asked)
    _run(written, state, peer.url, START_US + 132 * SECOND, backlog_s=3600)
    assert len(peer.asked) == again
    labels = [about for _, about in samples]
    assert {about["host.name"] for about in labels} == {"lab"}
    assert {about["team"] for about in labels} == {"ml"}
    assert any(about.get("zombiescope.systemd.unit") for about in labels)


def test_a_peer_that_is_away_costs_nothing_and_gets_what_waited(
    written: Written, tmp_path: Path, peer: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    (tmp_path / "profiles.json").write_text(json.dumps({"sent_us": START_US // 10_000_000 * 10_000_000}))
    before = (tmp_path / "profiles.json").read_bytes()
    with pytest.raises(PushError, match="cannot be reached"):
        _run(written, tmp_path, "http://127.0.0.1:9", END_US + 10 * SECOND, "pyroscope")
    assert (tmp_path / "profiles.json").read_bytes() == before
    said = _run(written, tmp_path, peer.url, END_US + 10 * SECOND, "pyroscope")
    assert sum(one.get("samples", 0) for one in said) == written.samples
    assert len(peer.asked) == len([one for one in said if one.get("requests")])
    assert all(b"\x04node\x12\x03lab" in asked.body for asked in peer.asked)


def test_what_is_older_than_the_backlog_is_passed_over_and_counted(
    written: Written, tmp_path: Path, peer: StandIn
) -> None:
    (tmp_path / "profiles.json").write_text(json.dumps({"sent_us": START_US // 10_000_000 * 10_000_000}))
    said = _run(written, tmp_path, peer.url, END_US + 10 * SECOND, "pyroscope", backlog_s=20)
    assert said[0] == {"skipped_s": 40.0}
    assert 0 < sum(one.get("samples", 0) for one in said) < written.samples


def test_a_state_that_cannot_be_read_starts_with_now(written: Written, tmp_path: Path, peer: StandIn) -> None:
    for damage in (b"", b"{", b"[]", b'{"sent_us": "x"}', b'{"sent_us": -4}'):
        (tmp_path / "profiles.json").write_bytes(damage)
        peer.asked.clear()
        _run(written, tmp_path, peer.url, END_US + 10 * SECOND, "pyroscope")
        assert len(peer.asked) == 1


def test_one_process_makes_pass_after_pass_and_waits_longer_for_a_peer_that_is_away(
    written: Written, tmp_path: Path, peer: StandIn
) -> None:
    waited: list[float] = []
    said: list[dict[str, Any]] = []

    def is_over(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) == 4

    there = PushPolicy(to="otlp", url=peer.url, every_s=60.0)
    run_on(written.node_dir, tmp_path / "profiles.json", there, said.append, is_over)
    assert waited == [60.0] * 4
    assert [one for one in said if "passes" in one] == [{"passes": 1}] * 4
    waited.clear()
    said.clear()
    # A span that waits, and nobody to take it.
    (tmp_path / "profiles.json").write_text(json.dumps({"sent_us": START_US // 60_000_000 * 60_000_000}))
    away = PushPolicy(to="otlp", url="http://127.0.0.1:1", every_s=60.0, backlog_s=1e9, timeout_s=0.1)
    run_on(written.node_dir, tmp_path / "profiles.json", away, said.append, is_over)
    assert waited == [120.0, 240.0, 300.0, 300.0]
    assert len([one for one in said if "failure" in one]) == 4
    one_pass = PushPolicy(to="otlp", url=peer.url)
    run_on(written.node_dir, tmp_path / "profiles.json", one_pass, said.append, is_over)
    assert len(waited) == 4, "without a time it is one pass"
