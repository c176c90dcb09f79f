"""Containers that are one thing to a person: the pods of a Deployment, the runs of a loop, what is restarted.

An id lives once; what restarts for ever has many. Of one family are, in this order,
    a pod's container    containers of one name in pods of one owner: the pod's name without what its controller adds
    one name             ids that were given the same name, which only one may have at a time
    one image            ids of one image that the same requester asked for, whatever names they were given
    an unnamed one       ids of which nothing is known, below one cgroup
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from zombiescope.base.time import HOUR_US
from zombiescope.query.containers import Container
from zombiescope.store.container_names import is_made_up, pod_owner

FamilyKind = Literal["pod", "name", "image", "unknown"]


@dataclass(frozen=True, slots=True)
class Family:
    kind: FamilyKind
    name: str
    namespace: str | None
    image: str | None
    requester: str | None
    requester_unit: str | None
    ids: int
    starts: int
    """In the window, of all ids together."""
    restarts: int | None
    """The most that the runtime counts for one of them."""
    most_starts: int
    """In the window, of one place: one id, or one container of one pod, which kubelet makes anew under a new id."""
    alive: int
    exited: int
    failed: int
    """Exited, and not with 0."""
    succeeded: int
    """Exited with 0; those whose code nobody saw are neither."""
    last_code: int | None
    """Of the last that exited, where its code is known."""
    per_hour: float | None
    """Starts, from the first to the last one; None where only one moment is known."""
    longest_s: float | None
    """How long the longest of those that exited ran."""
    first_us: int | None
    last_us: int | None
    """The first and the last start that is known."""
    newest: Container
    members: tuple[str, ...]
    """Ids."""

    @property
    def label(self) -> str:
        """For a table: "kube-system/agent/main"."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def place(self) -> str:
        """In a sentence: "main of pod kube-system/agent"."""
        if self.kind != "pod":
            return self.name
        owner, _, container = self.label.rpartition("/")
        return f"{container} of pod {owner}" if self.newest.name else f"pod {self.label}"


def families(containers: Iterable[Container]) -> list[Family]:
    """Those with most starts first."""
    known = list(containers)
    names = Counter(one.name for one in known if one.name and not one.pod)
    owners = {(one.namespace, pod_owner(one.pod)): one.owner for one in known if one.pod and one.owner}
    groups: dict[tuple[str | None, ...], list[Container]] = {}
    for one in known:
        groups.setdefault(_key(one, names, owners), []).append(one)
    found = [_family(key, members) for key, members in groups.items()]
    return sorted(found, key=lambda family: (-family.starts, -family.alive, family.name))


def _key(one: Container, names: Counter[str], owners: Mapping[tuple[str | None, str], str]) -> tuple[str | None, ...]:
    if one.pod:
        short = pod_owner(one.pod)
        # A pod that ended before anybody asked the API server is of the owner that those beside it have.
        return ("pod", one.owner or owners.get((one.namespace, short)) or short, one.namespace, one.name)
    if one.name and names[one.name] > 1 and not is_made_up(one.name):
        return ("name", one.name)
    if one.image and (one.requester or one.requester_unit):
        return ("image", one.image, one.requester_unit, one.requester)
    if one.name and not is_made_up(one.name):
        return ("name", one.name)
    if one.image or one.name:
        return ("image", one.image or one.name, None, None)
    return ("unknown", (one.cgroup or "").rpartition("/")[0] or one.runtime or "?")


def _family(key: tuple[str | None, ...], members: list[Container]) -> Family:
    newest = max(members, key=lambda one: (one.started_us or 0, one.at_us))
    gone = [one for one in members if not one.alive]
    # One that lives again still says how it ended before.
    ended = [one for one in members if one.code is not None]
    last_ended = max(ended, key=lambda one: one.exited_us or one.started_us or 0, default=None)
    first_us = min((one.first_us for one in members if one.first_us is not None), default=None)
    last_us = max((one.started_us for one in members if one.starts and one.started_us is not None), default=None)
    starts = sum(one.starts for one in members)
    lives = [(one.exited_us - one.started_us) / 1e6 for one in gone if one.exited_us and one.started_us]
    return Family(
        kind=key[0],  # type: ignore[arg-type]  # _key gives no other
        name=_name(key),
        namespace=newest.namespace,
        image=newest.image,
        requester=newest.requester,
        requester_unit=newest.requester_unit,
        ids=len(members),
        starts=starts,
        restarts=max((one.restarts for one in members if one.restarts is not None), default=None),
        most_starts=max(_places(members).values(), default=0),
        alive=len(members) - len(gone),
        exited=len(gone),
        failed=sum(one.failed for one in gone),
        succeeded=sum(one.code == 0 for one in gone),
        last_code=None if last_ended is None else last_ended.code,
        per_hour=_per_hour(first_us, last_us, starts),
        longest_s=max(lives, default=None),
        first_us=first_us,
        last_us=last_us,
        newest=newest,
        members=tuple(one.id for one in members),
    )


