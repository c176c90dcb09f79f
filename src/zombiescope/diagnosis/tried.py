"""What an experiment said of the suspect of an incident (`fix --try`): a link of the chain, with its p-value.

An experiment is the only thing here that shows a cause and not a coincidence: whether the suspect was frozen was drawn,
so nothing else that changed can have followed it. It is worth more than what any pattern measures: a conviction makes
the cause as good as certain, an acquittal leaves the frames and the numbers, and not the blame."""

from __future__ import annotations

from dataclasses import replace

from zombiescope.base.text import printable
from zombiescope.diagnosis.incident import Incident, Link
from zombiescope.diagnosis.thresholds import ACQUITTED_MOST, CONVICTED_LEAST, EXPERIMENT_LATE_US
from zombiescope.query.events import events
from zombiescope.store.event import Event
from zombiescope.store.reader import Recording

KIND = "experiment"
MOST_TEXT = 400


def told(recording: Recording, incidents: list[Incident]) -> list[Incident]:
    """The same incidents; the first cause of each with what the last experiment about it said."""
    if not any(one.causes for one in incidents):
        return incidents
    from_us = min(one.from_us for one in incidents)
    found = events(recording, from_us, max(one.to_us for one in incidents) + EXPERIMENT_LATE_US, kinds=(KIND,))
    return [_told(one, [event for event in found if _is_about(event, one)]) for one in incidents]


def _told(incident: Incident, about: list[Event]) -> Incident:
    if not about:
        return incident
    first, said = incident.causes[0], about[-1].fields
    chance, word = said.get("p_value"), said.get("verdict")
    text = printable(str(said.get("said") or about[-1].text))[:MOST_TEXT]
    value = chance if isinstance(chance, int | float) else None
    link = Link("experiment", text, value, "p", about[-1].at_us, "events")
    sure = first.confidence
    if word == "stopped":
        sure = max(sure, CONVICTED_LEAST)
    elif word == "went-on":
        sure = min(sure, ACQUITTED_MOST)
    return replace(incident, causes=(replace(first, chain=(*first.chain, link), confidence=sure), *incident.causes[1:]))


def _is_about(one: Event, incident: Incident) -> bool:
    """It names the suspect, who may be another by now: then it says nothing of this cause."""
    if one.source != "fix" or not incident.causes or one.fields.get("incident") != incident.id:
        return False
    suspect = incident.causes[0].culprit or incident.causes[0].hog
    return one.fields.get("suspect") == suspect.name
