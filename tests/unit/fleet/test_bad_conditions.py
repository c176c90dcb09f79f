"""Clocks apart, labels that changed, older files, damage, one giant, nothing at all: each a clear result."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from benchmarks.fleets import days, windows
from benchmarks.fleets.faults import ZOMBIES
from benchmarks.fleets.nodes import HOUR_US, START_US, Fleet, Plant, write
from tests.helpers.cli import Cli
from tests.unit.fleet.conftest import reported

from zombiescope.fleet import plan, reading, tables
from zombiescope.fleet.engines import BatchRows, read_batch
from zombiescope.fleet.engines.local import LocalEngine, given_up
from zombiescope.fleet.gather import gather
from zombiescope.fleet.plan import NoFleetError
from zombiescope.store import schema
from zombiescope.store.log import SegmentEncoder, encode_rows

DAY = "2026-04-01"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Twelve nodes, one hour."""
    place = tmp_path / "fleet"
    write(Fleet(nodes=12, hours=1, seed=4, plant=Plant(rate=1.0), background=0.0), place)
    return place


def node_dirs(root: Path) -> list[Path]:
    return sorted(root.glob("node=*"))


def test_an_empty_root_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoFleetError, match="there is no node in"):
        plan.listing(str(tmp_path))


def test_a_root_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NoFleetError, match="is not a directory"):
        plan.listing(str(tmp_path / "nowhere"))


def test_a_fleet_without_any_rollup_is_blind_and_not_healthy(root: Path, tmp_path: Path) -> None:
    for node in node_dirs(root):
        shutil.rmtree(node / "rollup")
        (node / "incidents.json").unlink()
        for dated in node.glob("date=*"):
            shutil.rmtree(dated)
    found = reported(root, tmp_path / "results")
    assert len(found.blind) == 12
    assert "no incident on 0 of 12 nodes (12 recorded nothing)" in found.headline


def test_a_damaged_segment_is_skipped_and_counted(root: Path, tmp_path: Path) -> None:
    hurt = node_dirs(root)[0]
    segment = next((hurt / "rollup").iterdir())
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    segment.write_bytes(data)
    found = reported(root, tmp_path / "results")
    assert [node for node, _, _ in found.damage] == [hurt.name.removeprefix("node=")]
    node = next(node for node in found.nodes if node.node == hurt.name.removeprefix("node="))
    assert node.damaged == 1
    assert 0 < node.recorded_s < 3600
    assert len(found.nodes) == 12


def test_half_a_segment_and_half_a_parquet_file_are_read_as_far_as_they_go(root: Path, tmp_path: Path) -> None:
    sick = next(node for node in node_dirs(root) if list(node.glob("date=*/stacks-*")))
    segment = next((sick / "rollup").iterdir())
    segment.write_bytes(segment.read_bytes()[:-200])
    parquet = next(sick.glob("date=*/samples-*"))
    parquet.write_bytes(parquet.read_bytes()[:-50])
    found = reported(root, tmp_path / "results")
    assert sick.name.removeprefix("node=") in {node for node, _, _ in found.damage}
    assert len(found.nodes) == 12


def test_documents_that_are_no_json_cost_only_themselves(root: Path, tmp_path: Path) -> None:
    first, second, *_ = node_dirs(root)
    (first / "node.json").write_text("{")
    (second / "incidents.json").write_text('{"incidents": [7, {"from": "x"}, {"from": 1e400}]}')
    found = reported(root, tmp_path / "results")
    names = {node for node, _, _ in found.damage}
    assert first.name.removeprefix("node=") in names
    assert len(found.nodes) == 12


def test_a_node_of_an_older_version_has_the_labels_of_its_node_file(tmp_path: Path) -> None:
    write(Fleet(nodes=8, hours=1, seed=4, old_labels=True), tmp_path / "fleet")
    found = reported(tmp_path / "fleet", tmp_path / "results")
    assert all("zone" in node.labels for node in found.nodes)


