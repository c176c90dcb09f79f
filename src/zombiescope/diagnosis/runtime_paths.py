"""The cgroups of containers: from a line of the ledger to those who asked for the containers there.

A line is a normal form, /docker/* or /kubepods/burstable/pod*/*, and so is a container's path, so the two are compared.
A pod's own cgroup stands above those of its containers, what a container makes itself stands below its own, and helpers
of a runtime (crio-conmon-*.scope) stand beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cached_property

from zombiescope.diagnosis.incident import Actor
from zombiescope.diagnosis.requesters import Request, requests
from zombiescope.kernel.cgroup_path import normalise
from zombiescope.node.containers.runtimes import is_claimed
from zombiescope.query.containers import Container


class RuntimePaths:
    def __init__(self, containers: Iterable[Container], node: str = "") -> None:
        """`node`: the cgroup that the node itself runs in, where it is a container."""
        self._containers = [one for one in containers if not one.cgroup or not is_claimed(one.cgroup, node)]
        self._known: dict[str, list[Request]] = {}

    @cached_property
    def _by_path(self) -> dict[str, list[Container]]:
        found: defaultdict[str, list[Container]] = defaultdict(list)
        for container in self._containers:
            if container.cgroup:
                found[_plain(normalise(container.cgroup))].append(container)
        return dict(found)

    @cached_property
    def _by_id(self) -> dict[str, Container]:
        return {container.id: container for container in self._containers}

    def requests_for(self, path: str) -> list[Request]:
        """Who asked for the containers of a normal path, most runs first; empty where none was recorded."""
        if path not in self._known:
            self._known[path] = requests(self._at(_plain(path)))
        return self._known[path]

    def requests_above(self, path: str) -> list[Request]:
        """The same for cgroups that a container made below its own."""
        return requests(self._above(_plain(path)))

    def requests_below(self, parent: str) -> list[Request]:
        """The same for a directory that containers, or their pods, are directly below."""
        above = _plain(normalise(parent)).rstrip("/")
        return requests(self._where(lambda path: path.startswith(f"{above}/")))

    def named(self, actor: Actor) -> Actor:
        """With the names of its container, where that is known and it is in there."""
        container = self._by_id.get(actor.container or "")
        return actor if container is None or not is_in(actor.cgroup, container) else with_names(actor, container)

    def _at(self, path: str) -> list[Container]:
        exact = self._by_path.get(path)
        if exact:
            return exact
        below = self._where(lambda one: one.startswith(f"{path}/"))
        return below or self._above(path) or self._beside(path)

    def _above(self, path: str) -> list[Container]:
        return self._where(lambda one: path.startswith(f"{one}/"))

    def _beside(self, path: str) -> list[Container]:
        """Below the same directory, if that is a runtime's or a pod's own; a slice is shared by many."""
        parent, _, name = path.rpartition("/")
        if "*" not in name or not parent or (parent.endswith(".slice") and "-pod" not in parent):
            return []
        return self._where(lambda one: one.rpartition("/")[0] == parent)

    def _where(self, fits: Callable[[str], bool]) -> list[Container]:
        return [one for path, members in self._by_path.items() if fits(path) for one in members]


def is_in(cgroup: str | None, container: Container) -> bool:
    """Whether a cgroup is that container's, or below it. An id is no secret and may be in any path; not known counts as
    yes."""
    if not cgroup or not container.cgroup:
        return True
    inside, own = f"{normalise(cgroup)}/", f"{normalise(container.cgroup)}/"
    return inside.startswith(own) or _plain(inside).startswith(_plain(own))


def with_names(actor: Actor, container: Container) -> Actor:
    return replace(
        actor,
        container_name=container.name,
        image=container.image,
        namespace=container.namespace,
        owner=container.owner,
        pod=container.pod or actor.pod,
    )


def _plain(path: str) -> str:
    """conmon is the runtime's own helper for the container of the same name."""
    return path.replace("-conmon-", "-")
