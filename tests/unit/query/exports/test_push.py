"""What a peer gets. Pyroscope, Parca and a collector are no packages that a test could install, so a stand-in HTTP
server takes the requests; what it gets is decoded by others: OpenTelemetry's package, protobuf's runtime, `go tool
pprof`."""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from google.protobuf import (  # type: ignore[import-untyped]  # protobuf ships no types
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2
from tests.conftest import Needs
from tests.helpers import truth
from tests.helpers.stand_in import StandIn, running
from tests.unit.query.exports.test_otlp import Reader
from tests.unit.query.exports.test_pprof import raw

from zombiescope.query.exports.peer import Peer, PushError
from zombiescope.query.exports.push import Sent, Target, push
from zombiescope.query.selection import Filters
from zombiescope.store.reader import Recording

TEN_S = 10_000_000
GRPC_OK = b"\0\0\0\0\0" + b"\x80\0\0\0\x0f" + b"grpc-status: 0\r"


@pytest.fixture
def peer() -> Iterator[StandIn]:
    with running() as stand_in:
        yield stand_in


def pushed(
    recording: Recording, target: Target, url: str, every_us: int | None = None, waits: list[float] | None = None
) -> list[Sent]:
    waited: list[float] = [] if waits is None else waits
    to = Peer(url, {"X-Scope-OrgID": "team"}, 5.0, wait=waited.append)
    labels = {"node": "lab", "zone": "us-east-1a", "bad key": "a,b}c"}
    samples = truth.samples(recording, Filters(every_event=target == "otlp"))
    return list(push(samples, target, to, "training", labels, every_us))


def counted(profiles: list[bytes], place: Path, needs: Needs) -> Counter[tuple[str, ...]]:
    total: Counter[tuple[str, ...]] = Counter()
    for profile in profiles:
        for sample in raw(profile, place, needs).samples:
            total[sample.names] += sample.values[0]
    return total


# --- what arrives ----------------------------------------------------------------------------------------------------


def test_pyroscope_gets_every_sample_in_spans_of_ten_seconds(
    recording: Recording, peer: StandIn, tmp_path: Path, needs: Needs
) -> None:
    """By push.v1; Parca's request has the same messages a level deeper."""
    sent = pushed(recording, "pyroscope", peer.url)
    of = message_of("push", PUSHED)
    profiles = []
    for asked in peer.asked:
        assert asked.path == "/push.v1.PusherService/Push"
        assert asked.headers["content-type"] == "application/proto"
        (series,) = of.FromString(asked.body).series
        labels = {label.name: label.value for label in series.labels}
        assert labels == {"__name__": "process_cpu", "service_name": "training", "node": "lab", "zone": "us-east-1a",
                          "bad_key": "a,b}c"}  # fmt: skip
        profiles += [sample.raw_profile for sample in series.samples]
    assert counted(profiles, tmp_path, needs) == truth.by_stack(truth.rows(recording))
    assert {each.headers["x-scope-orgid"] for each in peer.asked} == {"team"}
    assert sum(each.samples for each in sent) == len(truth.rows(recording))
    assert sum(each.bytes for each in sent) == sum(len(each.body) for each in peer.asked)


def test_an_old_pyroscope_is_asked_as_it_knows_it(
    recording: Recording, peer: StandIn, tmp_path: Path, needs: Needs
) -> None:
    pushed(recording, "pyroscope", f"{peer.url}/ingest")
    assert counted([asked.body for asked in peer.asked], tmp_path, needs) == truth.by_stack(truth.rows(recording))
    asked = [parse_qs(urlsplit(asked.path).query) for asked in peer.asked]
    assert {urlsplit(each.path).path for each in peer.asked} == {"/ingest"}
    starts = [int(each["from"][0]) for each in asked]
    assert starts == list(range(1_760_000_000, 1_760_000_040, 10))
    assert [int(each["until"][0]) for each in asked] == [start + 10 for start in starts]
    assert {each["name"][0] for each in asked} == {"training{node=lab,zone=us-east-1a,bad_key=a_b_c}"}
    assert {(each["format"][0], each["sampleRate"][0]) for each in asked} == {("pprof", "99")}


def test_a_request_of_otlp_is_split_below_the_limit_of_its_peers(
    recording: Recording, peer: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = pushed(recording, "otlp", peer.url)
    before = len(peer.asked)
    monkeypatch.setattr("zombiescope.query.exports.push.MOST_BYTES", 6000)
    split = pushed(recording, "otlp", peer.url)
    parts = peer.asked[before:]
    assert len(parts) > before
    assert [(each.samples, each.start_us, each.end_us) for each in split] == [
        (each.samples, each.start_us, each.end_us) for each in whole
    ]
    requests = [
        profiles_service_pb2.ExportProfilesServiceRequest.FromString(gzip.decompress(one.body)) for one in parts
    ]
    times = [
        at
        for request in requests
        for resource in request.resource_profiles
        for scope in resource.scope_profiles
        for profile in scope.profiles
        for sample in profile.samples
        for at in sample.timestamps_unix_nano
    ]
    assert len(times) == len(truth.rows(recording))


_TEXT, _BLOB, _NESTED = (
    descriptor_pb2.FieldDescriptorProto.TYPE_STRING,
    descriptor_pb2.FieldDescriptorProto.TYPE_BYTES,
    descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
)
Shapes = dict[str, list[tuple[str, int, int, str, bool]]]
WRITTEN: Shapes = {
    "Label": [("name", 1, _TEXT, "", False), ("value", 2, _TEXT, "", False)],
    "LabelSet": [("labels", 1, _NESTED, "Label", True)],
    "RawSample": [("raw_profile", 1, _BLOB, "", False)],
    "RawProfileSeries": [("labels", 1, _NESTED, "LabelSet", False), ("samples", 2, _NESTED, "RawSample", True)],
    "WriteRawRequest": [("tenant", 1, _TEXT, "", False), ("series", 2, _NESTED, "RawProfileSeries", True)],
}
"""parca.profilestore.v1alpha1, by the field numbers that Parca publishes."""
PUSHED: Shapes = {
    "LabelPair": [("name", 1, _TEXT, "", False), ("value", 2, _TEXT, "", False)],
    "RawSample": [("raw_profile", 1, _BLOB, "", False), ("ID", 2, _TEXT, "", False)],
    "RawProfileSeries": [("labels", 1, _NESTED, "LabelPair", True), ("samples", 2, _NESTED, "RawSample", True)],
    "PushRequest": [("series", 1, _NESTED, "RawProfileSeries", True)],
}
"""push.v1, by the field numbers that Pyroscope publishes."""


def message_of(package: str, shapes: Shapes) -> Any:
    """The last of these messages."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, fields in shapes.items():
        message = file.message_type.add(name=name)
        for key, number, kind, of, repeated in fields:
            named = f".{package}.{of}" if of else None
            message.field.add(name=key, number=number, type=kind, label=3 if repeated else 1, type_name=named)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{next(reversed(shapes))}"))


def test_parca_gets_write_raw_as_grpc_web(recording: Recording, peer: StandIn, tmp_path: Path, needs: Needs) -> None:
    peer.answers = [(200, {"Content-Type": "application/grpc-web+proto"}, GRPC_OK)]
    pushed(recording, "parca", peer.url)
    request_of = message_of("parca", WRITTEN)
    profiles = []
    for asked in peer.asked:
        assert asked.path == "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
        assert asked.headers["content-type"] == "application/grpc-web+proto"
        assert (asked.body[0], int.from_bytes(asked.body[1:5], "big")) == (0, len(asked.body) - 5)
        (series,) = request_of.FromString(asked.body[5:]).series
        labels = {label.name: label.value for label in series.labels.labels}
        assert labels == {"__name__": "parca_agent", "job": "training", "node": "lab", "zone": "us-east-1a",
                          "bad_key": "a,b}c"}  # fmt: skip
        profiles += [sample.raw_profile for sample in series.samples]
    assert len(profiles) == 4
    assert counted(profiles, tmp_path, needs) == truth.by_stack(truth.rows(recording))


def test_parca_gets_json_where_the_address_is_the_gateways(
    recording: Recording, peer: StandIn, tmp_path: Path, needs: Needs
) -> None:
    pushed(recording, "parca", f"{peer.url}/api/profiles/writeraw", every_us=40 * TEN_S)
    (asked,) = peer.asked
    assert asked.path == "/api/profiles/writeraw"
    (series,) = json.loads(asked.body)["series"]
    assert {"name": "node", "value": "lab"} in series["labels"]["labels"]
    profile = base64.b64decode(series["samples"][0]["rawProfile"])
    assert counted([profile], tmp_path, needs) == truth.by_stack(truth.rows(recording))


def test_otlp_gets_every_sample_with_its_time(odd: Recording, peer: StandIn) -> None:
    pushed(odd, "otlp", peer.url, every_us=1_000_000)
    found: Counter[object] = Counter()
    for asked in peer.asked:
        assert asked.path == "/v1development/profiles"
        assert (asked.headers["content-type"], asked.headers["content-encoding"]) == ("application/x-protobuf", "gzip")
        request = profiles_service_pb2.ExportProfilesServiceRequest.FromString(gzip.decompress(asked.body))
        resource = {pair.key: pair.value.string_value for pair in request.resource_profiles[0].resource.attributes}
        assert (resource["service.name"], resource["zone"]) == ("training", "us-east-1a")
        reader = Reader(request)
        for sample in (sample for profile in reader.profiles() for sample in profile.samples):
            for time_ns in sample.timestamps_unix_nano:
                found[time_ns // 1000, tuple(name for name, _ in reader.stack(sample.stack_index))] += 1
    assert len(peer.asked) == 2
    assert found == Counter((row.time_us, row.names) for row in truth.rows(odd))


def test_nothing_selected_is_nothing_sent(recording: Recording, peer: StandIn) -> None:
    to = Peer(peer.url, {}, 5.0)
    assert list(push(truth.samples(recording, Filters(comms=("nobody",))), "otlp", to, "x", {})) == []
    assert peer.asked == []


# --- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_peer_that_is_busy_is_asked_again(odd: Recording, peer: StandIn) -> None:
    peer.answers = [(429, {"Retry-After": "7"}, b""), (503, {}, b"wait"), (200, {}, b"")]
    waits: list[float] = []
    assert len(pushed(odd, "otlp", peer.url, waits=waits)) == 1
    assert waits == [7.0, 2.0]
    assert len({asked.body for asked in peer.asked}) == 1


@pytest.mark.parametrize(
    ("answer", "said", "asked"),
    [
        ((401, {}, b"no\x1b\n credentials"), "answers 401 Unauthorized: no credentials; give --token-file", 1),
        ((404, {}, b""), "answers 404 Not Found; is this the right address", 1),
        ((413, {}, b""), "smaller --every", 1),
        ((400, {}, b"x" * 5000), f"answers 400 Bad Request: {'x' * 200}...", 1),
        ((302, {"Location": "https://elsewhere/"}, b""), "it redirects to https://elsewhere/: push there", 1),
        ((503, {"Retry-After": "9999"}, b"full"), "answers 503 Service Unavailable: full", 3),
    ],
)
def test_a_refusal_is_one_line(
    odd: Recording, peer: StandIn, answer: tuple[int, dict[str, str], bytes], said: str, asked: int
) -> None:
    peer.answers = [answer]
    waits: list[float] = []
    with pytest.raises(PushError) as refused:
        pushed(odd, "pyroscope", peer.url, waits=waits)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(peer.asked) == asked
    assert all(wait <= 30 for wait in waits)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "is it Parca"),
        (b"<html>hello</html>", "is it Parca"),
        (b"\x80\0\0\0\x2dgrpc-status: 3\r\ngrpc-message: no%20name label", "gRPC status 3: no name label"),
    ],
)
def test_parca_says_in_trailers_what_it_did(odd: Recording, peer: StandIn, body: bytes, said: str) -> None:
    peer.answers = [(200, {}, body)]
    with pytest.raises(PushError, match=said):
        pushed(odd, "parca", peer.url)


def test_otlp_may_say_200_and_reject(odd: Recording, peer: StandIn) -> None:
    partial = profiles_service_pb2.ExportProfilesPartialSuccess(rejected_profiles=1, error_message="not\ntoday")
    answer = profiles_service_pb2.ExportProfilesServiceResponse(partial_success=partial)
    peer.answers = [(200, {}, answer.SerializeToString())]
    with pytest.raises(PushError, match="rejected 1 profiles: not today"):
        pushed(odd, "otlp", peer.url)
    warning = profiles_service_pb2.ExportProfilesPartialSuccess(error_message="an old version")
    answer = profiles_service_pb2.ExportProfilesServiceResponse(partial_success=warning)
    peer.answers = [(200, {}, answer.SerializeToString())]
    assert len(pushed(odd, "otlp", peer.url)) == 1


def test_a_dead_peer_is_tried_three_times(odd: Recording) -> None:
    waits: list[float] = []
    with pytest.raises(PushError, match=r"http://127\.0\.0\.1:1 cannot be reached: Connection refused; is it running"):
        pushed(odd, "otlp", "http://127.0.0.1:1", waits=waits)
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize("url", ["ftp://x", "pyroscope:4040", "http://", "file:///etc/passwd"])
def test_only_addresses_of_http_are_asked(url: str) -> None:
    with pytest.raises(PushError, match="write http://host:port"):
        Peer(url, {}, 5.0)


@pytest.mark.parametrize("header", ["Authorization", "cookie", "X-API-Key"])
@pytest.mark.parametrize("url", ["http://pyroscope:4040", "http://10.0.0.7:4040", "http://[2001:db8::1]:4040"])
def test_a_token_is_not_sent_where_everybody_on_the_way_reads_it(url: str, header: str) -> None:
    with pytest.raises(PushError, match=r"is plain HTTP.*write https://, or give --plain-http"):
        Peer(url, {header: "geheim"}, 5.0)
    Peer(url, {header: "geheim"}, 5.0, plain=True)
    Peer(url, {"X-Scope-OrgID": "team"}, 5.0)
    Peer(url.replace("http://", "https://"), {header: "geheim"}, 5.0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:4040", "http://localhost:4040", "http://[::1]:4040"])
def test_a_token_may_go_to_this_machine_as_it_is(url: str) -> None:
    Peer(url, {"Authorization": "Bearer geheim"}, 5.0)
