"""One node of a fleet whose files were made to hurt: it costs itself, and neither the report nor the other nodes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fleets.nodes import START_US, Fleet, Plant, write
from tests.helpers.cli import Cli
from tests.unit.fleet.conftest import reported

from zombiescope.fleet import digest, plan
from zombiescope.store import schema
from zombiescope.store.log import SegmentEncoder, encode_rows

NODES = 9
HALF = "\ud800"
"""Half of a pair of surrogates: valid JSON, and no text that could be written."""


def _incident(**more: Any) -> dict[str, Any]:
    cause = {"pattern": "zombie-memcg", "summary": "s", "culprit": {"unit": "u.service"}}
    return {"id": "0123456789", "from": START_US / 1e6, "to": START_US / 1e6 + 5, "severity": "critical",
            "state": "closed", "causes": [cause], "symptoms": [], **more}  # fmt: skip


def _write_incidents(node: Path, *incidents: dict[str, Any]) -> None:
    (node / "incidents.json").write_text(json.dumps({"incidents": list(incidents)}))


def _half_a_character(node: Path) -> None:
    cause = {"pattern": f"p{HALF}", "summary": HALF, "culprit": {"unit": HALF}, "frames": [HALF], "hog": {"comm": HALF}}
    _write_incidents(node, _incident(id=f"x{HALF}", state=HALF, causes=[cause]))
    about = json.loads((node / "node.json").read_text())
    (node / "node.json").write_text(json.dumps({**about, "kernel": HALF, "boot": HALF, "labels": {HALF: HALF}}))


def _times_that_no_calendar_has(node: Path) -> None:
    _write_incidents(node, *(_incident(id=str(at), **{"from": at, "to": at}) for at in (9e11, -9e11, 2.6e11, 0, 1e300)))


def _numbers_beyond_any_column(node: Path) -> None:
    header = {"format": schema.FORMAT, "boot": HALF, "kernel": HALF, "labels": {"zone": HALF}, "started_us": START_US,
              "seq": 0, "recorder_started_us": START_US}  # fmt: skip
    encoder = SegmentEncoder(header)
    blocks = [encode_rows(table, _huge(table), START_US) for table in (schema.MINUTES, schema.UNIT_HOURS)]
    path = node / "rollup" / f"{START_US + 7:016d}.seg"
    path.write_bytes(encoder.preamble + encoder.frame(START_US, 1, blocks))


def _huge(table: schema.Table) -> list[tuple[Any, ...]]:
    """Each fits; their sums do not."""
    known = {"boot": "b", "unit": "u.service"}
    return [
        tuple(START_US + minute * 60_000_000 if name == "time" else known.get(name, 2**62) for name in table.names)
        for minute in range(1, 9)
    ]


def _days_that_no_calendar_has(node: Path) -> None:
    for day in ("9999-99-99", "0000-00-00", "9999-12-31", "٢٠٢٦-٠٤-٠١"):
        folder = node / f"date={day}"
        folder.mkdir()
        (folder / "part-0000000000000001-0000000000000002.json").write_text("{}")


def _pipes_and_links(node: Path) -> None:
    for name in ("node.json", "incidents.json"):
        (node / name).unlink()
    os.mkfifo(node / "node.json")
    (node / "incidents.json").symlink_to("/proc/self/environ")
    (node / "log").mkdir()
    os.mkfifo(node / "log" / f"{START_US:016d}.seg")
    (node / "log" / f"{START_US + 1:016d}.seg").symlink_to("/dev/zero")


def _folders_without_an_end(node: Path) -> None:
    (node / "rollup" / "link").symlink_to(node)
    before = os.open(node, os.O_RDONLY)
    try:
        for _ in range(200):  # 200 times 50 characters: longer than any path may be
            os.mkdir("x" * 50, dir_fd=before)
            inside = os.open("x" * 50, os.O_RDONLY, dir_fd=before)
            os.close(before)
            before = inside
    finally:
        os.close(before)


def _very_many_incidents(node: Path) -> None:
    _write_incidents(node, *(_incident(id=f"{number:010x}") for number in range(20_000)))


ATTACKS = (
    _half_a_character, _times_that_no_calendar_has, _numbers_beyond_any_column, _days_that_no_calendar_has,
    _pipes_and_links, _folders_without_an_end, _very_many_incidents,
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each attack by a node of its own, and two nodes that are well-behaved."""
    place = tmp_path_factory.mktemp("fleet")
    write(Fleet(nodes=NODES, hours=1, seed=4, plant=Plant(rate=1.0), background=0.0), place)
    for attack, node in zip(ATTACKS, sorted(place.glob("node=*")), strict=False):
        attack(node)
    return place


@pytest.mark.parametrize("last_us", [None, 86_400_000_000])
def test_the_report_is_made_and_can_be_sent(last_us: int | None, root: Path, tmp_path: Path) -> None:
    found = reported(root, tmp_path, last_us)
    assert len(found.nodes) == NODES
    assert len(found.incidents) < 1_000
    document = json.dumps(found.document(), ensure_ascii=False)
    assert HALF not in document
    document.encode()  # as the page sends it
    assert digest.markdown(found)


def test_the_command_says_it_and_shows_no_traceback(root: Path, tmp_path: Path) -> None:
    done = Cli(tmp_path)("fleet", "report", str(root), "--results", str(tmp_path / "results"))
    assert (done.code in (0, 3), "Traceback" in done.err) == (True, False), done.err


def test_a_node_that_may_not_be_listed_is_damage_of_that_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As root every directory can be listed: the refusal is made."""
    place = tmp_path / "fleet"
    write(Fleet(nodes=3, hours=1, seed=4, plant=Plant(rate=1.0), background=0.0), place)
    shut, listed = sorted(place.glob("node=*"))[0], os.scandir

    def refuse(folder: str) -> object:
        if str(folder) == str(shut):
            raise PermissionError(13, "Permission denied", folder)
        return listed(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    found = {(item.node, item.day) for item in plan.listing(str(place)).items}
    assert (shut.name.removeprefix("node="), plan.NODE_DAY) in found
    assert len({node for node, _ in found}) == 3


def test_a_node_cannot_have_another_left_out_as_its_copy(tmp_path: Path) -> None:
    """It read the other's files in the store, and takes its boot and its incident for its own."""
    place = tmp_path / "fleet"
    write(Fleet(nodes=3, hours=1, seed=4, plant=Plant(rate=1.0), background=0.0), place)
    first, victim, _ = sorted(place.glob("node=*"))
    _write_incidents(victim, _incident())
    _write_incidents(first, _incident())
    about = json.loads((victim / "node.json").read_text())
    assert about["node"] == victim.name.removeprefix("node=")
    for name in (first.name.removeprefix("node="), about["node"]):
        (first / "node.json").write_text(json.dumps({**about, "node": name}))
        found = reported(place, tmp_path / f"as {name}")
        assert about["node"] in found.sick
        assert about["node"] not in found.copies
