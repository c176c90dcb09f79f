"""Who is that container, and who runs that client: asked in a thread of its own, for files go in a second.

Not the thread that names addresses (lookup.py): that one reads programs of a hundred megabytes, and a container that
lives for a third of a second would be gone meanwhile. It is started by the first question: a node without containers
has none."""

from __future__ import annotations

import time
from dataclasses import dataclass

from zombiescope.node.containers import identity, requester
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.peers import LATEST_S, Peer, Peers
from zombiescope.node.containers.places import Places
from zombiescope.node.containers.requester import Asking
from zombiescope.recorder.worker import Worker

MAX_QUEUED = 256


@dataclass(frozen=True, slots=True)
class ContainerQuestion:
    """Who is it; or, when it is over, how did it end."""

    container: str
    runtime: str | None
    pod_uid: str | None
    pid: int
    """Who made its cgroup; 0: not known."""
    run: int
    is_over: bool = False
    directory: str | None = None
    """Where its runtime keeps its files."""
    cgroup: str | None = None
    """The directory of its cgroup."""
    made_us: int = 0
    """When its cgroup was made, if that was just now: who is connected to the runtime is looked at too."""


@dataclass(frozen=True, slots=True)
class ClientQuestion:
    """What does that program ask its runtime for, and for whom."""

    pid: int
    at_us: int


@dataclass(frozen=True, slots=True)
class RunningClientsQuestion:
    """Which clients run already; asked once."""


@dataclass(frozen=True, slots=True)
class ContainerAnswer:
    question: ContainerQuestion
    description: Description
    peers: tuple[Peer, ...] | None = None
    """Who was connected to its runtime when it was made; None: not looked at, or not all of them are known."""
    blind: str | None = None
    """Why connections could not be looked at."""


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    question: ClientQuestion
    asking: Asking | None


@dataclass(frozen=True, slots=True)
class RunningClientsAnswer:
    question: RunningClientsQuestion
    running: list[tuple[int, Asking]]


Question = ContainerQuestion | ClientQuestion | RunningClientsQuestion
Answer = ContainerAnswer | ClientAnswer | RunningClientsAnswer


class ContainerLookup(Worker[Question, Answer]):
    """Answers in the order in which it is asked."""

    def __init__(self, root: str = "/") -> None:
        super().__init__("containers", lambda: self._answer, MAX_QUEUED, 2 * MAX_QUEUED)
        self._root = root
        self._places = Places()
        self._peers = Peers(root)

    def _answer(self, question: Question) -> Answer:
        root = self._root
        if isinstance(question, ClientQuestion):
            return ClientAnswer(question, requester.read(question.pid, root))
        if isinstance(question, RunningClientsQuestion):
            return RunningClientsAnswer(question, requester.running(root))
        if question.is_over:
            left = identity.ending(
                question.container,
                runtime=question.runtime,
                directory=question.directory,
                pod_uid=question.pod_uid,
                places=self._places,
                root=root,
            )
            return ContainerAnswer(question, left)
        found = identity.describe(
            question.container, runtime=question.runtime, pod_uid=question.pod_uid, pid=question.pid,
            cgroup=question.cgroup, places=self._places, root=root,
        )  # fmt: skip
        if not question.made_us or found.pod_uid is not None:
            return ContainerAnswer(question, found)
        is_late = abs(time.time() - question.made_us / 1e6) > LATEST_S
        peers = None if is_late else self._peers.of(found.runtime)
        return ContainerAnswer(question, found, peers, self._peers.why)