def _name(key: tuple[str | None, ...]) -> str:
    if key[0] == "pod":
        return "/".join(part for part in (key[1], key[3]) if part)
    return str(key[1])


def _places(members: Iterable[Container]) -> Counter[tuple[str | None, ...]]:
    """How often something was started in one place: an id, or a container of one pod."""
    counted: Counter[tuple[str | None, ...]] = Counter()
    for one in members:
        place = (one.pod_uid, one.name) if one.pod_uid and one.name else (one.id,)
        counted[place] += one.starts
    return counted


def _per_hour(first_us: int | None, last_us: int | None, starts: int) -> float | None:
    if first_us is None or last_us is None or starts < 2 or last_us <= first_us:
        return None
    return (starts - 1) / (last_us - first_us) * HOUR_US


# --- loops ------------------------------------------------------------------------------------------------------------
# Containers that are started for ever: what sets a crash loop apart from a queue of jobs.
#
# in place   one id, or one container of one pod, is started again and again: a restart policy does that, whatever the
#            exit code was, and a queue of jobs never does
# failing    new ids of one family, nearly all of which fail, more often than once in five minutes, which is as slow as
#            kubelet's back-off gets; the pods of a healthy CronJob and CI jobs end with 0
# quick      new ids of one family more often than cron can start them, and nobody saw how they ended, or all had one
#            name. It may be a queue of short jobs, so it is worth knowing and no more

LoopKind = Literal["in place", "failing", "quick"]

LEAST_IN_PLACE = 3
"""Starts of one place in a window."""
SO_FAR = 5
"""Or a single one, when the runtime has counted so many restarts: back-off makes them rare."""
LEAST_FAILED = 3
LEAST_NEW = 5
"""Ids of a family."""
FAILING = 0.8
"""Of those whose exit code is known."""
FAILING_PER_HOUR = 12.0
QUICK_PER_HOUR = 120.0
"""Cron starts nothing more often than once a minute; twice that is no cron job that is late."""


@dataclass(frozen=True, slots=True)
class Loop:
    kind: LoopKind
    family: Family

    @property
    def is_certain(self) -> bool:
        return self.kind != "quick"

    def text(self) -> str:
        """What happened, as a sentence without its end."""
        return _in_place(self.family) if self.kind == "in place" else _anew(self.family)


def loops(families: Iterable[Family]) -> list[Loop]:
    """Those that are certain first, then those that were started most."""
    found = [Loop(kind, family) for family in families if (kind := loop_kind(family)) is not None]
    return sorted(found, key=lambda loop: (not loop.is_certain, -loop.family.starts))


def loop_kind(family: Family) -> LoopKind | None:
    again = family.most_starts
    if again >= LEAST_IN_PLACE or (again and (family.restarts or 0) >= SO_FAR):
        return "in place"
    rate = family.per_hour or 0.0
    ended = family.failed + family.succeeded
    if family.starts < LEAST_NEW:
        return None
    if family.failed >= max(LEAST_FAILED, FAILING * ended) and rate >= FAILING_PER_HOUR:
        return "failing"
    unseen = family.exited > 0 and ended == 0
    if rate >= QUICK_PER_HOUR and family.exited and (unseen or family.kind == "name"):
        return "quick"
    return None


# --- in words --------------------------------------------------------------------------------------------------------


def _in_place(family: Family) -> str:
    so_far = "" if family.restarts is None else f", {family.restarts:,} restarts so far"
    last = "" if family.last_code is None else f", last exit {exit_words(family.last_code)}"
    return f"{family.place} was started {_times(family.most_starts)}{_rhythm(family)}{so_far}{last}"


def _anew(family: Family) -> str:
    by = requester_words(family.requester, family.requester_unit)
    asked = f" by {by}" if by else ""
    failed = f", {family.failed:,} failed" if family.failed else ""
    last = f", the last with {exit_words(family.last_code)}" if family.failed and family.last_code else ""
    return f"{family.starts:,} containers of {family.place} were started{asked}{_rhythm(family)}{failed}{last}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _rhythm(family: Family) -> str:
    """ ", one every 3 s"."""
    if not family.per_hour:
        return ""
    seconds = 3600 / family.per_hour
    every = f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f", one every {every}"


def requester_words(comm: str | None, unit: str | None) -> str | None:
    """Who asked for it: "agent-loop (ecs.service)"."""
    return f"{comm} ({unit})" if comm and unit else comm or unit


def exit_words(code: int) -> str:
    """An exit code as a person reads it: above 128 a signal ended it."""
    try:
        return f"{code} ({signal.Signals(code - 128).name})"
    except ValueError:
        return str(code)
