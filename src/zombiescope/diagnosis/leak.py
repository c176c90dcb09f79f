"""Who leaks memory cgroups: the ladder from what was seen to what fits.

1. The ledger saw the cgroups being made and removed: path and maker are known, and how many are still dying.
2. Under systemd every cgroup is made by pid 1, so there the path is the identity: /system.slice/ecs.service.
3. Zombies older than the recorder are counted by their surviving parent (cgroup2): where that is a unit with cgroups of
   its own it is the one; where it is a slice, a unit of that slice that restarts is.
4. Otherwise (zombies older than the recorder, or a container runtime that makes cgroups for others) the growth is
   matched with what restarts: a unit whose restarts come at the same rate as zombies. A supervisor that stays up while
   it restarts containers has no restarts of its own; its containers' churn does.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from zombiescope._time import HOUR_US
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.views.cgroups import CgroupsView, Leak
from zombiescope.views.events import events

LEAST_SHARE = 0.3
_UNIT = re.compile(r"([^/]+\.(?:service|scope|socket|slice))(?:/|$)")
FITS = (0.4, 2.5)
"""Zombies per restart that still count as the same rhythm: a container is about two cgroups, some are released."""


@dataclass(frozen=True, slots=True)
class Culprit:
    actor: Actor
    how: str
    """The sentence that says how it is known."""
    value: float | int | None
    unit: str | None
    source: str
    leak: Leak | None = None


def attribute(facts: Facts, view: CgroupsView) -> Culprit | None:
    """The best rung that holds; None when nothing shows it."""
    return _by_ledger(view) or _by_parent(facts, view) or _by_rhythm(facts, view)


def _by_ledger(view: CgroupsView) -> Culprit | None:
    leaks = [leak for leak in view.leaks if leak.path and leak.dying > 0]
    if not leaks or leaks[0].dying < LEAST_SHARE * sum(leak.dying for leak in leaks):
        return None
    worst = leaks[0]
    unit = worst.creator.unit or unit_of(worst.path)
    actor = Actor(
        comm=worst.creator.comm,
        pid=worst.creator.pid,
        unit=unit,
        cgroup=worst.path,
        container=worst.creator.container,
    )
    how = f"{worst.dying:,} of the cgroups under {worst.path} are dying" + (
        f"; {worst.creator.comm} made {worst.created:,} of them" if worst.creator.comm and worst.created else ""
    )
    return Culprit(actor, how, worst.dying, "cgroups", "leaks", worst)


def unit_of(path: str) -> str | None:
    """The innermost unit in a cgroup's path that is not a slice; else the slice."""
    units = _UNIT.findall(path)
    named = [unit for unit in units if not unit.endswith(".slice")]
    return named[-1] if named else units[-1] if units else None


def _by_parent(facts: Facts, view: CgroupsView) -> Culprit | None:
    """The directory that most dying cgroups were directly below."""
    at_us = view.memory.at_us if view.memory else facts.end_us
    parents = facts.gauges("dying", "own", at_us)
    if not parents:
        return None
    parent, dying = max(parents.items(), key=lambda each: each[1])
    if dying < LEAST_SHARE * sum(parents.values()):
        return None
    unit = unit_of(parent)
    how = f"{dying:,} dying cgroups were directly below {parent}"
    if unit is None or unit.endswith(".slice"):
        restarts = restarts_per_hour(facts)
        if not restarts:
            return Culprit(Actor(unit=unit, cgroup=parent), how, dying, "cgroups", "counters")
        unit, rate = restarts[0]
        how += f", and {unit} restarts {rate:,.0f} times an hour"
    return Culprit(Actor(unit=unit, cgroup=parent), how, dying, "cgroups", "counters")


def _by_rhythm(facts: Facts, view: CgroupsView) -> Culprit | None:
    """A unit whose restarts (or a container runtime whose containers) come as fast as zombies do."""
    growth = view.growth_per_hour
    restarts = restarts_per_hour(facts)
    if not restarts:
        return None
    unit, rate = restarts[0]
    if growth is not None and growth > 0 and not FITS[0] <= growth / rate <= FITS[1]:
        return None
    how = f"{unit} restarts {rate:,.0f} times an hour" + (
        f" and zombies grow by {growth:,.0f} an hour" if growth else ""
    )
    return Culprit(Actor(unit=unit), how, round(rate, 1), "restarts/hour", "events")


def restarts_per_hour(facts: Facts) -> list[tuple[str, float]]:
    """Units by how often they restarted in the hour before the window's end; the most frequent first."""
    return facts.always(("restarts", facts.end_us), lambda: _restarts_per_hour(facts))


def _restarts_per_hour(facts: Facts) -> list[tuple[str, float]]:
    start_us = max(facts.recording.start_us, facts.end_us - HOUR_US)
    counts: Counter[str] = Counter()
    for event in events(facts.recording, start_us, facts.end_us, kinds={"unit_restart"}):
        unit = event.fields.get("unit")
        if isinstance(unit, str):
            times = event.fields.get("delta")
            counts[unit] += times if isinstance(times, int) and times > 0 else 1
    hours = max(facts.end_us - start_us, 1) / HOUR_US
    return [(unit, count / hours) for unit, count in counts.most_common()]
