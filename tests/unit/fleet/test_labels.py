"""What comes out first, what does not come out at all, and what is explained by something else."""

from __future__ import annotations

import random

import pytest
from benchmarks.fleets.nodes import Fleet, Machine, Plant, machines

from zombiescope.fleet import labels
from zombiescope.fleet.labels import Comparison, Outcome
from zombiescope.fleet.report import cause_name

FLEETS = 20
NODES = 160


def compared(found: list[Machine]) -> Comparison:
    by_cause: dict[str, set[str]] = {}
    for machine in found:
        if machine.sickness is not None:
            fault = machine.sickness.fault
            by_cause.setdefault(cause_name(fault.pattern, fault.culprit), set()).add(machine.name)
    every = Outcome(None, frozenset().union(*by_cause.values()))
    outcomes = [every, *(Outcome(name, frozenset(nodes)) for name, nodes in by_cause.items() if len(nodes) >= 3)]
    return labels.compare({machine.name: {**machine.labels, "kernel": machine.kernel} for machine in found}, outcomes)


def test_a_planted_cause_is_first_in_nineteen_of_twenty_fleets() -> None:
    plant = Plant()
    first = 0
    for seed in range(FLEETS):
        groups = compared(machines(Fleet(NODES, seed=seed, plant=plant))).found
        first += bool(groups) and set(groups[0].terms) == set(plant.labels)
    assert first >= 19


def test_a_cause_of_one_label_is_not_dressed_up_as_a_pair() -> None:
    plant = Plant(labels=(("team", "llm"),), rate=0.7)
    first = 0
    for seed in range(FLEETS):
        groups = compared(machines(Fleet(NODES, seed=seed, plant=plant))).found
        first += bool(groups) and groups[0].terms == (("team", "llm"),)
    assert first >= 19


def test_where_nothing_is_planted_nothing_is_found_in_nineteen_of_twenty_fleets() -> None:
    quiet = sum(
        not compared(machines(Fleet(NODES, seed=seed, plant=None, background=0.12))).found for seed in range(FLEETS)
    )
    assert quiet >= 19


def test_labels_that_the_cause_drags_along_are_explained_by_it() -> None:
    found = compared(machines(Fleet(600, seed=1)))
    zone = next(group for group in found.groups if group.terms == (("zone", "us-east-1a"),))
    assert zone.significant
    assert zone.explained_by == (("image", "v14"), ("zone", "us-east-1a"))
    assert zone not in found.found


def test_two_labels_of_the_same_nodes_are_one_group_with_two_names() -> None:
    def known(number: int) -> dict[str, str]:
        return {"image": "ab"[number >= 20], "kernel": "56"[number >= 20], "z": str(number % 3)}

    nodes = {f"n{number}": known(number) for number in range(60)}
    sick = Outcome(None, frozenset(f"n{number}" for number in range(18)))
    first = labels.compare(nodes, [sick]).groups[0]
    assert first.terms == (("image", "a"),)
    assert first.also == ((("kernel", "5"),),)


def test_a_label_that_differs_on_every_node_costs_nothing() -> None:
    few = {f"n{number}": {"image": "a" if number < 12 else "b"} for number in range(40)}
    many = {name: {**known, "serial": name, "ip": f"10.0.0.{name}"} for name, known in few.items()}
    sick = Outcome(None, frozenset(f"n{number}" for number in range(10)))
    assert labels.compare(few, [sick]).groups[0].p_corrected == labels.compare(many, [sick]).groups[0].p_corrected


def test_only_the_labels_that_are_asked_for_are_compared() -> None:
    found = machines(Fleet(NODES, seed=2))
    sick = Outcome(None, frozenset(machine.name for machine in found if machine.sickness))
    compared_ = labels.compare({machine.name: machine.labels for machine in found}, [sick], ["zone", "team"])
    assert {label for group in compared_.groups for label, _ in group.terms} <= {"zone", "team"}


@pytest.mark.parametrize("sick", [0, 40])
def test_a_fleet_that_is_all_well_or_all_sick_has_nothing_to_compare(sick: int) -> None:
    nodes = {f"n{number}": {"zone": str(number % 2)} for number in range(40)}
    found = labels.compare(nodes, [Outcome(None, frozenset(f"n{number}" for number in range(sick)))])
    assert found.groups == ()


def test_very_many_values_are_cut_and_said() -> None:
    rng = random.Random(1)
    nodes = {f"n{number}": {"tag": str(rng.randrange(1200))} for number in range(5000)}
    found = labels.compare(nodes, [Outcome(None, frozenset(list(nodes)[:50]))])
    assert found.left_out > 0


def test_in_a_fleet_so_large_that_p_is_zero_the_cause_is_still_first() -> None:
    plant = Plant()
    found = compared(machines(Fleet(12_000, seed=1, plant=plant))).found
    assert found[0].p_value == 0.0
    assert set(found[0].terms) == set(plant.labels)
