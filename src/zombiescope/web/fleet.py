"""The fleet that a server shows: its report, made once when it is first asked for and again when it is old, and the
recordings of its nodes, opened where they lie.

Reading a fleet takes a while, so a thread does it; meanwhile the answer says how far it is. Nothing is copied: a node's
recording is read from the directory or the object store, and only what a view needs of it.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

from zombiescope.base.errors import UserError
from zombiescope.fleet import plan
from zombiescope.fleet.engines.local import LocalEngine
from zombiescope.fleet.gather import gather
from zombiescope.fleet.report import make
from zombiescope.fleet.results import default_directory
from zombiescope.web.held_recording import HeldRecording
from zombiescope.web.recordings import KEY
from zombiescope.web.refusal import Refusal

AGAIN_S = 600.0
LAST_US = 86_400_000_000
MOST_NODES, MOST_INCIDENTS, MOST_HELD = 2_000, 1_000, 8


class FleetRoot:
    """`place`: a directory or the address of an object store."""

    def __init__(self, place: str, results: Path | None = None, last_us: int = LAST_US) -> None:
        self.place = place
        self._results = results or default_directory(place)
        self._last_us = last_us
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {
            "state": "reading",
            "root": place,
            "done": 0,
            "of": 0,
            "why": None,
            "report": None,
        }
        self._made = 0.0
        self._reading = False
        self._held: OrderedDict[str, HeldRecording] = OrderedDict()
        self._prefixes: dict[str, str] = {}

    def document(self) -> dict[str, Any]:
        """As far as it is known; asking begins what is missing."""
        with self._lock:
            if not self._reading and (not self._made or time.monotonic() - self._made > AGAIN_S):
                self._reading = True
                threading.Thread(target=self._read, daemon=True).start()
            return dict(self._state)

    def _read(self) -> None:
        try:
            found = gather(self.place, self._results, LocalEngine(), self._last_us, None, self._progress)
            try:
                report = shortened(make(found, "duckdb").document())
            finally:
                found.statistics.close()
            state = {"state": "ready", "why": None, "report": report}
        except (UserError, OSError) as error:
            state = {"state": "failed", "why": str(error)}
        except Exception as error:  # noqa: BLE001  a thread that ends silently leaves a page that waits for ever
            state = {"state": "failed", "why": f"{type(error).__name__}: {error}"}
        with self._lock:
            self._state |= state
            self._made, self._reading = time.monotonic(), False

    def _progress(self, done: int, of: int) -> None:
        with self._lock:
            self._state |= {"done": done, "of": of}

    # --- recordings of nodes -----------------------------------------------------------------------------------------

    def first(self) -> str:
        """The key of some node. Raises Refusal."""
        if not self._prefixes:
            self._list()
        if not self._prefixes:
            raise Refusal(503, f"there is no node in {self.place}", "it is expected to hold node=NAME directories")
        return KEY + min(self._prefixes)

    def named(self, key: str) -> HeldRecording:
        """The recording of a node; a few are held open. Raises Refusal."""
        node = key.removeprefix(KEY)
        with self._lock:
            held = self._held.get(node)
        if held is None:
            if node not in self._prefixes:
                self._list()
            if node not in self._prefixes:
                raise Refusal(404, f"there is no node {node!r} in the fleet", "GET /api/v1/fleet lists them")
            held = HeldRecording(key, plan.below(self.place, self._prefixes[node]), node)
        with self._lock:
            self._held[node] = held
            self._held.move_to_end(node)
            gone = [self._held.popitem(last=False)[1] for _ in range(len(self._held) - MOST_HELD)]
        for each in gone:
            each.close()
        return held

    def _list(self) -> None:
        with suppress(OSError, UserError):
            self._prefixes = plan.node_prefixes(self.place)

    def close(self) -> None:
        for held in self._held.values():
            held.close()


def shortened(report: dict[str, Any]) -> dict[str, Any]:
    """What a page can show: sick nodes first, and of very many nodes only some."""
    nodes = sorted(report["nodes"], key=lambda node: (not node["sick"], -(node["saturated_s"] or 0), node["node"]))
    incidents = sorted(report["incidents"], key=lambda one: -one["from"])
    kept = {
        "nodes": nodes[:MOST_NODES], "nodes_in_all": len(nodes), "incidents": incidents[:MOST_INCIDENTS],
        "incidents_in_all": len(incidents),
    }  # fmt: skip
    return {**report, **kept}
