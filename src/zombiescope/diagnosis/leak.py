"""Who leaks memory cgroups: the ladder from what was seen to what fits.

1. The ledger saw the cgroups being made and removed: path and maker are known, and how many are still dying. Lines of
   one culprit count together: a pod's own cgroup and those of its containers are one leak.
2. A maker who only carries out (pid 1, runc, kubelet) is followed to the containers of that path, and from them to who
   asked: a script, a restart policy, a pod. Else the node's own unit in the path is the identity:
   /system.slice/ecs.service. Names below a unit or a container were chosen by its processes and identify nothing.
3. Zombies older than the recorder are counted by their surviving parent (cgroup2): where that is a unit with cgroups of
   its own it is the one.
4. Otherwise the growth is matched with what restarts: a unit of the slice that the zombies were in, whose restarts come
   as fast as they do. One of the two alone is no match, and growth that is not known is none either.
5. At last, without a ledger: containers that one asks for again and again, nearly all that were made. As fast as the
   growth, or, where that was not measured, fast enough to have made the zombies. A suspicion, and the chain says so.

Where no rung holds, nobody is named, and the report says why.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace

from zombiescope.base.time import HOUR_US
from zombiescope.diagnosis.carriers import BATCH, is_carrier, is_genuine, stands_for_nobody
from zombiescope.diagnosis.facts import Facts
from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.requesters import Request, requests
from zombiescope.diagnosis.restarts import matching_unit, restarts_per_hour
from zombiescope.diagnosis.runtime_paths import RuntimePaths
from zombiescope.diagnosis.thresholds import (
    LEAK_LONGEST_HOURS,
    LEAK_WORST_LEAST_SHARE,
    RESTARTS_FIT_ZOMBIES,
    RESTARTS_LEAST,
)
from zombiescope.kernel.cgroup_path import owner
from zombiescope.query.cgroups import CgroupsView, Leak

__all__ = ["Culprit", "Known", "attribute", "charged", "restarts_per_hour", "unit_of"]


@dataclass(frozen=True, slots=True)
class Known:
    """A step on the way from the cgroups to the culprit, and where it was read."""

    step: str
    fact: str
    value: float | int | str | None
    unit: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Culprit:
    actor: Actor | None
    """None: where they come from is known, and nobody can be named for it."""
    how: str
    """The sentence that says how it is known."""
    value: float | int | None
    unit: str | None
    source: str
    leak: Leak | None = None
    more: tuple[Known, ...] = ()
    why_nobody: str = ""

    @property
    def steps(self) -> tuple[Known, ...]:
        """What belongs into a chain."""
        return Known("leak", self.how, self.value, self.unit, self.source), *self.more


@dataclass(slots=True)
class _Suspect:
    """Lines of the ledger that one is to blame for. Nobody is one, too."""

    actor: Actor | None
    request: Request | None = None
    why_nobody: str = ""
    dying: float = 0
    lines: list[tuple[float, Leak]] = field(default_factory=list)

    @property
    def worst(self) -> Leak:
        return max(self.lines, key=lambda each: each[0])[1]


def attribute(facts: Facts, view: CgroupsView) -> Culprit | None:
    """The best rung that holds. Without an actor: what is known of the place; None when nothing shows it."""
    found = [rung(facts, view) for rung in (_by_ledger, _by_parent, _by_rhythm, _by_containers)]
    known = [one for one in found if one is not None]
    return next((one for one in known if one.actor is not None), known[0] if known else None)


# --- what the ledger saw ---------------------------------------------------------------------------------------------


def _by_ledger(facts: Facts, view: CgroupsView) -> Culprit | None:
    lines = [line for line in view.leaks if line.dying > 0]
    paths = _paths(facts)
    suspects: dict[Hashable, _Suspect] = {}
    for line in lines:
        for key, share, found in _suspects(paths, line) if line.path else ():
            suspect = suspects.setdefault(key, found)
            suspect.dying += share * line.dying
            suspect.lines.append((share * line.dying, line))
    worst = max(suspects.values(), key=lambda one: one.dying, default=None)
    if worst is None or worst.dying < LEAK_WORST_LEAST_SHARE * sum(line.dying for line in lines):
        return None
    return _culprit_of(worst)


def _paths(facts: Facts) -> RuntimePaths:
    node = facts.node.get("cgroup_root")
    return RuntimePaths(facts.recent_containers.values(), node if isinstance(node, str) else "")


def maker(line: Leak) -> Actor:
    """The process that made most cgroups of a line."""
    who = line.creator
    genuine = is_genuine(who.uid, who.exe)
    return Actor(who.comm, who.pid, who.unit, line.path, who.container, genuine=genuine)


def _suspects(paths: RuntimePaths, line: Leak) -> Iterator[tuple[Hashable, float, _Suspect]]:
    """Whom a line is charged to, each with its share of it."""
    creator, carries = maker(line), is_carrier(maker(line))
    # A process in no unit that makes cgroups below a container's works in that container; mkdir is soon gone.
    is_inside = creator.unit is None and unit_of(line.path) is None
    asked = paths.requests_for(line.path) if carries else paths.requests_above(line.path) if is_inside else []
    if not carries and not asked:
        actor = replace(creator, unit=creator.unit or unit_of(line.path))
        yield (actor.unit or actor.comm or line.path), 1.0, _Suspect(paths.named(actor))
        return
    if asked:
        total = sum(one.runs for one in asked)
        for one in asked:
            yield one.key, one.runs / total, _Suspect(replace(one.actor, cgroup=line.path), one)
        return
    unit = unit_of(line.path)
    if unit is not None:
        yield unit, 1.0, _Suspect(Actor(unit=unit, cgroup=line.path))
        return
    carrier = creator.comm or creator.unit or "a runtime"
    whom = f"jobs of {BATCH[carrier]}" if carrier in BATCH else f"others, and no container at {line.path} was recorded"
    why = f"{carrier} made them for {whom}"
    yield ("nobody", line.path), 1.0, _Suspect(None, None, why)


def charged(facts: Facts, line: Leak) -> Actor | None:
    """Whom one line of the ledger is charged to; of several the one with most of it."""
    found = _suspects(_paths(facts), line)
    return max(found, key=lambda each: each[1])[2].actor


def requested_by(facts: Facts, line: Leak) -> str | None:
    """Who asked for a line's cgroups, where whoever made them only carries out; None where that is not known."""
    if not line.path or not is_carrier(maker(line)):
        return None
    actor = charged(facts, line)
    return None if actor is None else actor.name


