"""What a service of the agent is, and what it is given.

A service is anything with a name and run(): it works until `stop` is set, and then returns within a few seconds. It may
raise: it is started again after a while, and that is said once. What it asks may hang; it gives its own time limits,
because a thread cannot be ended from outside. Before each wait it says how long that may take (`context.beat`): a
service that is silent for longer is reported as hung.

Imports of optional packages belong into run(), never to the top of its module: `--check-config` reads all sections on a
machine that has none of them (optional.py says what is missing).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from zombiescope.agent.health import Health, State
from zombiescope.agent.tally import Tally


@dataclass(slots=True)
class Progress:
    """How far the recording was counted; it outlives the process, in the supervisor."""

    counted_us: int | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What a service is given. `name` is its own."""

    name: str
    node_dir: Path
    """The directory that the recorder writes; it may not be there yet."""
    node: str
    """The name under which the node is recorded."""
    host: str
    """The machine's own name."""
    tally: Tally
    health: Health
    progress: Progress = field(default_factory=Progress)

    def say(self, state: State, text: str = "") -> None:
        """How this service is. Said once, however often it is called with the same words."""
        self.health.say(self.name, state, text)

    def beat(self, within_s: float) -> None:
        """This service lives, and beats again within this time; one that does not is reported as hung."""
        self.health.beat(self.name, within_s)

    def worked(self, times: int = 1) -> None:
        """This service did what it is for."""
        self.health.worked(self.name, times)

    def count(self, name: str, amount: float = 1.0, *labels: str) -> None:
        self.tally.add(name, amount, *labels)


class Service(Protocol):
    @property
    def name(self) -> str: ...

    def run(self, context: Context, stop: threading.Event) -> None: ...
