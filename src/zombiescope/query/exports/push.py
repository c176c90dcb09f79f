"""Sends samples to a store of profiles, one request for each span of time.

    pyroscope   Push of push.v1.PusherService, as Alloy and the SDKs: pprof in a message. One that ends in /ingest gets
                POST URL/ingest?name=NAME{labels}&from=&until=&format=pprof instead, as before Pyroscope 1.0
    parca       WriteRaw of parca.profilestore.v1alpha1.ProfileStoreService     pprof in a message, as gRPC-Web: Parca's
                server serves its gRPC methods over plain HTTP that way. An address that ends in /profiles/writeraw gets
                the JSON of grpc-gateway instead.
    otlp        POST URL/v1development/profiles                                 ExportProfilesServiceRequest, gzipped;
                a request has at most MOST_BYTES before that

Pyroscope and Parca know the time of a profile only: the shorter the span, the more of the time is kept. OTLP keeps the
time of every sample.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal
from urllib.parse import unquote, urlencode, urlsplit

import numpy as np

from zombiescope.base.http_client import Answer
from zombiescope.query.exports import otlp, pprof
from zombiescope.query.exports.peer import Peer, PushError
from zombiescope.query.exports.protobuf import fields, message, text
from zombiescope.query.exports.samples import ExportSamples, SampleBatch

Target = Literal["pyroscope", "parca", "otlp"]
EVERY_US: dict[Target, int] = {"pyroscope": 10_000_000, "parca": 10_000_000, "otlp": 60_000_000}
WRITE_RAW = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
GATEWAY = "/profiles/writeraw"
PUSH = "/push.v1.PusherService/Push"
INGEST = "/ingest"
MOST_BYTES = 4 << 20
"""Of one OTLP request, uncompressed: what a gRPC server behind the collector takes by default."""
OTLP_PATH = "/v1development/profiles"

_LABEL_NAME = re.compile(r"[^a-zA-Z0-9_]")
_LABEL_VALUE = re.compile(r'[{},="\s]+')
_TRAILERS = 0x80


@dataclass(frozen=True, slots=True)
class Sent:
    """One request that the peer accepted."""

    samples: int
    bytes: int
    start_us: int
    end_us: int


def push(
    samples: ExportSamples,
    target: Target,
    peer: Peer,
    name: str,
    labels: Mapping[str, str],
    every_us: int | None = None,
) -> Iterator[Sent]:
    """Sends span after span and yields each. Raises PushError at the first that is not accepted."""
    send = _TARGETS[target]
    for window in slices(samples, every_us or EVERY_US[target]):
        size = send(samples, window, peer, name, labels)
        yield Sent(int(samples.weights(window.rows).sum()), size, window.start_us, window.end_us)


def _pyroscope(samples: ExportSamples, window: TimeSlice, peer: Peer, name: str, labels: Mapping[str, str]) -> int:
    profile = pprof.profile(samples, [window.rows], window.start_us, window.end_us, pprof.BOUNDED)
    if peer.url.endswith(INGEST):
        return _ingest(samples, window, peer, name, labels, profile)
    named = {"__name__": "process_cpu", "service_name": name, **_named(labels)}
    pairs = b"".join(message(1, text(1, key) + text(2, value)) for key, value in named.items())
    body = message(1, pairs + message(2, message(1, profile)))
    peer.post(peer.url.removesuffix(PUSH) + PUSH, body, _headers("application/proto"))
    return len(body)


def _ingest(
    samples: ExportSamples, window: TimeSlice, peer: Peer, name: str, labels: Mapping[str, str], body: bytes
) -> int:
    hz = samples.node.get("hz")
    asked = {
        "name": f"{_clean(name)}{{{','.join(f'{key}={_clean(value)}' for key, value in _named(labels).items())}}}",
        "from": window.start_us // 1_000_000,
        "until": -(-window.end_us // 1_000_000),
        "format": "pprof",
        "spyName": "zombiescope",
        **({"sampleRate": round(hz)} if isinstance(hz, int | float) and hz > 0 else {}),
    }
    peer.post(f"{peer.url}?{urlencode(asked)}", body, _headers("binary/octet-stream"))
    return len(body)


def _parca(samples: ExportSamples, window: TimeSlice, peer: Peer, name: str, labels: Mapping[str, str]) -> int:
    profile = pprof.profile(samples, [window.rows], window.start_us, window.end_us)
    # Parca tells kinds of profiles apart by __name__; this is its own agent's, so both are shown together.
    named = {"__name__": "parca_agent", "job": name, **_named(labels)}
    if urlsplit(peer.url).path.endswith(GATEWAY):
        series = {
            "labels": {"labels": [{"name": key, "value": value} for key, value in named.items()]},
            "samples": [{"rawProfile": base64.b64encode(profile).decode()}],
        }
        body = json.dumps({"series": [series]}).encode()
        peer.post(peer.url, body, _headers("application/json"))
        return len(body)
    pairs = b"".join(message(1, text(1, key) + text(2, value)) for key, value in named.items())
    request = message(2, message(1, pairs) + message(2, message(1, profile)))
    body = b"\0" + len(request).to_bytes(4, "big") + request
    asked = {**_headers("application/grpc-web+proto"), "Accept": "application/grpc-web+proto", "X-Grpc-Web": "1"}
    _check_grpc(peer, peer.post(peer.url.removesuffix(WRITE_RAW) + WRITE_RAW, body, asked))
    return len(body)


def _check_grpc(peer: Peer, answer: Answer) -> None:
    """gRPC says in trailers whether it worked, whatever HTTP said; gRPC-Web has them at the end of the body."""
    trailers = {key.lower(): value for key, value in answer.headers.items()} | _trailers(answer.body)
    status = trailers.get("grpc-status")
    if status is None:
        raise PushError(f"{peer.url} does not answer as a gRPC server does", "is it Parca?")
    if status.strip() != "0":
        said = " ".join(unquote(trailers.get("grpc-message", "")).split())
        raise PushError(f"{peer.url} refuses the profile: gRPC status {status.strip()}" + (f": {said}" if said else ""))


def _trailers(body: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at + 5 <= len(body):
        size = int.from_bytes(body[at + 1 : at + 5], "big")
        if body[at] & _TRAILERS:
            for line in body[at + 5 : at + 5 + size].decode("latin-1").split("\r\n"):
                key, colon, value = line.partition(":")
                if colon:
                    found[key.strip().lower()] = value.strip()
        at += 5 + size
    return found


def _otlp(samples: ExportSamples, window: TimeSlice, peer: Peer, name: str, labels: Mapping[str, str]) -> int:
    pieces = otlp.pieces(samples, [window.rows], window.start_us, window.end_us, name, tuple(labels.items()))
    request = b"".join(pieces)
    if len(request) > MOST_BYTES and len(window.rows) > 1:
        return sum(_otlp(samples, half, peer, name, labels) for half in _halves(window))
    body = gzip.compress(request, pprof.GZIP_LEVEL, mtime=0)
    asked = {**_headers("application/x-protobuf"), "Content-Encoding": "gzip"}
    answer = peer.post(peer.url.removesuffix(OTLP_PATH) + OTLP_PATH, body, asked)
    _check_partial(peer, answer.body)
    return len(body)


def _halves(window: TimeSlice) -> Iterator[TimeSlice]:
    """In the order of time, each with half of the samples."""
    middle = len(window.rows) // 2
    border_us = int(window.rows.time_us[middle])
    yield TimeSlice(window.start_us, border_us, window.rows.cut(slice(None, middle)))
    yield TimeSlice(border_us, window.end_us, window.rows.cut(slice(middle, None)))


def _check_partial(peer: Peer, body: bytes) -> None:
    """An OTLP peer may answer 200 and yet reject: ExportProfilesPartialSuccess says how many profiles, and why."""
    for field, partial in fields(body):
        if field == 1 and isinstance(partial, bytes):
            said = dict(fields(partial))
            if said.get(1):
                why = said.get(2, b"")
                reason = " ".join(why.decode("utf-8", "replace").split()) if isinstance(why, bytes) else ""
                raise PushError(f"{peer.url} rejected {said[1]!r} profiles" + (f": {reason}" if reason else ""))


def _headers(content: str) -> dict[str, str]:
    return {"Content-Type": content, "User-Agent": f"zombiescope/{version('zombiescope')}"}


def _named(labels: Mapping[str, str]) -> dict[str, str]:
    """Labels under names that Prometheus allows."""
    return {_LABEL_NAME.sub("_", key): value for key, value in labels.items() if value}


def _clean(value: str) -> str:
    """Without what ends a value in Pyroscope's name{key=value,...}."""
    return _LABEL_VALUE.sub("_", value)