def _culprit_of(suspect: _Suspect) -> Culprit:
    line, dying = suspect.worst, round(suspect.dying)
    others = len({each.path for _, each in suspect.lines}) - 1
    beside = f" and {others} more such {'path' if others == 1 else 'paths'}" if others else ""
    how = f"{dying:,} of the cgroups under {line.path}{beside} are dying"
    who = line.creator
    if who.comm and line.created:
        for_others = " for others" if is_carrier(maker(line)) else ""
        how += f"; {who.comm} made {line.created:,} of them{for_others}"
    more = () if suspect.request is None else tuple(_about(suspect.request, line))
    return Culprit(suspect.actor, how, dying, "cgroups", "leaks", line, more, suspect.why_nobody)


def _about(request: Request, line: Leak) -> Iterator[Known]:
    once = line.names == 1 and (line.created or 0) > 1
    again = f"; all {line.created:,} had the same name" if once and request.kind != "pod" else ""
    yield Known("container", request.said + again, request.runs, "containers", "containers")
    yield from _request(request)


def _request(request: Request) -> Iterator[Known]:
    """Who asked for containers, and how that is known."""
    if request.kind == "script":
        command = f": {request.command}" if request.command else ""
        who = replace(request.actor, image=None).name
        seen = "; it was connected to the runtime's socket when they were made" if request.how == "socket" else ""
        yield Known("requested by", f"{who}{command}{seen}", request.how, None, "containers")
    if request.kind == "catalogue":
        said = f"{request.actor.unit} runs this image, by the catalogue of agents; no client of the runtime was seen"
        yield Known("requested by", said, "catalogue", None, "catalogue")
    if request.manager:
        yield Known("managed by", f"{request.manager}, as the containers' labels say", None, None, "containers")
    if request.policy and request.kind == "restart policy":
        counted = "" if request.restarts is None else f", {request.restarts:,} restarts as the runtime counts them"
        yield Known("restart policy", f"{request.policy}{counted}", request.policy, None, "containers")


