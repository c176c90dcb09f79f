"""Numbers that divide sick nodes from healthy ones: the best split, its exact p-value, and how it is named."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest

from zombiescope.fleet import exact, labels, numbers
from zombiescope.fleet.exact import Fisher
from zombiescope.fleet.labels import Outcome
from zombiescope.fleet.numbers import Variable

DAY = 86_400.0


def _age(values: dict[str, float]) -> Variable:
    return Variable(numbers.AGE, "age", "given", values, is_time=True)


@pytest.mark.parametrize("cuts", [(2, 3, 5, 6, 9), (1, 2, 3, 4, 5, 6, 7, 8, 9), (4,)])
def test_the_p_value_of_the_best_split_is_what_counting_every_order_gives(cuts: tuple[int, ...]) -> None:
    fisher = Fisher(10, 4)

    def best(places: tuple[int, ...]) -> float:
        found = 0.0
        for cut in cuts:
            hits = sum(place < cut for place in places)
            found = min(found, fisher.log_p(cut, hits), fisher.log_p_few(cut, hits))
        return found

    every = [best(places) for places in combinations(range(10), 4)]
    for value in sorted(set(every)):
        log_p = exact.best_split_log_p(10, 4, cuts, value)
        counted = sum(each <= value + 1e-9 for each in every) / len(every)
        if log_p < 0:
            assert math.exp(log_p) == pytest.approx(counted)


def test_a_stratified_test_sees_what_is_left_inside_the_strata() -> None:
    # Ten nodes of which all five of the group are sick, and ten of which none is: the first alone says it all.
    alone = Fisher(10, 5).p_value(5, 5)
    assert exact.stratified_p([(10, 5, 5, 5), (10, 0, 5, 0)]) == pytest.approx(alone)
    assert exact.stratified_p([(10, 5, 5, 0), (10, 0, 5, 0)], few=True) == pytest.approx(alone)
    assert exact.stratified_p([(10, 10, 5, 5), (10, 0, 5, 0)]) == 1.0


def test_numbers_without_a_cause_are_found_no_more_often_than_chance_allows() -> None:
    found = 0
    for seed in range(200):
        rng = random.Random(seed)
        nodes = [f"n{number}" for number in range(60)]
        sick = frozenset(rng.sample(nodes, 12))
        split = numbers.best_split(_age({node: rng.random() for node in nodes}), nodes, sick)
        assert split is not None
        found += split[1] <= math.log(0.05)
    assert found <= 20


def test_both_directions_are_found_and_named() -> None:
    values = {f"n{number:02d}": number * DAY + 3600 for number in range(40)}
    old = frozenset(name for name, value in values.items() if value >= 12 * DAY)
    young = frozenset(values) - old
    for sick, text, is_above in ((old, "up for 12 d or longer", True), (young, "up for less than 12 d", False)):
        found = numbers.best_split(_age(values), sorted(values), sick)
        assert found is not None
        split, log_p = found
        assert (split.text, split.is_above) == (text, is_above)
        assert (split.below, split.above) == (11 * DAY + 3600, 12 * DAY + 3600)
        assert log_p < math.log(1e-9)


def test_a_number_that_most_nodes_lack_concludes_nothing() -> None:
    nodes = [f"n{number}" for number in range(40)]
    few = {node: float(place) for place, node in enumerate(nodes[:15])}
    assert numbers.best_split(_age(few), nodes, frozenset(nodes[:5])) is None


def test_labels_that_are_numbers_are_compared_as_numbers() -> None:
    nodes = {f"n{number:02d}": {"firmware": str(1000 + number % 20), "name": f"x{number}"} for number in range(80)}
    sick = frozenset(name for name, known in nodes.items() if int(known["firmware"]) >= 1013)
    found = labels.compare(nodes, [Outcome(None, sick)])
    assert found.found[0].split is not None
    assert found.found[0].split.variable.name == "firmware"
    assert found.found[0].split.above == 1013
    assert [each.name for each, _ in found.quarters] == ["firmware"]


def test_a_value_that_is_spared_is_found_where_there_are_three() -> None:
    rng = random.Random(1)
    nodes = {f"n{number:03d}": {"zone": "abc"[number % 3]} for number in range(150)}
    sick = frozenset(name for name, known in nodes.items() if known["zone"] != "b" and rng.random() < 0.5)
    first = labels.compare(nodes, [Outcome(None, sick)]).found[0]
    assert (first.terms, first.spared, first.affected) == ((("zone", "b"),), True, 0)


def test_of_two_values_the_sick_one_is_reported_and_the_spared_one_is_not_repeated() -> None:
    nodes = {f"n{number:02d}": {"zone": "ab"[number % 2]} for number in range(40)}
    found = labels.compare(nodes, [Outcome(None, frozenset(name for name in nodes if nodes[name]["zone"] == "a"))])
    assert [(group.value, group.spared) for group in found.groups] == [("a", False)]
    assert found.tried == 2


def test_at_equal_strength_and_beside_a_stray_fault_the_named_cause_wins() -> None:
    nodes = {f"n{number:03d}": {"image": "v2" if number < 20 else "v1"} for number in range(120)}
    names = sorted(nodes)
    caused = frozenset(names[:14])
    for stray in (frozenset[str](), frozenset(names[14:15])):
        outcomes = [Outcome(None, caused | stray), Outcome("zombie-memcg by leaky", caused)]
        assert labels.compare(nodes, outcomes).found[0].cause == "zombie-memcg by leaky"


@pytest.mark.parametrize(
    ("below", "above", "is_time", "expected"),
    [(11.7 * DAY, 12.3 * DAY, True, 12 * DAY), (3.2 * DAY, 3.4 * DAY, True, 81 * 3600.0),
     (28_423, 29_100, False, 29_000), (4, 5, False, 5), (0.2, 0.4, False, 0.4)],
)  # fmt: skip
def test_thresholds_are_round_and_divide_the_values(below: float, above: float, is_time: bool, expected: float) -> None:
    assert numbers.between(below, above, is_time=is_time) == expected


def test_durations_have_two_units_at_most() -> None:
    assert [numbers.duration(value) for value in (12 * DAY, 6.92 * DAY, 90, 0)] == [
        "12 d",
        "6 d 22 h",
        "1 min 30 s",
        "0 s",
    ]
