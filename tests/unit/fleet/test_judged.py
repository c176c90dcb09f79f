"""Not judged is not healthy; copies are one node; odd clocks, empty directories and cut files are reported."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.fleets.nodes import DAY_US, START_US, Fleet, Plant, write
from tests.helpers.cli import Cli
from tests.unit.fleet.conftest import reported

from zombiescope.fleet import digest
from zombiescope.fleet.report import FleetReport, make

RECORDINGS = Path(__file__).parents[2] / "fixtures/recordings"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "fleet"
    write(Fleet(nodes=12, hours=1, seed=4, plant=Plant(rate=1.0), background=0.0, rollups_only=True), place)
    return place


def _healthy(root: Path) -> Path:
    return next(
        node for node in sorted(root.glob("node=*")) if '"incidents": []' in (node / "incidents.json").read_text()
    )


def _node(found: FleetReport, place: Path) -> dict[str, object]:
    name = place.name.removeprefix("node=")
    return next(node for node in found.document()["nodes"] if node["node"] == name)


def _undiagnosed(node: Path) -> None:
    about = json.loads((node / "node.json").read_text())
    (node / "node.json").write_text(json.dumps({**about, "diagnosed": False}))


def _cut(node: Path) -> None:
    (node / "incidents.json").write_text('{"at": 1, "incidents": [{"id": "x"')


def _oversized(node: Path) -> None:
    with (node / "incidents.json").open("wb") as file:
        file.write(b'{"incidents": [' + b'{"id":"0123456789","from":1},' * 3_000_000 + b'{"id":"x","from":1}]}')


def _missing(node: Path) -> None:
    about = json.loads((node / "node.json").read_text())
    del about["diagnosed"]
    (node / "node.json").write_text(json.dumps(about))
    (node / "incidents.json").unlink()


def _not_incidents(node: Path) -> None:
    (node / "incidents.json").write_text(json.dumps({"incidents": [7, {"from": "x"}]}))


@pytest.mark.parametrize("spoil", [_undiagnosed, _cut, _oversized, _missing, _not_incidents])
def test_a_node_whose_incidents_say_nothing_is_not_judged(
    root: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    node = _healthy(root)
    spoil(node)
    found = reported(root, tmp_path / "results")
    shown = _node(found, node)
    assert shown["state"] == "not_judged"
    assert shown["why"]
    assert found.document()["healthy"] == 12 - len(found.sick) - 1
    assert "1 not judged" in found.headline
    assert "--diagnose" in digest.markdown(found)


def test_a_sick_node_without_live_diagnosis_is_sick_by_the_incidents_that_it_has(root: Path, tmp_path: Path) -> None:
    before = reported(root, tmp_path / "before")
    sick = min(before.sick)
    _undiagnosed(root / f"node={sick}")
    assert reported(root, tmp_path / "after").sick == before.sick


def _unpacked(recording: str, root: Path, name: str) -> None:
    """A recording as its recorder left it: no rollups and no diagnosis."""
    with zipfile.ZipFile(RECORDINGS / f"{recording}.zscope") as packed:
        packed.extractall(root / name)
    inside = next((root / name).rglob("node.json")).parent
    place = root / f"node={name}"
    shutil.move(inside, place)
    shutil.rmtree(root / name, ignore_errors=True)
    shutil.rmtree(place / "rollup", ignore_errors=True)
    (place / "incidents.json").unlink(missing_ok=True)
    about = json.loads((place / "node.json").read_text())
    (place / "node.json").write_text(json.dumps({**about, "node": name, "diagnosed": False}))


def test_undiagnosed_recordings_are_recorded_and_judged_when_asked(tmp_path: Path) -> None:
    root = tmp_path / "fleet"
    root.mkdir()
    for recording in ("smaps-reader", "healthy-page-cache"):
        _unpacked(recording, root, recording)
    ask = Cli(tmp_path)
    command = ("fleet", "report", str(root), "--last", "all", "--results", str(tmp_path / "r"), "--json")
    shown = ask(*command).document
    assert [node["node"] for node in shown["not_judged"]] == ["healthy-page-cache", "smaps-reader"]
    assert shown["blind"] == []
    assert shown["healthy"] == 0
    for _ in range(2):  # the second time from the verdicts that were kept
        told = ask(
            "fleet", "report", str(root), "--last", "all", "--results", str(tmp_path / "r"), "--diagnose", "--json"
        )
        states = {node["node"]: node["state"] for node in told.document["nodes"]}
        assert states == {"healthy-page-cache": "healthy", "smaps-reader": "sick"}
        assert told.document["causes"][0]["pattern"] == "smaps-reader"
        assert told.document["diagnosed_now"] == ["healthy-page-cache", "smaps-reader"]
    assert list((tmp_path / "r").glob("verdicts-*/*.json"))


def test_copies_of_one_recording_are_one_node(root: Path, tmp_path: Path) -> None:
    before = reported(root, tmp_path / "before")
    sick = min(before.sick)
    for number in range(12):
        shutil.copytree(root / f"node={sick}", root / f"node=copy-{number:02d}")
    found = reported(root, tmp_path / "after")
    assert found.sick == before.sick
    assert found.copies == {f"copy-{number:02d}": sick for number in range(12)}
    assert len(found.incidents) == len(before.incidents)
    assert found.document()["copies"][0] == {"node": "copy-00", "of": sick}
    assert sum(cause.job_hours_lost for cause in found.causes) == sum(cause.job_hours_lost for cause in before.causes)


@pytest.mark.parametrize("days", [365, -7300])
def test_a_clock_that_is_years_off_is_reported_as_that(root: Path, tmp_path: Path, days: int) -> None:
    write(Fleet(nodes=40, hours=1, seed=5, rollups_only=True), root)
    node = _healthy(root)
    moved_us = START_US + days * DAY_US
    segment = next((node / "rollup").iterdir())
    segment.rename(node / "rollup" / f"{moved_us:016d}.seg")
    os.utime(node / "rollup" / f"{moved_us:016d}.seg", (START_US / 1e6 + 3600, START_US / 1e6 + 3600))
    found = reported(root, tmp_path / "results", DAY_US)
    shown = _node(found, node)
    assert shown["state"] == "blind"
    assert shown["newest"] == moved_us / 1e6
    if days > 0:
        assert abs(float(str(shown["ahead_s"])) - 365 * 86400) < 7200
        assert "365 d" in str(shown["why"]) or "364 d" in str(shown["why"])
    else:
        assert "7300 d" in str(shown["why"]) or "7301 d" in str(shown["why"])


def test_an_empty_directory_of_a_node_is_a_node_of_which_nothing_is_known(root: Path, tmp_path: Path) -> None:
    (root / "node=empty").mkdir()
    (root / "node=other").mkdir()
    (root / "node=other" / "README").write_text("not a recording")
    found = reported(root, tmp_path / "results")
    assert len(found.nodes) == 14
    assert {node.node for node in found.blind} == {"empty", "other"}
    assert {node for node, _, _ in found.damage} == {"empty", "other"}


@pytest.mark.parametrize("folder", ["rollup", "log"])
def test_a_segment_that_was_cut_in_half_is_damage(root: Path, tmp_path: Path, folder: str) -> None:
    node = _healthy(root)
    whole = next((node / "rollup").iterdir())
    data = whole.read_bytes()
    target = node / folder / whole.name
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(data[: len(data) // 2])
    found = reported(root, tmp_path / "results")
    assert [name for name, _, _ in found.damage] == [node.name.removeprefix("node=")]
    assert "ends inside a frame" in found.damage[0][2]


def test_well_known_labels_are_kept_first_and_what_was_left_out_is_counted(tmp_path: Path) -> None:
    root = tmp_path / "fleet"
    write(Fleet(nodes=40, hours=1, seed=1, plant=None, background=0.0, rollups_only=True, old_labels=True), root)
    for number, node in enumerate(sorted(root.glob("node=*"))):
        about = json.loads((node / "node.json").read_text())
        zone = "ab"[number % 2]
        many = {f"feature.node.kubernetes.io/cpu-{each:03d}": "true" for each in range(600)}
        said = {**many, "topology.kubernetes.io/zone": zone}
        (node / "node.json").write_text(json.dumps({**about, "labels": said}))
        if zone == "a":
            at = START_US / 1e6 + 60
            incident = {"id": f"i{number}", "from": at, "to": at + 5, "severity": "critical", "causes": []}
            (node / "incidents.json").write_text(json.dumps({"incidents": [incident]}))
    found = reported(root, tmp_path / "results")
    assert found.by.found[0].terms == (("topology.kubernetes.io/zone", "a"),)
    assert found.document()["labels_left_out"] == {"nodes": 40, "most": 601 - 256}
    assert "labels" in digest.markdown(found)


def test_labels_from_an_inventory_are_compared(tmp_path: Path) -> None:
    root = tmp_path / "fleet"
    write(Fleet(nodes=40, hours=1, seed=4, plant=Plant((), rate=0.3), background=0.0, rollups_only=True), root)
    before = reported(root, tmp_path / "before")
    lines = [f"{node.node},{'r1' if node.node in before.sick else 'r2'}" for node in before.nodes]
    (tmp_path / "racks.csv").write_text("\n".join(["node,psu", *lines, "gone,r9"]))
    ask = Cli(tmp_path)
    options = ("--results", str(tmp_path / "r"), "--by", "psu", "--json")
    shown = ask("fleet", "report", str(root), "--labels", str(tmp_path / "racks.csv"), *options).document
    assert shown["by"][0]["terms"] == [{"label": "psu", "value": "r1"}]
    assert (shown["inventory"]["matched"], shown["inventory"]["unknown"]) == (40, ["gone"])
    command = f"cat {tmp_path / 'racks.csv'}"
    again = ask("fleet", "report", str(root), "--labels-command", command, *options).document
    assert again["by"] == shown["by"]


@pytest.mark.parametrize(
    ("options", "code"),
    [(("--labels", "nowhere.csv"), 1), (("--labels-command", "false"), 1), (("--labels-command", "no-such-program"), 1),
     (("--labels", "a", "--labels-command", "b"), 2)],
)  # fmt: skip
def test_an_inventory_that_cannot_be_used_is_one_line(
    root: Path, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    done = Cli(tmp_path)("fleet", "report", str(root), *options)
    assert done.code == code
    assert len(done.err.strip().splitlines()) == 1


def test_the_order_in_which_rows_were_written_changes_no_digit(root: Path, tmp_path: Path) -> None:
    """Two engines hand in batches in different orders and sizes."""
    from zombiescope.fleet import results
    from zombiescope.fleet.engines.local import LocalEngine
    from zombiescope.fleet.gather import gather

    documents = []
    for size in (1, 64):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(results, "BATCH_ITEMS", size)
            found = gather(str(root), tmp_path / f"r{size}", LocalEngine(1), None)
            documents.append(make(found, "").document())
            found.statistics.close()
    for each in documents:
        each["read"] = None
    assert documents[0] == documents[1]