def test_columns_and_tables_of_an_older_version_are_read(root: Path, tmp_path: Path) -> None:
    """Blocks of a retired table: leaks as they were before names were counted."""
    node = node_dirs(root)[0]
    old = schema.RETIRED[11]
    rows = [(START_US + 5_000_000, "/old/*", 7, 8, 7, 0, 1, "sh", 5, "old.service", None)]
    header = {"format": schema.FORMAT, "boot": "b", "started_us": START_US, "seq": 0, "recorder_started_us": START_US}
    encoder = SegmentEncoder(header)
    (node / "log").mkdir()
    block = encode_rows(old, rows, START_US + 6_000_000)
    path = node / "log" / f"{START_US + 3_000_000:016d}.seg"
    path.write_bytes(encoder.preamble + encoder.frame(START_US + 6_000_000, 1, [block]))
    item = next(
        item
        for item in plan.listing(str(root)).items
        if item.day == DAY and item.node == node.name.removeprefix("node=")
    )
    rows_of = reading.read(plan.store_of(str(root)), item).rows
    assert ("/old/*", 7, 8, "old.service", START_US + 5_000_000) in rows_of["leaks"]


def test_a_table_of_a_newer_version_is_damage_and_no_crash(root: Path, tmp_path: Path) -> None:
    node = node_dirs(root)[0]
    encoder = SegmentEncoder({"format": "zombiescope.recording/9", "boot": "b"})
    (node / "rollup" / f"{START_US + 1:016d}.seg").write_bytes(
        encoder.preamble + encoder.frame(START_US, 1, [b"\xfe\x01"])
    )
    found = reported(root, tmp_path / "results")
    assert "written by a newer version" in found.damage[0][2]


def test_a_clock_that_is_a_year_ahead_moves_nobody_elses_window(root: Path, tmp_path: Path) -> None:
    odd = node_dirs(root)[0]
    year_us = 365 * 24 * HOUR_US
    shutil.rmtree(odd / "rollup")
    (odd / "rollup").mkdir()
    late = START_US + year_us
    data = days.header(late, "b", {"zone": "x"}, "6.1") + days.body(late, 30, 1, "b", None)
    path = odd / "rollup" / f"{late:016d}.seg"
    path.write_bytes(data)
    os.utime(path, (START_US / 1e6 + 3600, START_US / 1e6 + 3600))
    write(Fleet(nodes=30, hours=1, seed=4), tmp_path / "fleet")
    found = reported(root, tmp_path / "results", 24 * HOUR_US)
    assert found.end_us == START_US + HOUR_US
    name = odd.name.removeprefix("node=")
    shown = next(node for node in found.document()["nodes"] if node["node"] == name)
    assert shown["state"] in ("blind", "not_judged", "sick")
    assert shown["ahead_s"] > 360 * 86400
    # Seen over all time it is reported how far ahead it is.
    every = reported(root, tmp_path / "results2")
    ahead = {node.node: node.ahead_s for node in every.nodes if node.ahead_s is not None}
    assert ahead[odd.name.removeprefix("node=")] > 360 * 86400


def test_clocks_that_are_minutes_apart_change_no_verdict(tmp_path: Path) -> None:
    place = tmp_path / "fleet"
    write(Fleet(nodes=60, hours=1, seed=3, plant=Plant(rate=1.0, stray=0.0), rollups_only=True), place)
    for number, node in enumerate(node_dirs(place)):
        shift_s = (number % 7 - 3) * 60
        document = json.loads((node / "incidents.json").read_text())
        for incident in document["incidents"]:
            incident["from"] += shift_s
            incident["to"] += shift_s
        (node / "incidents.json").write_text(json.dumps(document))
    found = reported(place, tmp_path / "results")
    assert set(found.by.found[0].terms) == {("image", "v14"), ("zone", "us-east-1a")}


