"""What services tell the recorder: only from its own user, only in one shape, bounded; pods name containers."""

from __future__ import annotations

import json
import socket
import stat
from pathlib import Path
from typing import Any

import pytest

from zombiescope.base import feed as _feed
from zombiescope.base.feed import Feed
from zombiescope.node.containers.description import Description
from zombiescope.recorder import feed as module
from zombiescope.recorder.containers import ContainerTracker
from zombiescope.recorder.feed import Fed, FedContainer, FedLabels, FedPod, FeedSocket, parse
from zombiescope.store import schema
from zombiescope.store.event import Event

NOW = 1_800_000_000_000_000
UID = "0a1b2c3d-0000-4000-8000-000000000001"
ID = "c" * 64
EVENT = {"at_us": NOW - 5, "kind": "pod_evicted", "source": "kubernetes", "severity": "warning", "text": "gone"}
POD = {"uid": UID, "namespace": "ml", "name": "web-1", "owner": "Deployment/web", "containers": [{"id": ID}]}


def taken(door: FeedSocket) -> list[Fed]:
    return list(door.read(NOW))


@pytest.fixture
def door(tmp_path: Path) -> Any:
    made = FeedSocket(tmp_path / _feed.SOCKET)
    yield made
    made.close()


def test_events_and_pods_arrive(door: FeedSocket) -> None:
    feed = Feed([str(door.path.parent)])
    feed.event(EVENT)
    feed.pod(POD)
    assert feed.flush()
    event, pod = taken(door)
    assert event == Event(NOW - 5, "pod_evicted", "kubernetes", "warning", "gone", {})
    assert pod == FedPod(UID, "ml", "web-1", "Deployment/web", (FedContainer(ID, None, None, None),))


def test_only_its_own_user_can_open_it(door: FeedSocket) -> None:
    assert stat.S_IMODE(door.path.stat().st_mode) == 0o600


def test_without_a_recorder_it_is_kept_and_sent_later(tmp_path: Path) -> None:
    feed = Feed([str(tmp_path)])
    feed.event(EVENT)
    assert not feed.flush()
    assert feed.waiting == 1
    door = FeedSocket(tmp_path / _feed.SOCKET)
    assert feed.flush()
    assert len(taken(door)) == 1
    assert feed.waiting == 0
    door.close()


def test_a_node_of_five_hundred_pods_fits_into_few_datagrams(door: FeedSocket) -> None:
    feed = Feed([str(door.path.parent)])
    long = {"id": ID, "name": "n" * 200, "image": "i" * 300, "restarts": 3}
    for number in range(500):
        feed.pod({**POD, "uid": f"u{number}", "containers": [long, long]})
    seen = set()
    for _ in range(20):
        feed.flush()
        seen |= {one.uid for one in taken(door) if isinstance(one, FedPod)}
    assert len(seen) == 500


def test_a_datagram_of_another_user_is_refused(door: FeedSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_is_ours", lambda _: False)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.sendto(json.dumps({"events": [EVENT]}).encode(), str(door.path))
    assert taken(door) == []
    assert door.refused == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Rm -Rf"}, {"kind": None}, {"source": "../x"}, {"severity": "fatal"}, {"text": ""}, {"text": 7},
    ],
)  # fmt: skip
def test_an_event_of_another_shape_is_none(wrong: dict[str, Any]) -> None:
    assert parse(json.dumps({"events": [{**EVENT, **wrong}]}).encode(), NOW) == []


def test_a_time_that_cannot_be_is_now() -> None:
    for at in (NOW + 60_000_000, NOW - 2 * 3_600_000_000, True, "1", None):
        (event,) = parse(json.dumps({"events": [{**EVENT, "at_us": at}]}).encode(), NOW)
        assert isinstance(event, Event)
        assert event.at_us == NOW


def test_texts_are_cut_and_fields_are_plain() -> None:
    fields = {"a": "x" * 5000, "deep": {"b": 1}, "n": 2**80, "ok": 3, "Bad Key": 1}
    (event,) = parse(json.dumps({"events": [{**EVENT, "text": "t" * 5000, "fields": fields}]}).encode(), NOW)
    assert isinstance(event, Event)
    assert (len(event.text), len(event.fields["a"])) == (500, 500)
    assert set(event.fields) == {"a", "ok"}


class Rows:
    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, table: schema.Table, row: tuple[Any, ...]) -> None:
        if table is schema.CONTAINERS:
            self.rows.append(dict(zip(table.names, row, strict=True)))


def tracker(tmp_path: Path) -> tuple[ContainerTracker, Rows]:
    rows = Rows()
    return ContainerTracker(rows, lambda _: True, str(tmp_path)), rows  # type: ignore[arg-type]


PATH = f"/kubepods/burstable/pod{UID}/{ID}"
FED = FedPod(UID, "ml", "web-1", "Deployment/web", (FedContainer(ID, "main", "img:1", 4),))


def test_a_pod_that_is_told_names_its_container(tmp_path: Path) -> None:
    containers, rows = tracker(tmp_path)
    containers.made(PATH, 1, NOW)
    containers.told(FED)
    containers.second(NOW, [])
    (row,) = rows.rows
    assert (row["pod"], row["namespace"], row["owner"]) == ("web-1", "ml", "Deployment/web")
    assert (row["name"], row["image"], row["restarts"]) == ("main", "img:1", 4)


def test_a_container_made_after_its_pod_was_told_has_its_owner_at_once(tmp_path: Path) -> None:
    containers, rows = tracker(tmp_path)
    containers.told(FED)
    systemd = f"/kubepods.slice/kubepods-pod{UID.replace('-', '_')}.slice/cri-containerd-{ID}.scope"
    containers.made(systemd, 1, NOW)
    containers.second(NOW, [])
    assert rows.rows[0]["owner"] == "Deployment/web"


def test_what_is_told_again_is_no_new_row(tmp_path: Path) -> None:
    containers, rows = tracker(tmp_path)
    containers.made(PATH, 1, NOW)
    for _ in range(3):
        containers.told(FED)
        containers.second(NOW, [])
    assert len(rows.rows) == 1


def test_a_pod_cannot_name_a_container_of_another_pod(tmp_path: Path) -> None:
    containers, rows = tracker(tmp_path)
    containers.made(PATH, 1, NOW)
    containers.told(FedPod("another", "evil", "thief", "Deployment/thief", FED.containers))
    containers.second(NOW, [])
    assert rows.rows[0]["owner"] is None


def test_files_of_the_node_go_before_what_the_server_says(tmp_path: Path) -> None:
    containers, rows = tracker(tmp_path)
    containers.made(PATH, 1, NOW)
    containers._known[ID].known = Description(name="real", image="real:2")
    containers.told(FED)
    containers.second(NOW, [])
    assert (rows.rows[0]["name"], rows.rows[0]["image"]) == ("real", "real:2")


def test_pods_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.recorder.containers.MAX_PODS", 10)
    containers, _ = tracker(tmp_path)
    for number in range(50):
        containers.told(FedPod(f"u{number}", "n", "p", None))
    assert len(containers._pods) == 10


def test_labels_of_the_node_arrive_once(door: FeedSocket) -> None:
    feed = _feed.Feed([str(door.path.parent)])
    feed.labels({"zone": "us-east-1a", "No Word": "x", "pool": ""})
    assert feed.flush()
    assert taken(door) == [FedLabels({"zone": "us-east-1a"})]
    assert feed.waiting == 0
