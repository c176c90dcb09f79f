"""A plan: what is done about one incident or one finding, in which order, and how to see that it helped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from zombiescope.model.plans.step import Part, State, Step


@dataclass(frozen=True, slots=True)
class Plan:
    target: str
    """What it is for, as the log knows it: "incident:3f2a" or "finding:endless-restart:ecs.service"."""
    summary: str
    steps: tuple[Step, ...]
    pattern: str | None = None
    """The root cause that it ends; None for a finding."""
    node: str | None = None
    seen: tuple[tuple[int, int], ...] = ()
    """When the trouble was there, from and to in Unix microseconds: how long a quiet time means something."""

    def part(self, part: Part) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.part == part)

    @property
    def changes(self) -> tuple[Step, ...]:
        """What --apply does. A last resort has no action unless a person asked for it by name."""
        return tuple(step for step in self.steps if step.action is not None)

    @property
    def why_nothing(self) -> str:
        """Where --apply has nothing to do; else empty."""
        return "" if self.changes else "nothing here is safe to be done by a program; the steps are for a person"

    def with_states(self, states: Iterable[tuple[str, State, str]]) -> Plan:
        """With what became of its steps: their id, state and why."""
        known = {name: (state, why) for name, state, why in states}
        steps = [
            replace(step, state=known[step.id][0], why=known[step.id][1]) if step.id in known else step
            for step in self.steps
        ]
        return replace(self, steps=tuple(steps))

    def document(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "node": self.node,
            "pattern": self.pattern,
            "summary": self.summary,
            "steps": [step.document() for step in self.steps],
            "nothing_to_apply": self.why_nothing or None,
        }


def distinct(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Each id once: two causes may say the same; of different steps that share one, the later gets a number."""
    found: dict[str, Step] = {}
    for step in steps:
        name, number = step.id, 2
        while name in found and found[name] != replace(step, id=name):
            name, number = f"{step.id}#{number}", number + 1
        found.setdefault(name, replace(step, id=name))
    return tuple(found.values())
