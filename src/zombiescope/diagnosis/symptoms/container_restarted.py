"""Containers that are started for ever, by a restart policy, by kubelet or by a loop: no unit restarts meanwhile, and
the runtime's own is healthy. query/container_families.py says what sets them apart from a queue of jobs.

The recorder's own events about it count too: it remembers more than a short window shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from zombiescope.base.severity import Severity
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.symptom import Detector, Symptom
from zombiescope.query.container_families import Family, Loop, families, loops
from zombiescope.store.event import Event

EVENT = "container_restart"
IN_PLACE = frozenset({"id", "pod"})
"""What those of an event have in common, when they are one place that something is started in again."""


def find(facts: Facts) -> Iterator[Symptom]:
    known = families(facts.containers.values())
    found = loops(known)
    yield from (_of_loop(facts, loop) for loop in found)
    told = {identity for loop in found for identity in loop.family.members}
    images = {loop.family.image for loop in found} - {None}
    for event in _last_of_each(facts.events):
        fields = event.fields
        if fields.get("id") in told or (fields.get("same") == "image" and fields.get("image") in images):
            continue
        severity = _severity(fields, known)
        if severity is not None:
            yield _of_event(event, severity)


def _of_loop(facts: Facts, loop: Loop) -> Symptom:
    family = loop.family
    from_us = family.first_us or facts.start_us
    return Symptom(
        DETECTOR,
        from_us,
        max(from_us, family.last_us or facts.end_us),
        loop.text(),
        "warning" if loop.is_certain else "info",
        group=family.label,
        facts={
            "loop": loop.kind, "starts": family.starts, "restarts": family.restarts, "failed": family.failed,
            "code": family.last_code, "per_hour": family.per_hour, **_who(family),
        },
    )  # fmt: skip


def _who(family: Family) -> dict[str, Any]:
    newest = family.newest
    return {
        "container": newest.id, "name": newest.name, "image": newest.image, "pod": newest.pod,
        "namespace": newest.namespace, "restart_policy": newest.restart_policy, "requester": newest.requester,
        "requester_unit": newest.requester_unit,
    }  # fmt: skip


# --- what the recorder said ------------------------------------------------------------------------------------------


def _last_of_each(events: Iterable[Event]) -> list[Event]:
    """The last event of each family: it counts what those before it counted."""
    last: dict[tuple[Any, ...], Event] = {}
    for event in events:
        if event.kind == EVENT:
            fields = event.fields
            place = [fields.get(name) for name in ("pod", "namespace", "name")] if fields.get("pod") else []
            key = fields.get("image") if fields.get("same") == "image" else fields.get("id")
            last[tuple(map(str, place or [key]))] = event
    return list(last.values())


def _severity(fields: dict[str, Any], known: Iterable[Family]) -> Severity | None:
    """None: those that end with 0 under a new id each time are a queue of jobs."""
    if fields.get("same") in IN_PLACE:
        return "warning"
    same = [family for family in known if family.image == fields.get("image")]
    failed, succeeded = (sum(getattr(family, name) for family in same) for name in ("failed", "succeeded"))
    if fields.get("code") == 0 or succeeded > failed:
        return None
    return "warning" if fields.get("code") else "info"


def _of_event(event: Event, severity: Severity) -> Symptom:
    fields = event.fields
    pod = "/".join(str(part) for part in (fields.get("namespace"), fields.get("pod")) if part)
    place = pod or str(fields.get("name") or fields.get("image") or fields.get("id") or "a container")
    return Symptom(DETECTOR, event.at_us, event.at_us, event.text, severity, group=place, facts=dict(fields))


DETECTOR = Detector(
    kind="container_restarted",
    title="a container crash-loops",
    reported_when="a container was started three times or more, by a restart policy or by kubelet, or new ones of one "
    "kind keep failing; jobs that exit with 0 do not count",
    find=find,
    source="containers",
    role="victim",
    has_hog=False,
    is_remark=True,
)
