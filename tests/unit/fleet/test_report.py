"""A report of a small fleet with a planted cause, against the generator's own list of who is sick."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.fleets.nodes import Machine
from tests.unit.fleet.conftest import SMALL

from zombiescope.fleet import digest, flames, pages, search
from zombiescope.fleet.gather import Gathered
from zombiescope.fleet.report import FleetReport


def test_the_sick_nodes_are_those_that_the_generator_made_sick(report: FleetReport, machines: list[Machine]) -> None:
    assert report.sick == {machine.name for machine in machines if machine.sickness}
    assert len(report.nodes) == SMALL.nodes
    assert report.blind == []


def test_what_was_planted_comes_first(report: FleetReport) -> None:
    first = report.by.found[0]
    assert set(first.terms) == {("image", "v14"), ("zone", "us-east-1a")}
    assert first.cause == "zombie-memcg by ecs.service"
    assert report.headline.endswith("others")


def test_a_nodes_figures_are_those_of_its_rollups(report: FleetReport, machines: list[Machine]) -> None:
    sick = next(machine for machine in machines if machine.sickness and machine.sickness.fault.zombies_per_hour)
    node = next(node for node in report.nodes if node.node == sick.name)
    assert sick.sickness
    minutes = SMALL.hours * 60 - sick.sickness.since_min
    assert node.dying is not None
    assert abs(node.dying - 80 - minutes * sick.sickness.fault.zombies_per_hour / 60) <= 1
    assert node.recorded_s == SMALL.hours * 3600
    assert (node.kernel, node.labels["zone"]) == (sick.kernel, sick.labels["zone"])
    assert node.saturated_s is not None
    assert node.saturated_s >= 4 * len(sick.sickness.minutes)
    assert node.dying_per_hour is not None
    assert node.dying_per_hour > 0


def test_causes_are_ranked_by_nodes_and_add_up(report: FleetReport, machines: list[Machine]) -> None:
    incidents = sum(len(machine.sickness.minutes) for machine in machines if machine.sickness)
    assert sum(cause.incidents for cause in report.causes) == incidents
    assert report.causes[0].pattern == "zombie-memcg"
    assert report.causes[0].gpu_seconds_lost == 48.0 * report.causes[0].incidents
    assert [cause.nodes for cause in report.causes] == sorted((cause.nodes for cause in report.causes), reverse=True)


def test_the_unit_that_only_sick_nodes_run_is_named(report: FleetReport) -> None:
    assert report.units[0].unit == "ecs.service"
    assert report.units[0].significant


def test_like_incidents_are_together(report: FleetReport) -> None:
    assert report.clusters[0].path[-1] == "css_next_descendant_pre"
    assert dict(report.clusters[0].patterns) == {"zombie-memcg": report.causes[0].incidents}


def test_the_document_has_what_is_promised(report: FleetReport) -> None:
    document = json.loads(json.dumps(report.document()))
    assert {"nodes", "incidents", "by", "causes"} <= document.keys()
    assert {"label", "value", "nodes", "affected", "ratio", "lift", "p_value"} <= document["by"][0].keys()
    assert {"pattern", "culprit", "nodes"} <= document["causes"][0].keys()
    assert document["by"][0]["label"] == "image,zone"


def test_stacks_on_lost_cores_are_the_faults(gathered: Gathered, report: FleetReport) -> None:
    made = flames.flames(gathered.statistics, starved=True)
    names = {made.tree.name(node).name for node in range(len(made.tree.function))}
    assert "mem_cgroup_iter" in names
    assert "ncclAllReduce" not in names


def test_nobody_healthy_to_compare_with_is_said(gathered: Gathered) -> None:
    everybody = [str(row[0]) for row in gathered.statistics.rows("select distinct node from stacks", [])]
    made = flames.flames(gathered.statistics, everybody)
    assert made.base_nodes == 0
    assert made.title.endswith("sick nodes against 0 healthy nodes")


def test_sick_against_healthy_shows_what_the_healthy_do_not_do(gathered: Gathered, report: FleetReport) -> None:
    made = flames.flames(gathered.statistics, report.sick)
    assert made.base_nodes
    assert f"sick nodes against {made.base_nodes:,} healthy node" in made.title
    delta = made.tree.delta
    assert delta is not None
    grew = {made.tree.name(node).name: delta[node] for node in range(len(made.tree.function))}
    assert grew["mem_cgroup_iter"] > 0
    assert grew["train_step"] < 0


def test_a_function_is_found_where_it_ran_and_an_xid_where_it_was_logged(
    gathered: Gathered, machines: list[Machine]
) -> None:
    sick = {
        machine.name for machine in machines if machine.sickness and machine.sickness.fault.pattern == "zombie-memcg"
    }
    hits = search.search(gathered.statistics, "mem_cgroup_iter")
    assert {hit.kind for hit in hits} == {"stack", "cause"}
    assert set().union(*(hit.nodes for hit in hits)) == sick
    assert set(search.search(gathered.statistics, "leak:/docker")[0].nodes) == sick
    units = search.search(gathered.statistics, "unit:ecs")
    assert [hit.what for hit in units] == ["ecs.service"]
    fallen = {
        machine.name for machine in machines if machine.sickness and machine.sickness.fault.pattern == "gpu-fallen-off"
    }
    found = search.search(gathered.statistics, "xid:79")
    assert {node for hit in found for node in hit.nodes} == fallen
    assert search.search(gathered.statistics, "nothing of that name") == []


def test_pages_hold_the_same_and_load_nothing(report: FleetReport, gathered: Gathered) -> None:
    page = pages.page(report, flames.flames(gathered.statistics, report.sick, starved=True))
    assert "image=v14 and zone=us-east-1a" in page
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    text = digest.markdown(report)
    assert "image=v14 and zone=us-east-1a" in text.replace("\\", "")
    assert "## Causes" in text


def test_names_are_no_markup(tmp_path: Path) -> None:
    assert digest.quoted("<b>*x*|\x1b[0m") == "\\<b\\>\\*x\\*\\|\\\\x1b\\[0m"
    assert pages.text("<script>\x1b") == "&lt;script&gt;\\x1b"
