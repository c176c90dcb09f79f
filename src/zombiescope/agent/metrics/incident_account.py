"""Incidents by cause and state, and what they cost in seconds of GPUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from zombiescope.agent.incidents import IncidentWatch, cause_of, entries, number
from zombiescope.agent.metrics import families
from zombiescope.agent.tally import Exemplar, Tally

MOST_ID = 64


class IncidentAccount:
    """An incident counts once, under the cause that it has when it is first known; one that began before we did was
    counted by whoever ran then."""

    def __init__(self, tally: Tally, node_dir: Path, since_s: float) -> None:
        self._tally = tally
        self._watch = IncidentWatch(node_dir)
        self._since_s = since_s
        self._lost: dict[tuple[str, str], float] = {}
        self._looks = 0

    def poll(self) -> None:
        changes = self._watch.poll()
        self._tally.add(families.LOOKS, self._watch.writes - self._looks)
        self._looks = self._watch.writes
        for change in changes:
            incident = change.incident
            if change.before is None and number(incident.get("to")) >= self._since_s:
                self._tally.add(families.INCIDENTS, 1, *_labels(incident))
                example = Exemplar((("incident", str(incident.get("id"))[:MOST_ID]),), number(incident.get("from")))
                self._tally.exemplify(families.INCIDENTS, example, *_labels(incident))
            self._take_cost(incident)
        if changes or not self._looks:
            self._publish_open()

    def _publish_open(self) -> None:
        open_ones = [one for one in self._watch.known.values() if one.get("state") == "open"]
        self._tally.replace(families.INCIDENT_OPEN, ((_labels(one), 1.0) for one in open_ones))

    def _take_cost(self, incident: dict[str, Any]) -> None:
        """What an incident cost is known better from look to look: what was added counts."""
        for one in entries(incident.get("cost"), "gpus"):
            key, lost_s = (str(incident.get("id")), str(one.get("gpu"))), number(one.get("seconds_lost"))
            gained = lost_s - self._lost.get(key, 0.0)
            if gained > 0:
                self._lost[key] = lost_s
                self._tally.add(families.GPU_LOST, gained, key[1])
        while len(self._lost) > 4096:
            self._lost.pop(next(iter(self._lost)))


def _labels(incident: dict[str, Any]) -> tuple[str, str]:
    return cause_of(incident), str(incident.get("severity") or "info")
