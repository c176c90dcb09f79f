"""The heartbeat file of the services' process: how each of them is, every two seconds (store/health.py).

A process that did not run itself, because it was stopped or the node is starved, blames none of its services for it:
what is late is excused by as much as the process was late.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from zombiescope.agent import node_parts
from zombiescope.agent.health import MARGIN_S, Health
from zombiescope.agent.metrics.cost_account import resident_bytes
from zombiescope.store import health, locate
from zombiescope.store.health import Part

SAY_AFTER = 5
"""Turns: the recorder makes the runtime directory when it starts."""


class Heartbeat:
    """The services' heartbeat file. A runtime directory that cannot be written is logged once, and tried again."""

    def __init__(self, node_dir: Path, own: Health, say: Callable[[str], None]) -> None:
        self._node_dir, self._health, self._say = node_dir, own, say
        self._path = health.path_of(locate.runtime_directory(), os.getpid())
        self._since = time.time()
        self._published_s = time.monotonic()
        self._turns = 0
        self._is_said = False

    def begin(self) -> None:
        health.clear_dead(self._path.parent, self._node_dir, node_parts.SERVICES)

    @property
    def wait_s(self) -> float:
        """Until the next turn."""
        return max(0.0, self._published_s + health.EVERY_S - time.monotonic())

    def publish(self) -> None:
        """If it is time."""
        if self._turns and self.wait_s > 0:
            return
        now_s = time.monotonic()
        late_s = now_s - self._published_s - health.EVERY_S
        if late_s > MARGIN_S / 2:
            self._health.excuse(late_s)
        self._published_s, self._turns = now_s, self._turns + 1
        own = Part(
            node_parts.SERVICES, "ok", self._since, time.time(), self._turns, pid=os.getpid(),
            rss_bytes=resident_bytes("self"),
        )  # fmt: skip
        try:
            health.publish(self._path, node_parts.SERVICES, self._node_dir, [own, *self._health.parts()])
        except OSError as error:
            if not self._is_said and self._turns > SAY_AFTER:
                self._is_said = True
                self._say(f"no heartbeat of the services in {self._path.parent}: {error.strerror}")

    def end(self) -> None:
        health.withdraw(self._path)