_TARGETS: dict[Target, Callable[[ExportSamples, TimeSlice, Peer, str, Mapping[str, str]], int]] = {
    "pyroscope": _pyroscope,
    "parca": _parca,
    "otlp": _otlp,
}


# --- time slices ------------------------------------------------------------------------------------------------------
# Samples cut into equal spans of time, for a peer that takes one profile after the other.
#
# Parts come in the order of their start and may overlap: a span is handed out when a part begins after its end.


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The samples of [start_us, end_us), in the order of time within a part."""

    start_us: int
    end_us: int
    rows: SampleBatch


def slices(samples: ExportSamples, every_us: int) -> Iterator[TimeSlice]:
    """Every span that has samples, oldest first; spans begin at multiples of their length."""
    waiting: SampleBatch | None = None
    for batch in samples.batches():
        if not len(batch):
            continue
        if waiting is not None:
            begun = int(batch.time_us[0]) // every_us * every_us
            done = waiting.time_us < begun
            yield from _cut(waiting.cut(done), every_us)
            waiting = waiting.cut(~done).joined(batch)
        else:
            waiting = batch
    if waiting is not None:
        yield from _cut(waiting, every_us)


def _cut(rows: SampleBatch, every_us: int) -> Iterator[TimeSlice]:
    number = rows.time_us // every_us
    order = np.argsort(number, kind="stable")
    numbers, firsts = np.unique(number[order], return_index=True)
    bounds = [*firsts.tolist(), len(order)]
    for position, each in enumerate(numbers.tolist()):
        chosen = order[bounds[position] : bounds[position + 1]]
        yield TimeSlice(each * every_us, (each + 1) * every_us, rows.cut(chosen))
