"""Six kinds of fleets, each with a truth that a report has to find: `python -m benchmarks.fleets.six`.

pair        sick where two labels meet, with stray faults elsewhere
age         sick when up for twelve days or more; one zone is rebooted every week, and no label matters
two         two causes at once, each with its own label
none        stray faults only
confounded  the label that matters and two others are always together
blind       as `pair`, but a third of the nodes is not judged: most of the sick ones among them
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.fleets.days import Sickness
from benchmarks.fleets.faults import OTHERS, ZOMBIES, Fault
from benchmarks.fleets.nodes import KERNELS, Machine
from zombiescope.fleet import labels
from zombiescope.fleet.labels import Comparison, Group, Outcome
from zombiescope.fleet.numbers import AGE, Variable
from zombiescope.fleet.report import cause_name

DAY_S = 86_400.0
SICK_AFTER_S = 12 * DAY_S
HOURS = 3


@dataclass(frozen=True, slots=True)
class Truth:
    """`is_first`: whether a group is what was planted."""

    machines: list[Machine]
    is_first: Callable[[Group], bool]


def _machine(rng: random.Random, number: int) -> Machine:
    image = rng.choice(tuple(KERNELS))
    said = {
        "image": image, "zone": rng.choice("abc"), "pool": rng.choice(("train", "serve", "batch")),
        "team": rng.choice(("vision", "speech", "llm", "ads", "search", "infra")), "rack": f"r{rng.randrange(20):02d}",
        "serial": f"S{number:05d}",
    }  # fmt: skip
    said |= {f"l{each}": rng.choice("pqrs") for each in range(12)}
    return Machine(f"n{number:03d}", said, KERNELS[image], None, None, rng.uniform(0, 30) * DAY_S)


def _with(machine: Machine, rng: random.Random, fault: Fault) -> Machine:
    since = rng.randrange(10, HOURS * 60 // 2)
    return replace(machine, sickness=Sickness(fault, since, (since + 5,)))


def _strays(rng: random.Random, machines: list[Machine], chance: float) -> list[Machine]:
    """Faults that happen to any node that has none."""
    return [
        _with(machine, rng, rng.choice(OTHERS)) if machine.sickness is None and rng.random() < chance else machine
        for machine in machines
    ]


def _planted(
    rng: random.Random, machines: list[Machine], fault: Fault, rate: float, where: Callable[[Machine], bool]
) -> list[Machine]:
    return [_with(each, rng, fault) if where(each) and rng.random() < rate else each for each in machines]


def _has(group: Group, *terms: tuple[str, str]) -> bool:
    return set(group.terms) == set(terms) and not group.spared


def pair(seed: int) -> Truth:
    rng = random.Random(seed)
    made = [_machine(rng, number) for number in range(160)]
    where = ("image", "v14"), ("zone", "a")
    made = _planted(rng, made, ZOMBIES, 0.85, lambda each: all(each.labels[key] == value for key, value in where))
    return Truth(_strays(rng, made, 0.03), lambda group: _has(group, *where))


def age(seed: int) -> Truth:
    rng = random.Random(seed)
    made = [_machine(rng, number) for number in range(120)]
    made = [replace(each, up_s=(each.up_s or 0) % (7 * DAY_S)) if each.labels["zone"] == "b" else each for each in made]
    made = _planted(rng, made, ZOMBIES, 1.0, lambda each: (each.up_s or 0) >= SICK_AFTER_S)

    def is_first(group: Group) -> bool:
        split = group.split
        return split is not None and split.variable.name == AGE and split.is_above and (
            split.below - HOURS * 3600 < SICK_AFTER_S <= split.above
        )  # fmt: skip

    return Truth(_strays(rng, made, 0.02), is_first)


def two(seed: int) -> Truth:
    rng = random.Random(seed)
    made = [_machine(rng, number) for number in range(180)]
    made = _planted(rng, made, OTHERS[0], 0.5, lambda each: each.labels["team"] == "llm")
    made = _planted(rng, made, ZOMBIES, 0.7, lambda each: each.labels["image"] == "v14")

    def is_first(group: Group) -> bool:
        return _has(group, ("image", "v14")) and str(group.cause).startswith(ZOMBIES.pattern)

    return Truth(_strays(rng, made, 0.02), is_first)


def none(seed: int) -> Truth:
    rng = random.Random(seed)
    return Truth(_strays(rng, [_machine(rng, number) for number in range(120)], 0.2), lambda _: False)


def confounded(seed: int) -> Truth:
    rng = random.Random(seed)
    made = [_machine(rng, number) for number in range(120)]
    made = [
        replace(each, labels={**each.labels, "zone": "d" if each.labels["image"] == "v14" else rng.choice("abc")})
        for each in made
    ]
    made = _planted(rng, made, ZOMBIES, 0.7, lambda each: each.labels["image"] == "v14")

    def is_first(group: Group) -> bool:
        names = {group.terms, *group.also}
        return {(("image", "v14"),), (("zone", "d"),), (("kernel", KERNELS["v14"]),)} <= names

    return Truth(_strays(rng, made, 0.0), is_first)


def blind(seed: int) -> Truth:
    rng = random.Random(seed)
    made = [_machine(rng, number) for number in range(360)]
    where = ("image", "v14"), ("zone", "a")
    made = _planted(rng, made, ZOMBIES, 0.85, lambda each: all(each.labels[key] == value for key, value in where))
    made = [
        replace(each, diagnosed=rng.random() > (0.5 if each.sickness is not None else 0.3))
        for each in _strays(rng, made, 0.02)
    ]
    return Truth(made, lambda group: _has(group, *where) and group.rest_affected <= 0.1 * group.rest_nodes)


ALL: dict[str, Callable[[int], Truth]] = {
    "pair": pair, "age": age, "two": two, "none": none, "confounded": confounded, "blind": blind,
}  # fmt: skip


def compared(found: list[Machine]) -> Comparison:
    """What a report says of machines, without files."""
    judged = [machine for machine in found if machine.diagnosed]
    by_cause: dict[str, set[str]] = {}
    for machine in judged:
        if machine.sickness is not None:
            fault = machine.sickness.fault
            by_cause.setdefault(cause_name(fault.pattern, fault.culprit), set()).add(machine.name)
    every = Outcome(None, frozenset().union(*by_cause.values()))
    outcomes = [every, *(Outcome(name, frozenset(nodes)) for name, nodes in by_cause.items() if len(nodes) >= 3)]
    known = {machine.name: {**machine.labels, "kernel": machine.kernel} for machine in judged}
    apart = {machine.name: machine.labels for machine in found if not machine.diagnosed}
    ages = {machine.name: machine.up_s + HOURS * 3600 for machine in found if machine.up_s is not None}
    return labels.compare(known, outcomes, None, [Variable(AGE, "age", "given", ages, is_time=True)], apart)


def right(kind: str, seeds: range) -> int:
    """In how many fleets of a kind the report is right: what was planted comes first, or nothing is found."""
    count = 0
    for seed in seeds:
        truth = ALL[kind](seed)
        found = compared(truth.machines).found
        count += not found if kind == "none" else bool(found) and truth.is_first(found[0])
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    asked = parser.parse_args()
    for kind in ALL:
        print(f"{kind:12} right in {right(kind, range(asked.seeds))} of {asked.seeds}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
