"""The fleet that a server shows: read by a thread, and each node's recording opened where it lies."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fleets.nodes import Fleet, Plant, write

from zombiescope.web.fleet import FleetRoot
from zombiescope.web.recordings import Recordings
from zombiescope.web.refusal import Refusal


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("fleet")
    plant = Plant((("image", "v14"),), rate=1.0)
    write(Fleet(nodes=8, hours=1, seed=4, plant=plant), place / "shard=00")
    write(Fleet(nodes=4, hours=1, seed=5, plant=plant, compare=1.0), place)
    return place


def ready(shown: FleetRoot) -> dict[str, Any]:
    for _ in range(600):
        document = shown.document()
        if document["state"] != "reading":
            return document
        time.sleep(0.05)
    raise AssertionError("it is still read")


def test_asking_begins_the_reading_and_later_has_the_report(root: Path, tmp_path: Path) -> None:
    shown = FleetRoot(str(root), tmp_path)
    assert shown.document()["state"] == "reading"
    document = ready(shown)
    assert document["state"] == "ready"
    assert document["report"]["nodes_in_all"] == 8
    assert [node["sick"] for node in document["report"]["nodes"]] == sorted(
        (node["sick"] for node in document["report"]["nodes"]), reverse=True
    )


def test_a_root_without_nodes_is_said_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    document = ready(FleetRoot(str(tmp_path / "empty"), tmp_path / "results"))
    assert document["state"] == "failed"
    assert "there is no node in" in document["why"]


def test_a_node_is_opened_where_it_lies_under_a_shard_too(root: Path, tmp_path: Path) -> None:
    recordings = Recordings([], FleetRoot(str(root), tmp_path))
    for name in ("ip-10-0-1", "ip-10-0-7"):
        with recordings.named(f"fleet:{name}").reading() as recording:
            assert recording.name == name
            assert recording.table("minutes").num_rows == 60
    with recordings.named(None).reading() as recording:
        assert recording.name == "ip-10-0-0"
    assert recordings.document()["fleet"] is True
    recordings.close()


@pytest.mark.parametrize("name", ["nobody", "../x", ""])
def test_a_node_that_is_not_there_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(Refusal, match="there is no node"):
        Recordings([], FleetRoot(str(root), tmp_path)).named(f"fleet:{name}")


def test_only_a_few_nodes_are_held_open(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zombiescope.web.fleet.MOST_HELD", 2)
    shown = FleetRoot(str(root), tmp_path)
    for number in range(4):
        shown.named(f"fleet:ip-10-0-{number}")
    assert len(shown._held) == 2
