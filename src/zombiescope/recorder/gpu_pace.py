"""How often the GPUs are asked: rarely enough that it costs ALLOWED of a core, whatever a question costs on this node.

Samples wait in the driver for 14 s, so they are asked for every 5 s, at most 10; clocks and temperatures every 10 s, at
most 60; slow counters every minute, at most every ten. What rounds of each kind cost is measured, and where all of them
together would cost more than is allowed all become rarer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ALLOWED = 0.002
"""Of a core, for up to 8 GPUs; an eighth of it for each one more."""
SAMPLES, FIGURES, COUNTERS = "samples", "figures", "counters"
EVERY_S = {SAMPLES: (5.0, 10.0), FIGURES: (10.0, 60.0), COUNTERS: (60.0, 600.0)}
"""At the most often, at the least often."""
_NEW = 0.3


@dataclass(slots=True)
class Pace:
    gpus: int
    cost_s: dict[str, float] = field(default_factory=dict)
    due_s: dict[str, float] = field(default_factory=dict)

    def due(self, now_s: float) -> list[str]:
        return [kind for kind in EVERY_S if now_s >= self.due_s.get(kind, now_s)]

    def asked(self, kind: str, now_s: float, cost_s: float) -> None:
        """A round of this kind was asked at that time, and cost so much CPU."""
        before = self.cost_s.get(kind)
        self.cost_s[kind] = cost_s if before is None else before + _NEW * (cost_s - before)
        self.due_s[kind] = now_s + self.every_s(kind)

    def every_s(self, kind: str) -> float:
        often, rare = EVERY_S[kind]
        return min(rare, often * max(1.0, self.load() / self.allowed))

    def load(self) -> float:
        """What it would cost, as a share of a core, if all were asked as often as can be."""
        return sum(cost_s / EVERY_S[kind][0] for kind, cost_s in self.cost_s.items())

    @property
    def allowed(self) -> float:
        return ALLOWED * max(1.0, self.gpus / 8)

    def wait_s(self, now_s: float) -> float:
        return max(0.0, min(self.due_s.values(), default=now_s) - now_s)