def with_new_image(root: Path, upgraded: int, total: int = 20) -> None:
    """Nodes of one zone that run image v1, and of which some get v2 after an hour and are sick from then on."""
    for number in range(total):
        node = root / f"node=n{number:02d}"
        (node / "rollup").mkdir(parents=True)
        new = number < upgraded
        for hour, image in enumerate(("v1", "v2" if new else "v1", "v2" if new else "v1")):
            start_us = START_US + hour * HOUR_US
            head = days.header(start_us, f"b{image}", {"image": image, "zone": "a"}, "6.1")
            body = days.body(start_us, 60, number % 3, f"b{image}", None)
            (node / "rollup" / f"{start_us:016d}.seg").write_bytes(head + body)
        at = START_US / 1e6 + 3600 + 600
        incident = {
            "id": "x",
            "from": at,
            "to": at + 5,
            "severity": "warning",
            "causes": [{"pattern": "p", "frames": []}],
        }
        (node / "incidents.json").write_text(json.dumps({"incidents": [incident] if new else []}))
        (node / "node.json").write_text(json.dumps({"labels": {"image": "v2" if new else "v1", "zone": "a"}}))


def test_what_began_when_an_image_arrived_is_said_and_labels_are_those_of_the_onset(tmp_path: Path) -> None:
    with_new_image(tmp_path / "fleet", upgraded=16, total=30)
    found = reported(tmp_path / "fleet", tmp_path / "results")
    first = found.arrivals[0]
    assert (first.label, first.value, first.nodes, first.sick_after, first.sick_before) == ("image", "v2", 16, 16, 0)
    assert first.significant
    assert first.first_us == START_US + HOUR_US
    assert sum(node.labels_changed for node in found.nodes) == 16
    assert found.by.found[0].terms == (("image", "v2"),)


def test_an_image_that_arrives_everywhere_is_found_though_there_is_nobody_to_compare_with(tmp_path: Path) -> None:
    with_new_image(tmp_path / "fleet", upgraded=16, total=16)
    found = reported(tmp_path / "fleet", tmp_path / "results")
    assert found.by.groups == ()
    assert found.arrivals[0].significant


def test_nodes_that_grow_are_forecast_by_what_made_others_sick(root: Path, tmp_path: Path) -> None:
    place = tmp_path / "grow"
    write(Fleet(nodes=24, hours=4, seed=4, plant=Plant((("image", "v14"),), rate=1.0)), place)
    growing = next(
        node for node in node_dirs(place) if json.loads((node / "incidents.json").read_text())["incidents"] == []
    )
    shutil.rmtree(growing / "rollup")
    (growing / "rollup").mkdir()
    sick = days.Sickness(ZOMBIES, 0)
    data = days.header(START_US, "b", {"zone": "q"}, "6.1") + days.body(START_US, 240, 9, "b", sick)
    (growing / "rollup" / f"{START_US:016d}.seg").write_bytes(data)
    found = reported(place, tmp_path / "results")
    named = {each.node: each for each in found.outlook.nodes}
    assert growing.name.removeprefix("node=") in named
    one = named[growing.name.removeprefix("node=")]
    assert one.per_hour == pytest.approx(2400, rel=0.02)
    assert found.outlook.threshold is not None
    assert one.hours == pytest.approx(max(0.0, (found.outlook.threshold - one.dying) / one.per_hour), abs=0.02)


def test_one_node_with_a_thousand_times_the_windows_keeps_few_rows(root: Path, tmp_path: Path) -> None:
    """Its rows are as many as its distinct stacks, however many samples it has."""
    giant = node_dirs(root)[0]
    (giant / "log").mkdir(exist_ok=True)
    for number in range(40):
        start_us = START_US + number * 60_000_000
        data = windows.segment(start_us, "b", ZOMBIES, number)
        (giant / "log" / f"{start_us:016d}.seg").write_bytes(data)
    items = plan.listing(str(root)).items
    item = max((item for item in items if item.day), key=lambda item: item.size_bytes)
    rows = reading.read(plan.store_of(str(root)), item).rows
    assert item.node == giant.name.removeprefix("node=")
    assert len(rows["stacks"]) < 30
    assert sum(row[1] for row in rows["stacks"]) > 30_000


