"""The containers of a window, and what of them restarts for ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from zombiescope.query.container_families import Family, Loop, families, loops
from zombiescope.query.containers import Container, containers
from zombiescope.questions.views import ContainersQuestion
from zombiescope.questions.window import Window
from zombiescope.store.container_names import ContainerName, fits_container, fits_image, fits_pod
from zombiescope.store.reader import Recording


@dataclass(frozen=True, slots=True)
class ContainerList:
    """`containers`: those that did something in the window first, then the newest; `families`: most starts first."""

    node: str
    window: Window
    containers: list[Container]
    families: list[Family]
    loops: list[Loop]
    top: int | None

    def document(self) -> dict[str, Any]:
        shown = self.containers[: self.top]
        kinds = {id(loop.family): loop for loop in self.loops}
        return {
            "node": self.node,
            "from": self.window.start_us / 1e6,
            "to": self.window.end_us / 1e6,
            "total": len(self.containers),
            "alive": sum(one.alive for one in self.containers),
            "left_out": len(self.containers) - len(shown),
            "families": [_family(each, kinds.get(id(each))) for each in self._ordered()[: self.top]],
            "containers": [_container(each) for each in shown],
        }

    def _ordered(self) -> list[Family]:
        """What restarts for ever first."""
        first = [loop.family for loop in self.loops]
        told = set(map(id, first))
        return first + [each for each in self.families if id(each) not in told]


def answer(recording: Recording, question: ContainersQuestion) -> ContainerList:
    """Raises QuestionError."""
    window = question.window.choose(recording)
    found = containers(recording, window.start_us, window.end_us).values()
    return _listed(recording, window, [each for each in found if _wanted(each, question)], question.top)


def of_window(recording: Recording, window: Window, top: int) -> ContainerList:
    """All of them, listed up to so many."""
    found = containers(recording, window.start_us, window.end_us)
    return _listed(recording, window, list(found.values()), top)


def _listed(recording: Recording, window: Window, chosen: list[Container], top: int | None) -> ContainerList:
    known = families(chosen)
    return ContainerList(recording.name, window, sorted(chosen, key=_order), known, loops(known), top)


def _wanted(one: Container, question: ContainersQuestion) -> bool:
    known = ContainerName(one.name, one.image, one.pod, one.namespace, one.owner)
    checks = (
        (question.container, lambda text: fits_container(one.id, known, text)),
        (question.pod, lambda text: fits_pod(one.pod_uid or "", known, text)),
        (question.image, lambda text: fits_image(known, text)),
    )
    return all(not wanted or any(map(fits, wanted)) for wanted, fits in checks)


def _order(one: Container) -> tuple[bool, bool, int, str]:
    return not one.failed, one.starts < 2, -(one.started_us or one.at_us), one.id


def _container(one: Container) -> dict[str, Any]:
    same = ("id", "name", "image", "runtime", "namespace", "pod", "pod_uid", "owner", "cgroup")
    return {
        **{name: getattr(one, name) for name in same},
        "started": _seconds(one.started_us),
        "exited": _seconds(one.exited_us),
        "code": one.code,
        "alive": one.alive,
        "runs": one.runs,
        "restarts": one.restarts,
        "restart_policy": one.restart_policy,
        "starts": one.starts,
        "requester": _requester(one),
    }


def _requester(one: Container) -> dict[str, Any]:
    known = {"comm": one.requester, "pid": one.requester_pid, "unit": one.requester_unit}
    return {**known, "command": one.requester_command, "container": one.requester_container, "how": one.requester_how}


def _family(family: Family, loop: Loop | None) -> dict[str, Any]:
    same = ("ids", "starts", "restarts", "alive", "exited", "failed", "succeeded", "last_code", "per_hour")
    return {
        "name": family.name,
        "kind": family.kind,
        "namespace": family.namespace,
        "image": family.image,
        **{name: getattr(family, name) for name in same},
        "longest_s": family.longest_s,
        "requester": _requester(family.newest),
        "restart_policy": family.newest.restart_policy,
        "loop": None if loop is None else loop.kind,
        "text": None if loop is None else loop.text(),
    }


def _seconds(at_us: int | None) -> float | None:
    return None if at_us is None else at_us / 1e6