def unit_of(path: str) -> str | None:
    """The node's unit that a cgroup belongs to, or the slice that it is in; not a runtime, not the scope of one
    container, not a slice that everybody shares."""
    place = owner(path)
    return next((one for one in (place.unit, place.slice) if one is not None and not stands_for_nobody(one)), None)


# --- zombies that nobody saw being made ------------------------------------------------------------------------------


def _by_parent(facts: Facts, view: CgroupsView) -> Culprit | None:
    """The directory that most dying cgroups were directly below."""
    at_us = view.memory.at_us if view.memory else facts.end_us
    parents = facts.gauges("dying", "own", at_us)
    if not parents:
        return None
    parent, dying = max(parents.items(), key=lambda each: each[1])
    if dying < LEAK_WORST_LEAST_SHARE * sum(parents.values()):
        return None
    how = f"{dying:,} dying cgroups were directly below {parent}"
    asked = _paths(facts).requests_below(parent)
    if asked and asked[0].runs >= LEAK_WORST_LEAST_SHARE * sum(one.runs for one in asked):
        worst = asked[0]
        known = Known("container", worst.said, worst.runs, "containers", "containers")
        return Culprit(replace(worst.actor, cgroup=parent), how, dying, "cgroups", "counters", None, (known,))
    unit = unit_of(parent)
    if unit is None and (match := matching_unit(facts, view, parent)) is not None:
        unit, rhythm = match.unit, match.said
        how += f", and {rhythm}"
    why = "" if unit else f"no unit of {parent} restarts as fast as they grow, and no container there was recorded"
    actor = None if unit is None else Actor(unit=unit, cgroup=parent)
    return Culprit(actor, how, dying, "cgroups", "counters", None, (), why)


def _by_rhythm(facts: Facts, view: CgroupsView) -> Culprit | None:
    """A unit whose restarts come as fast as zombies do, where these were."""
    worst = next((line for line in view.leaks if line.path and line.dying > 0), None)
    where = None if worst is None else worst.path.rpartition("/")[0] or "/"
    match = matching_unit(facts, view, where)
    if match is None:
        return None
    return Culprit(Actor(unit=match.unit), match.said, match.value, match.value_unit, "events")


def _by_containers(facts: Facts, view: CgroupsView) -> Culprit | None:
    """Whoever asks for nearly all containers, one after the other."""
    dying = None if view.memory is None or view.leaks else view.memory.dying
    asked = requests(facts.recent_containers.values())
    worst = asked[0] if asked else None
    if not dying or worst is None or worst.runs < LEAK_WORST_LEAST_SHARE * sum(one.runs for one in asked):
        return None
    per_hour = _runs_per_hour(facts, worst)
    if worst.runs < RESTARTS_LEAST or per_hour is None or not _fits(view, dying, per_hour):
        return None
    days = dying / per_hour / 24
    how = (
        f"{worst.said} were made at {per_hour:,.0f} an hour, and no others that often; at that rate {dying:,} take "
        f"{days:,.1f} days. That their cgroups are the dying ones was not seen"
    )
    return Culprit(worst.actor, how, round(per_hour, 1), "containers/hour", "containers", more=tuple(_request(worst)))


def _runs_per_hour(facts: Facts, request: Request) -> float | None:
    starts = sorted(
        one.started_us
        for one in facts.recent_containers.values()
        if one.started_us is not None and one.image == request.actor.image
    )
    if len(starts) < RESTARTS_LEAST or starts[-1] <= starts[0]:
        return None
    return (len(starts) - 1) * HOUR_US / (starts[-1] - starts[0])


def _fits(view: CgroupsView, dying: int, per_hour: float) -> bool:
    if view.growth_per_hour is not None:
        return RESTARTS_FIT_ZOMBIES[0] <= view.growth_per_hour / per_hour <= RESTARTS_FIT_ZOMBIES[1]
    return dying / per_hour <= LEAK_LONGEST_HOURS
