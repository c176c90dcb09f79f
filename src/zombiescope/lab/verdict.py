"""Was it named? Incidents, as `diagnose --json` prints them, against the truth of a scenario.

Other things may happen on the machine meanwhile, so the incident that counts is the worst one of those that concern
the scenario's own processes or cgroups; if none does, the worst of all, which then is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zombiescope.base.severity import rank
from zombiescope.lab.sandbox import MARK
from zombiescope.lab.scenario import Scenario

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """What the diagnosis said first about a scenario."""

    pattern: str | None = None
    hog: str | None = None
    culprit: str | None = None
    confidence: float | None = None
    severity: str | None = None
    summary: str | None = None
    strength: float | None = None

    def document(self) -> Document:
        return {
            name: getattr(self, name)
            for name in ("pattern", "hog", "culprit", "confidence", "severity", "summary", "strength")
        }


def best_match(scenario: Scenario, incidents: Sequence[Document], from_s: float, to_s: float) -> Found:
    """Of the incidents in a span, the worst first, the one that is about the scenario."""
    during = [one for one in incidents if float(one["from"]) < to_s and float(one["to"]) > from_s and one["causes"]]
    mine = [one for one in during if concerns(scenario, one)]
    if not (mine or during):
        return Found()
    chosen = (mine or during)[0]
    cause = chosen["causes"][0]
    return Found(
        cause["pattern"], _words(cause["hog"]), _words(cause["culprit"]), cause["confidence"], chosen["severity"],
        cause["summary"], cause.get("strength"),
    )  # fmt: skip


def concerns(scenario: Scenario, incident: Document) -> bool:
    actors = [actor for cause in incident["causes"] for actor in (cause["hog"], cause["culprit"]) if actor]
    names = {scenario.truth.hog, scenario.program_name} - {""}
    return any(actor.get("comm") in names or f"{MARK}{scenario.id}" in (actor.get("cgroup") or "") for actor in actors)


def right_pattern(scenario: Scenario, found: Found) -> bool:
    return found.pattern == scenario.truth.pattern


def right_culprit(scenario: Scenario, found: Found) -> bool:
    """Whether all that is to be said of who is to blame is among the words, and nobody who only carried it out; that
    everything is below the scenario's own cgroup is no help."""
    truth = scenario.truth
    said = (found.culprit or "").replace(f"{MARK}{scenario.id}", "")
    innocent = {name + end for name in truth.never for end in ("", ".service", ".socket")}
    return bool(truth.blames) and all(word in said for word in truth.blames) and innocent.isdisjoint(said.split())


def harm(scenario: Scenario, incidents: Sequence[Document]) -> list[str]:
    """Steps of any plan that would stop who only carries out what others ask for, each once."""
    names = "|".join(re.escape(name) for name in scenario.truth.never)
    if not names:
        return []
    unit = rf"(?:{names})\.(?:service|socket)"
    stops = rf"(?:systemctl|service|pkill|killall)\b[^;|&]*[\s/](?:{names})(?![\w.-])"
    forbidden = re.compile(rf"(?<![\w.@-])(?:{unit}|{stops})")
    steps = [step for one in incidents for cause in one["causes"] for step in cause["fix"]["plan"]]
    texts = [step[part] or "" for step in steps for part in ("command", "does", "undo", "verify")]
    return list(dict.fromkeys(text for text in texts if forbidden.search(text)))


def claim(incident: Document) -> Document:
    """What an incident says first, and how sure it is: nothing where it has no cause."""
    cause = incident["causes"][0] if incident["causes"] else {}
    sure = {name: cause[name] for name in ("pattern", "strength", "confidence") if name in cause}
    return {"summary": cause.get("summary"), **sure}


ALARMING = ("warning", "critical")


def false_alarms(incidents: Sequence[Document], from_s: float, to_s: float) -> list[Document]:
    """Warnings and critical incidents in the span of a healthy load, each once and as it was at its worst."""
    rang: dict[str, Document] = {}
    for one in incidents:
        if one["severity"] in ALARMING and float(one["from"]) < to_s and float(one["to"]) > from_s:
            before = rang.get(one["id"])
            if before is None or rank(one["severity"]) >= rank(before["severity"]):
                rang[one["id"]] = one
    return list(rang.values())


def _words(actor: Document | None) -> str | None:
    """A name, a unit, a container with its image and pod, and a cgroup, in one line."""
    if actor is None:
        return None
    pod = "/".join(str(actor[key]) for key in ("namespace", "pod") if actor.get(key))
    named = [str(actor[key]) for key in ("comm", "unit", "container_name", "image") if actor.get(key)]
    words = [*named, pod, str(actor.get("cgroup") or "")]
    return " ".join(word for word in words if word) or None
