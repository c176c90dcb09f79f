"""Pyroscope's query API over a real socket: the numbers are those of the commands, in protobuf and in JSON."""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import (  # type: ignore[import-untyped]  # protobuf ships no types
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from tests.helpers.page_server import PageServer, page_server
from tests.helpers.recordings import Written, write_recording

from zombiescope.web import pyroscope, wire
from zombiescope.web.pyroscope import COUNT, CPU

SERVICE = "/querier.v1.QuerierService/"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return write_recording(tmp_path_factory.mktemp("grafana") / "rec")


@pytest.fixture(scope="module")
def shown(written: Written, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    home = tmp_path_factory.mktemp("home")
    with page_server(str(written.node_dir.parent), home=home) as server:
        yield server


def call(
    shown: PageServer, method: str, body: bytes, kind: str = "application/json", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(shown.address, shown.port, timeout=60)
    sent = {"Authorization": f"Bearer {shown.token}", "Content-Type": kind, **headers}
    connection.request("POST", SERVICE + method, body, {name: value for name, value in sent.items() if value})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def ask(shown: PageServer, method: str, **asked: Any) -> dict[str, Any]:
    status, body = call(shown, method, json.dumps(asked).encode())
    assert status == 200, body
    found: dict[str, Any] = json.loads(body)
    return found


def window(shown: PageServer) -> dict[str, int]:
    info = shown.api("info").document
    return {"start": int(info["from"] * 1000), "end": int(info["to"] * 1000) + 1}


def tree(flamegraph: dict[str, Any]) -> dict[tuple[str, ...], tuple[int, int]]:
    """Path -> (total, self), from the levels; a node is below the one whose span it begins in."""
    names = flamegraph["names"]
    above: list[tuple[tuple[str, ...], int, int]] = [((), 0, 1 << 62)]
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for level in flamegraph["levels"]:
        values, at = [int(value) for value in level["values"]], 0
        row: list[tuple[tuple[str, ...], int, int]] = []
        for offset, total, own, name in zip(*(values[place::4] for place in range(4)), strict=True):
            at += offset
            path = next(path for path, begin, end in above if begin <= at and at + total <= end)
            row.append(((*path, names[name]), at, at + total))
            found[*path, names[name]] = (total, own)
            at += total
        above = row
    return found


def test_types_labels_and_values(shown: PageServer) -> None:
    assert [one["ID"] for one in ask(shown, "ProfileTypes")["profileTypes"]] == [CPU, COUNT]
    assert {"node", "cpu", "comm", "unit", "pod", "service_name"} <= set(ask(shown, "LabelNames")["names"])
    assert "kubelet" in ask(shown, "LabelValues", name="comm", **window(shown))["names"]
    assert ask(shown, "LabelValues", name="nothing", **window(shown))["names"] == []
    cores = ask(shown, "LabelValues", name="cpu", **window(shown))["names"]
    assert cores == sorted(cores, key=int)
    series = ask(shown, "Series", labelNames=["node", "comm"], **window(shown))["labelsSet"]
    assert {pair["value"] for row in series for pair in row["labels"] if pair["name"] == "comm"} >= {
        "kubelet",
        "raylet",
    }


def test_the_flame_graph_is_that_of_the_command(shown: PageServer) -> None:
    found = ask(
        shown, "SelectMergeStacktraces", profileTypeID=COUNT, labelSelector="{}", maxNodes=60_000, **window(shown)
    )
    nodes = tree(found["flamegraph"])
    ran = shown.api("who").document
    assert nodes["total",][0] == ran["total"]
    assert int(found["flamegraph"]["total"]) == ran["total"]
    assert sum(own for _, own in nodes.values()) == ran["total"]
    cpu = ask(shown, "SelectMergeStacktraces", profileTypeID=CPU, labelSelector="{}", **window(shown))
    assert int(cpu["flamegraph"]["total"]) == pytest.approx(ran["total"] * 1e9 / 99, rel=1e-6)


@pytest.mark.parametrize(
    ("selector", "asked"),
    [
        ('{comm="kubelet"}', {"comm": "kubelet"}),
        ('{comm=~"kube.*"}', {"comm": "kubelet"}),
        ('{comm=~"kubelet|raylet"}', {"comm": ["kubelet", "raylet"]}),
        ('{cpu="1"}', {"cpu": "1"}),
        ('{cpu=~"[01]",comm="kubelet"}', {"cpu": "0-1", "comm": "kubelet"}),
        ('comm="kubelet", __profile_type__="x"', {"comm": "kubelet"}),
    ],
)
def test_a_selector_leaves_what_the_filters_leave(shown: PageServer, selector: str, asked: dict[str, Any]) -> None:
    found = ask(shown, "SelectMergeStacktraces", profileTypeID=COUNT, labelSelector=selector, **window(shown))
    assert int(found["flamegraph"]["total"]) == shown.api("who", **asked).document["total"] > 0


def test_what_a_selector_excludes_is_the_rest(shown: PageServer) -> None:
    def total(selector: str) -> int:
        found = ask(shown, "SelectMergeStacktraces", profileTypeID=COUNT, labelSelector=selector, **window(shown))
        return int(found["flamegraph"]["total"])

    assert total('{comm="kubelet"}') + total('{comm!="kubelet"}') == total("{}")
    assert total('{comm=~"k.*"}') + total('{comm!~"k.*"}') == total("{}")
    assert total('{node="another"}') == total('{cpu="99999"}') == total('{team="ml"}') == 0
    assert total('{team=""}') == total("{}")


@pytest.mark.parametrize("step", [0.02, 1.0, 15.0])
def test_series_add_up_to_the_flame_graph(shown: PageServer, step: float) -> None:
    when = window(shown)
    when["start"] = max(when["start"], when["end"] - int(step * 2_000_000))
    flames = ask(shown, "SelectMergeStacktraces", profileTypeID=COUNT, labelSelector="{}", **when)
    for by in ([], ["comm"], ["cpu"], ["comm", "cpu"], ["node"]):
        series = ask(shown, "SelectSeries", profileTypeID=COUNT, labelSelector="{}", groupBy=by, step=step, **when)[
            "series"
        ]
        total = sum(point["value"] for one in series for point in one["points"])
        assert round(total) == int(flames["flamegraph"]["total"])
        assert all([pair["name"] for pair in one["labels"]] == by for one in series)
        times = [int(point["timestamp"]) for one in series for point in one["points"]]
        assert min(times) >= when["start"]
        assert max(times) < when["end"]


def test_a_difference_has_both_sides(shown: PageServer) -> None:
    when = window(shown)
    middle = (when["start"] + when["end"]) // 2
    left = {"profileTypeID": COUNT, "labelSelector": "{}", "start": when["start"], "end": middle}
    right = {**left, "start": middle, "end": when["end"]}
    found = ask(shown, "Diff", left=left, right=right)["flamegraph"]
    for side, asked in (("leftTicks", left), ("rightTicks", right)):
        assert found[side] == ask(shown, "SelectMergeStacktraces", **asked)["flamegraph"]["total"]
    assert all(len(level["values"]) % 7 == 0 for level in found["levels"])


def message_of(shape: wire.Shape) -> Any:
    """The message class by the numbers of the protocol definition, as Google's library makes it."""
    file = descriptor_pb2.FileDescriptorProto(name="querier.proto", package="q", syntax="proto3")
    kinds = {"string": 9, "int": 3, "double": 1}

    def add(name: str, fields: wire.Shape) -> None:
        made = file.message_type.add(name=name)
        for key, one in fields.items():
            nested = not isinstance(one.kind, str)
            made.field.add(
                name=key, number=one.number, label=3 if one.repeated else 1,
                type=11 if nested else kinds[str(one.kind)], type_name=f".q.{name}{key}" if nested else None,
            )  # fmt: skip
            if not isinstance(one.kind, str):
                add(f"{name}{key}", one.kind)

    add("M", shape)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("q.M"))


@pytest.mark.parametrize(
    "method", ["ProfileTypes", "LabelValues", "Series", "SelectMergeStacktraces", "SelectSeries", "Diff"]
)
def test_protobuf_says_the_same_as_json(shown: PageServer, method: str) -> None:
    when = window(shown)
    select = {"profile_typeID": CPU, "label_selector": '{comm=~"k.*"}', **when}
    requests: dict[str, dict[str, Any]] = {
        "ProfileTypes": when, "LabelValues": {"name": "comm", **when}, "Series": {"label_names": ["comm"], **when},
        "SelectMergeStacktraces": {**select, "max_nodes": 50},
        "SelectSeries": {**select, "group_by": ["cpu"], "step": 15.0}, "Diff": {"left": select, "right": select},
    }  # fmt: skip
    asked = requests[method]
    known = pyroscope.METHODS[method]
    assert known.response is not None
    request = message_of(known.request)(**asked)
    status, body = call(shown, method, request.SerializeToString(), "application/proto")
    assert status == 200
    answered = message_of(known.response).FromString(body)
    status, text = call(shown, method, json.dumps(asked).encode())
    assert status == 200
    assert wire.encoded(known.response, wire.from_json(known.response, text)) == body
    assert len(answered.ListFields()) == 1, "Google's library reads what is there"


def test_field_numbers_are_those_of_the_protocol() -> None:
    """From querier.proto and types.proto of grafana/pyroscope, read in November 2026."""
    numbers = {
        method: {name: one.number for name, one in known.request.items()} for method, known in pyroscope.METHODS.items()
    }
    assert numbers["SelectSeries"] == {
        "profile_typeID": 1, "label_selector": 2, "start": 3, "end": 4, "group_by": 5, "step": 6, "limit": 9,
    }  # fmt: skip
    assert numbers["Series"] == {"matchers": 1, "label_names": 2, "start": 3, "end": 4}
    assert numbers["LabelValues"] == {"name": 1, "matchers": 2, "start": 3, "end": 4}
    assert numbers["LabelNames"] == {"matchers": 1, "start": 2, "end": 3}


def test_a_pprof_profile_of_a_core(shown: PageServer) -> None:
    body = json.dumps({"profile_typeID": CPU, "label_selector": '{cpu="3"}', **window(shown)})
    asked = message_of(pyroscope.METHODS["SelectMergeProfile"].request)(**json.loads(body))
    status, profile = call(shown, "SelectMergeProfile", asked.SerializeToString(), "application/proto")
    assert status == 200
    assert profile[:1] == b"\x0a", "a message, not gzip"


@pytest.mark.parametrize(
    ("method", "body", "kind", "status"),
    [
        ("SelectHeatmap", b"{}", "application/json", 501),
        ("ProfileTypes", b"{", "application/json", 400),
        ("ProfileTypes", b"[]", "application/json", 400),
        ("ProfileTypes", b'{"start": {}}', "application/json", 400),
        ("ProfileTypes", b"<x/>", "text/xml", 415),
        ("LabelValues", b"{" + b" " * 70_000 + b"}", "application/json", 413),
        ("SelectMergeStacktraces", b'{"labelSelector": "{comm=kubelet}"}', "application/json", 400),
        ("SelectMergeStacktraces", b'{"labelSelector": "{comm=~\\"(\\"}"}', "application/json", 400),
        ("SelectMergeStacktraces", b'{"profileTypeID": "memory:x:y:z:a"}', "application/json", 400),
        ("SelectMergeStacktraces", b'{"start": 5, "end": 4}', "application/json", 400),
        ("SelectSeries", b'{"step": 0}', "application/json", 400),
        ("SelectSeries", b'{"step": 1, "start": 0, "end": 9000000000000}', "application/json", 400),
        ("SelectSeries", b'{"step": "nan", "start": 1, "end": 2}', "application/json", 400),
        ("SelectSeries", b"\x31" + struct.pack("<d", float("inf")), "application/proto", 400),
        ("SelectSeries", b"\xff\xff\xff", "application/proto", 400),
    ],
)
def test_what_cannot_be_asked_is_one_line(shown: PageServer, method: str, body: bytes, kind: str, status: int) -> None:
    found, answer = call(shown, method, body, kind)
    assert (found, set(json.loads(answer))) == (status, {"code", "message"})


def test_nobody_asks_without_the_token(shown: PageServer) -> None:
    assert call(shown, "ProfileTypes", b"{}", Authorization="")[0] == 401
    assert call(shown, "ProfileTypes", b"{}", Authorization="Bearer wrong")[0] == 401
    assert call(shown, "ProfileTypes", b"{}", Origin="http://evil.example")[0] == 403


def test_a_packed_request_is_unpacked_within_bounds(shown: PageServer, tmp_path: Path) -> None:
    import gzip

    headers = {"Content-Encoding": "gzip"}
    assert call(shown, "ProfileTypes", gzip.compress(b"{}"), **headers)[0] == 200
    assert call(shown, "ProfileTypes", gzip.compress(b" " * 10_000_000), **headers)[0] == 400
    assert call(shown, "ProfileTypes", b"no gzip", **headers)[0] == 400
