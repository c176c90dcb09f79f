"""Containers that are one thing to a person: the pods of a Deployment, the runs of a loop, what is restarted.

An id lives once; what restarts for ever has many. Of one family are, in this order,
    a pod's container    containers of one name in pods of one owner: the pod's name without what its controller adds
    one name             ids that were given the same name, which only one may have at a time
    one image            ids of one image that the same requester asked for, whatever names they were given
    an unnamed one       ids of which nothing is known, below one cgroup
"""

from __future__ import annotations

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