class Interrupted:
    """An engine that stops in the middle."""

    name = "duckdb"

    def __init__(self, after: int) -> None:
        self.after, self.read_items = after, 0

    def read(self, place: str, batches: list) -> object:  # type: ignore[type-arg]
        for number, batch in enumerate(batches):
            if number == self.after:
                raise KeyboardInterrupt
            self.read_items += len(batch.items)
            yield BatchRows(batch, read_batch(place, batch))


def test_an_interrupted_report_goes_on_where_it_stopped(root: Path, tmp_path: Path) -> None:
    stopping = Interrupted(after=5)
    with pytest.raises(KeyboardInterrupt):
        gather(str(root), tmp_path / "results", stopping, None)  # type: ignore[arg-type]
    assert stopping.read_items > 0
    found = gather(str(root), tmp_path / "results", LocalEngine(1), None)
    assert found.fresh == len(found.listing.items) - stopping.read_items
    found.statistics.close()


def test_the_next_report_reads_only_what_is_new(root: Path, tmp_path: Path) -> None:
    before = reported(root, tmp_path / "results")
    again = reported(root, tmp_path / "results")
    assert (before.fresh, again.fresh) == (24, 0)
    assert before.document() | {"read": None} == again.document() | {"read": None}
    node = node_dirs(root)[0]
    start_us = START_US + 24 * HOUR_US
    data = days.header(start_us, "b", {"zone": "x"}, "6.1") + days.body(start_us, 30, 1, "b", None)
    (node / "rollup" / f"{start_us:016d}.seg").write_bytes(data)
    assert reported(root, tmp_path / "results").fresh == 1


def test_results_that_cannot_be_read_are_made_again(root: Path, tmp_path: Path) -> None:
    first = reported(root, tmp_path / "results")
    for path in (tmp_path / "results").rglob("items-*.parquet"):
        path.write_bytes(b"PAR1")
    again = reported(root, tmp_path / "results")
    assert again.fresh == 24
    assert again.headline == first.headline


def test_a_batch_whose_reader_died_is_damage_and_tried_again_next_time() -> None:
    rows = given_up("n", DAY).rows
    assert rows["items"][0][list(tables.TABLES["items"]).index("damaged")] == 1
    assert rows["items"][0][list(tables.TABLES["items"]).index("fingerprint")] == ""


def test_names_of_nodes_and_units_are_shown_harmless(tmp_path: Path) -> None:
    node = tmp_path / "fleet" / "node=\x1b[31mevil\u202e"
    (node / "rollup").mkdir(parents=True)
    labels = {"zone": "a\nb", "x" * 500: "y" * 500}
    (node / "node.json").write_text(json.dumps({"labels": labels, "kernel": 7, "cpus": []}))
    data = days.header(START_US, "b", labels, "6.1") + days.body(START_US, 20, 1, "b", None, "\x1b]0;unit")
    (node / "rollup" / f"{START_US:016d}.seg").write_bytes(data)
    at = START_US / 1e6
    incident = {"id": "\x1b", "from": at, "to": at, "severity": "critical",
                "causes": [{"pattern": "<b>", "culprit": {"unit": "\x1b[2J"}, "frames": ["a;b", "\x1b"]}]}  # fmt: skip
    (node / "incidents.json").write_text(json.dumps({"incidents": [incident]}))
    shown = Cli(tmp_path)("fleet", "report", str(tmp_path / "fleet"), "--results", str(tmp_path / "r"))
    assert shown.code == 0, shown.err
    assert "\x1b" not in shown.out + shown.err
    assert "\u202e" not in shown.out + shown.err
