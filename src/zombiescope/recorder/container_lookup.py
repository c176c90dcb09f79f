"""Who is that container, and who runs that client: asked in a thread of its own, for files go in a second.

Not the thread that names addresses (lookup.py): that one reads programs of a hundred megabytes, and a container that
lives for a third of a second would be gone meanwhile. Here too a thread that hangs is left behind and replaced, at most
MAX_STUCK times. It is started by the first question: a node without containers has none."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass

from zombiescope.containers import identity, requester
from zombiescope.containers.description import Description
from zombiescope.containers.places import Places
from zombiescope.containers.requester import Asking

STUCK_S = 5.0
MAX_STUCK = 4
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


class ContainerLookup:
    """Answers in the order in which it is asked."""

    def __init__(self, root: str = "/") -> None:
        self._root = root
        self._places = Places()
        self._questions: deque[Question] = deque()
        self._answers: deque[Answer] = deque(maxlen=2 * MAX_QUEUED)
        self._failure: Exception | None = None
        self._wake = threading.Event()
        self._stopped = False
        self._busy_since: float | None = None
        self._worker = 0

    def ask(self, question: Question) -> bool:
        """False: too many wait already."""
        if len(self._questions) >= MAX_QUEUED:
            return False
        self._questions.append(question)
        if self._worker == 0:
            self._start_worker()
        self._wake.set()
        return True

    def take(self) -> list[Answer]:
        answers = []
        while self._answers:
            answers.append(self._answers.popleft())
        return answers

    def newly_stuck(self) -> bool:
        """Whether files have kept the thread waiting too long; then another one takes over."""
        busy = self._busy_since
        if busy is None or time.monotonic() - busy < STUCK_S or self._worker > MAX_STUCK:
            return False
        self._busy_since = None
        self._start_worker()
        return True

    def raise_failure(self) -> None:
        """Raises what could not be answered, if there was something since the last call."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()

    def _start_worker(self) -> None:
        self._worker += 1
        threading.Thread(target=self._work, args=(self._worker,), name="containers", daemon=True).start()

    def _work(self, number: int) -> None:
        while not self._stopped and number == self._worker:
            if not self._questions:
                self._wake.wait()
                self._wake.clear()
                continue
            question = self._questions.popleft()
            self._busy_since = time.monotonic()
            try:
                self._answers.append(self._answer(question))
            except Exception as error:  # noqa: BLE001 - raised again where the loop looks after us
                self._failure = error
            if number == self._worker:  # else given up on meanwhile; the answer still counts
                self._busy_since = None

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
                places=self._places,
                root=root,
            )
            return ContainerAnswer(question, left)
        found = identity.describe(
            question.container, runtime=question.runtime, pod_uid=question.pod_uid, pid=question.pid,
            cgroup=question.cgroup, places=self._places, root=root,
        )  # fmt: skip
        return ContainerAnswer(question, found)
