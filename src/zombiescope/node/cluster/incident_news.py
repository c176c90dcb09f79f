"""What an incident is to a cluster: a reason in one word, a sentence, and which node condition it means.

Made from the documents that the doctor notes (incidents.json). Patterns name the reason; an incident without a cause is
named by its symptom. Words in the sentence are other people's: bounded, on one line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from zombiescope.base.text import printable

MAX_MESSAGE = 900
"""An Event's message may have 1,024 bytes."""
CORE_STARVATION, CGROUP_LEAK, UNIT_CRASH_LOOP = "CoreStarvation", "CgroupLeak", "UnitCrashLoop"
HARDWARE_FAULT = "HardwareFault"
CONDITIONS = (CORE_STARVATION, CGROUP_LEAK, UNIT_CRASH_LOOP, HARDWARE_FAULT)
REPAIRED = frozenset({"COMPONENT_RESET", "RESTART_VM", "REPLACE_VM"})
"""What a diagnosis asks to be done to a machine that is broken."""
ANY = "any"
"""Whatever an open incident means; not a condition of a node, but what other tools may ask for."""
LEAKS = frozenset({"zombie-memcg", "cgroup-litter", "session-leak", "rstat-lock"})
"""Patterns of the diagnosis."""
LEAKING = frozenset({"dying_cgroups_grow", "memory_cgroups"})
STARVED = frozenset({"core_saturated", "nic_starved", "ksoftirqd_waits", "stall", "machine_stall", "rt_hog"})
UNIT_RESTARTED, CONTAINER_RESTARTED = "unit_restarted", "container_restarted"
LOOP = 3
"""So many restarts of a unit are a loop; of containers only loops are reported."""


@dataclass(frozen=True, slots=True)
class Subject:
    """An object of the cluster that an Event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class News:
    id: str
    reason: str
    message: str
    is_open: bool
    is_warning: bool
    conditions: frozenset[str]
    from_s: float
    subject: str = ""
    """Reports with the same reason and subject are one Event."""
    over_reason: str | None = None
    """None: the reason, with "Over" behind it."""
    about: Subject | None = None
    """None: the Node."""


def news(incident: Mapping[str, Any]) -> News | None:
    """None for what is no incident, or is too small for anybody else to hear of."""
    identity = incident.get("id")
    severity = incident.get("severity")
    if not isinstance(identity, str) or severity == "info":
        return None
    causes = [one for one in _list(incident.get("causes")) if isinstance(one, Mapping)]
    symptoms = [one for one in _list(incident.get("symptoms")) if isinstance(one, Mapping)]
    pattern = str(causes[0].get("pattern")) if causes else None
    kinds = [str(one.get("kind")) for one in symptoms]
    name = pattern or (kinds[0] if kinds else None)
    if name is None:
        return None
    since = incident.get("from")
    return News(
        identity[:80],
        _camel(name),
        _message(causes, symptoms),
        incident.get("state") == "open",
        severity != "info",
        frozenset(_conditions(pattern, causes, symptoms)),
        float(since) if isinstance(since, int | float) else 0.0,
    )


def died_of(incident: Mapping[str, Any], jobs: Mapping[str, Subject]) -> Iterable[News]:
    """The answer for each of these jobs that died of an incident, to be told where people ask: at the job. `jobs` by
    the name under which Ray knows them."""
    one = news(incident)
    for fate in _list(incident.get("jobs")) if one is not None else ():
        about = jobs.get(str(fate.get("job"))) if isinstance(fate, Mapping) and fate.get("fate") == "died" else None
        if one is not None and about is not None:
            why = f"{fate.get('why')}. " if fate.get("why") else ""
            said = bounded(f"died of an incident on its node: {why}{one.message}")
            subject = f"{about.kind} {about.namespace}/{about.name}"
            identity = f"{one.id}:{about.namespace}/{about.name}"
            yield replace(one, id=identity, message=said, is_open=True, subject=subject, about=about)


def _conditions(
    pattern: str | None, causes: list[Mapping[str, Any]], symptoms: list[Mapping[str, Any]]
) -> Iterable[str]:
    known = {str(one.get("kind")) for one in symptoms}
    if pattern in LEAKS or known & LEAKING:
        yield CGROUP_LEAK
    if known & STARVED:
        yield CORE_STARVATION
    if any(_is_loop(one) for one in symptoms):
        yield UNIT_CRASH_LOOP
    if causes and str(causes[0].get("repair")) in REPAIRED:
        yield HARDWARE_FAULT


def _is_loop(symptom: Mapping[str, Any]) -> bool:
    if symptom.get("kind") != UNIT_RESTARTED:
        return symptom.get("kind") == CONTAINER_RESTARTED
    counts = (symptom.get("times"), symptom.get("so_far"))
    return any(isinstance(count, int) and count >= LOOP for count in counts)


def _message(causes: list[Mapping[str, Any]], symptoms: list[Mapping[str, Any]]) -> str:
    said = [str(causes[0].get("summary"))] if causes else ["cause not known"]
    said += [str(one.get("text")) for one in symptoms[:1] if one.get("text")]
    fix = causes[0].get("fix") if causes else None
    if isinstance(fix, Mapping) and fix.get("summary"):
        said.append(f"Fix: {fix['summary']}")
    return bounded(". ".join(one.rstrip(".") for one in said))


def bounded(text: str) -> str:
    """In bytes, as the API server counts."""
    return printable(text).encode()[:MAX_MESSAGE].decode(errors="ignore")


def _camel(name: str) -> str:
    """zombie-memcg is ZombieMemcg: an Event's reason is one word."""
    plain = "".join(each if each.isascii() and each.isalnum() else "_" for each in name[:60])
    return "".join(part.capitalize() for part in plain.split("_")) or "Incident"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
