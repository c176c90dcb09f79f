"""What the ids of containers and pods in the table of tasks stand for: a name, an image, a pod, from `containers`.

A task knows its container by 64 digits and its pod by a uid. A person knows both by name, so every view that shows or
filters tasks looks them up here. Cost: one pass over five columns of text; rows of ids that are not asked for are
left out before anything is made of them, so a leak of containers that were never sampled costs little. Only read()
needs pyarrow: whoever follows a log has the rows already.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from zombiescope.base.time import HOUR_US

if TYPE_CHECKING:
    from zombiescope.store.reader import Recording

SHORT_ID = 12
"""As many digits of an id as the runtimes print."""
_COLUMNS = ("id", "pod_uid", "name", "image", "pod", "namespace", "owner")


class ContainerName(NamedTuple):
    """None is what nobody said."""

    name: str | None = None
    image: str | None = None
    pod: str | None = None
    namespace: str | None = None
    owner: str | None = None
    """The pod's: Deployment/web."""

    @property
    def pod_path(self) -> str | None:
        """The pod as kubectl writes it: namespace/name."""
        return f"{self.namespace}/{self.pod}" if self.namespace and self.pod else self.pod

    @property
    def label(self) -> str | None:
        """What a person calls it; None where nothing is known."""
        pod = self.pod_path
        if pod and self.name:
            return f"{pod}/{self.name}"
        return self.name or pod or self.image


NAMELESS = ContainerName()


class ContainerNames:
    def __init__(self, by_id: Mapping[str, ContainerName], by_pod: Mapping[str, ContainerName]) -> None:
        self._by_id = by_id
        self._by_pod = by_pod

    def of(self, container: str | None, pod_uid: str | None = None) -> ContainerName:
        """Of a container, or as much as its pod tells: the sandbox of a pod has no row."""
        found = self._by_id.get(container or "")
        if found is not None and (found.pod or not pod_uid):
            return found
        of_pod = self._by_pod.get(uid(pod_uid or ""), NAMELESS)
        return (
            of_pod if found is None else found._replace(pod=of_pod.pod, namespace=of_pod.namespace, owner=of_pod.owner)
        )

    def owner(self, unit: str | None, container: str | None, pod_uid: str | None = None) -> tuple[str, str] | None:
        """Whose a task is, and of which kind: its container by name, or its unit; None where it has neither.

        The scope that systemd makes for a container has its id in its name and nothing else; it is no unit that
        anybody knows.
        """
        if unit and not (container and container[:SHORT_ID] in unit):
            return unit, "unit"
        if not container:
            return None
        return self.of(container, pod_uid).label or container, "container"


NO_NAMES = ContainerNames({}, {})


def read(
    recording: Recording, start_us: int | None, end_us: int | None, ids: Collection[str] | None = None
) -> ContainerNames:
    """The names in a window; of some ids and their pods, or of all. What was there before it is said again within an
    hour."""
    import numpy as np

    from zombiescope.store import columns

    since_us = None if start_us is None else start_us - HOUR_US
    by_id: dict[str, ContainerName] = {}
    by_pod: dict[str, ContainerName] = {}
    for rows in recording.batches("containers", since_us, end_us, _COLUMNS):
        wanted = _wanted(columns.texts(rows.column("id")), columns.texts(rows.column("pod_uid")), ids)
        chosen = columns.take(rows, np.array(wanted, np.int64))
        texts = [columns.texts(chosen.column(name)) for name in _COLUMNS]
        for identity, pod_uid, *known in zip(*texts, strict=True):
            found = ContainerName(*known)
            if identity:
                by_id[identity] = found
            if pod_uid and found.pod:
                by_pod[uid(pod_uid)] = ContainerName(pod=found.pod, namespace=found.namespace, owner=found.owner)
    return ContainerNames(by_id, by_pod)


def _wanted(identities: list[str | None], pods: list[str | None], ids: Collection[str] | None) -> list[int]:
    """The last row of each id that is asked for, and one of each pod."""
    if ids is None:
        last = {identity: row for row, identity in enumerate(identities)}
    else:
        last = {identity: row for row, identity in enumerate(identities) if identity in ids}
        last |= {f"pod {pod}": row for row, pod in enumerate(pods) if pod}
    return sorted(set(last.values()))


def uid(text: str) -> str:
    """systemd writes the uid of a pod with _ in place of -."""
    return text.replace("_", "-").lower()


# --- what names are made of ------------------------------------------------------------------------------------------

# What controllers append (apimachinery/pkg/util/rand, safeEncodeString): no vowels, so that no word comes out.
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"
_OF_POD = re.compile(rf"-{_SAFE}{{5}}$")
_OF_OWNER = re.compile(rf"-(?:(?=[^-]*\d){_SAFE}{{8,10}}|\d{{1,12}})$")
"""A ReplicaSet's hash, the minute of a CronJob, or the index of an indexed Job."""
_DOCKER_NAME = re.compile(r"[a-z]+_[a-z]+\d*")


def pod_owner(pod: str) -> str:
    """The pod's name without what its controllers added: "agent-7d4b9c6f5-x2kqz" is of "agent"."""
    short = _OF_POD.sub("", pod)
    return pod if short == pod else _OF_OWNER.sub("", short)


def is_made_up(name: str) -> bool:
    """As dockerd names what nobody named: "quirky_einstein"."""
    return _DOCKER_NAME.fullmatch(name) is not None


# --- what people write -----------------------------------------------------------------------------------------------


def fits_container(container: str, known: ContainerName, pattern: str) -> bool:
    """The start of its id, its name, or its image; * and ? match."""
    return (
        container.startswith(pattern)
        or fnmatchcase(container, pattern)
        or (known.name is not None and fnmatchcase(known.name, pattern))
        or fits_image(known, pattern)
    )


def fits_pod(pod_uid: str, known: ContainerName, pattern: str) -> bool:
    """Its name, namespace/name, uid, or its owner as Deployment/web; * and ? match."""
    if known.owner and fnmatchcase(known.owner, pattern):
        return True
    if pod_uid and fnmatchcase(uid(pod_uid), uid(pattern)):
        return True
    if known.pod is None:
        return False
    namespace, slash, name = pattern.rpartition("/")
    return fnmatchcase(known.pod, name) and (not slash or fnmatchcase(known.namespace or "", namespace))


def fits_image(known: ContainerName, pattern: str) -> bool:
    """The whole reference or its end, with or without the tag: "ecs-agent" is registry.local/ecs-agent:1.2."""
    if known.image is None:
        return False
    return any(fnmatchcase(form, pattern) for form in _forms(known.image))


def _forms(image: str) -> list[str]:
    """The ways in which people write an image."""
    parts = image.split("/")
    ends = ["/".join(parts[first:]) for first in range(len(parts))]
    return [form for end in ends for form in (end, split_tag(end)[0])]


def split_tag(image: str) -> tuple[str, str]:
    """The image's name and its tag; a port of the registry is no tag, and a digest is neither."""
    head, slash, last = image.partition("@")[0].rpartition("/")
    name, _, tag = last.partition(":")
    return head + slash + name, tag
