"""Six kinds of fleets with a planted truth, twenty of each: the report is right, or finds nothing where nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.fleets import six
from benchmarks.fleets.nodes import Fleet, write_machines
from tests.unit.fleet.conftest import reported

from zombiescope.fleet import digest
from zombiescope.fleet.numbers import AGE


@pytest.mark.parametrize("kind", [kind for kind in six.ALL if kind != "none"])
def test_what_was_planted_is_first_in_nineteen_of_twenty_fleets(kind: str) -> None:
    assert six.right(kind, range(20)) >= 19


def test_nothing_is_found_in_thirty_fleets_without_a_cause() -> None:
    assert six.right("none", range(30)) == 30


def test_a_zone_that_is_rebooted_weekly_is_spared_because_of_the_age_of_its_nodes(tmp_path: Path) -> None:
    truth = six.age(1)
    write_machines(Fleet(hours=six.HOURS, rollups_only=True), truth.machines, tmp_path / "fleet")
    found = reported(tmp_path / "fleet", tmp_path / "results")
    first = found.by.found[0]
    assert truth.is_first(first)
    assert first.split is not None
    assert (first.split.variable.name, first.split.threshold) == (AGE, 12 * six.DAY_S)
    assert (first.affected, first.rest_affected) == (first.nodes, 0)
    zone = next(group for group in found.by.groups if group.terms == (("zone", "b"),))
    assert zone.spared
    assert zone.affected == 0
    assert zone.explained_by == first.terms
    assert zone.because is not None
    assert zone.because in found.headline
    assert "up for 12 d or longer" in digest.markdown(found)
    # Dying cgroups are a step of the illness: they are reported, and explain nothing away.
    assert found.by.course[0].label == "dying"
    number = next(each for each in found.document()["numbers"] if each["name"] == AGE)
    shares = [quarter["affected"] / quarter["nodes"] for quarter in number["quarters"]]
    assert shares[-1] == 1.0
    assert shares[0] < 0.1


def test_confounded_labels_are_named_together_in_headline_and_digest(tmp_path: Path) -> None:
    write_machines(Fleet(hours=1, rollups_only=True), six.confounded(1).machines, tmp_path / "fleet")
    found = reported(tmp_path / "fleet", tmp_path / "results")
    text = digest.markdown(found).replace("\\", "")
    for name in ("image=v14", "zone=d", "kernel=5.15.0-1060-aws"):
        assert name in found.headline
        assert name in text.split("## What the sick nodes share")[1]
    assert "zombie-memcg" in found.headline


def test_sick_nodes_that_were_not_judged_are_neither_sick_nor_healthy(tmp_path: Path) -> None:
    truth = six.blind(1)
    write_machines(Fleet(hours=1, rollups_only=True), truth.machines, tmp_path / "fleet")
    found = reported(tmp_path / "fleet", tmp_path / "results")
    unknown = {machine.name for machine in truth.machines if not machine.diagnosed}
    assert {node.node for node in found.not_judged} == unknown
    assert len(found.sick) + len(found.in_state("healthy")) + len(unknown) == len(truth.machines)
    first = found.by.found[0]
    assert truth.is_first(first)
    assert first.not_judged == sum(
        machine.name in unknown and machine.labels["image"] == "v14" and machine.labels["zone"] == "a"
        for machine in truth.machines
    )
    assert f"{len(unknown)} not judged" in found.headline
    document = found.document()
    assert len(document["not_judged"]) == len(unknown)
    assert document["by"][0]["not_judged"] == first.not_judged
    assert all(share.not_judged <= len(unknown) for share in found.units)
