"""Containers while they come and go: rows of the table `containers`, and those that come back again and again.

A container's cgroup is made: a question goes to a thread of its own (container_lookup.py), because with `--rm` all
that names it is deleted when it ends. The answer is a row. Questions have a budget a second; a container over it has
its id and its cgroup only, is asked about later if it still lives, and those that never were are counted in a row of
`gaps`.

A tick costs the same with ten containers and with ten thousand: only those that changed are looked at. Bounded:
MAX_CONTAINERS are remembered, and of those that ended MAX_OVER: some kilobytes each, and a node that makes one a second
has eight thousand before lunch. Those that ended longest ago are forgotten first.

In a subtree that its processes may write (a user's slice, a delegated unit, another container) a cgroup may have any
name: what is called like a container there only claims to be one (node/containers/runtimes.py). Claims are listed with
their path and nothing else: no file is read for one, each writer has a share of the room, and they make room first. A
container is never known under two paths, and the place where a runtime made it goes before a claim."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from zombiescope.kernel import cgroup_namespace
from zombiescope.kernel.cgroup_path import Owner, container_at
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.runtimes import is_claimed
from zombiescope.recorder.budget import Budget
from zombiescope.recorder.clients import Clients, Connected
from zombiescope.recorder.container_lookup import Answer, ContainerAnswer, ContainerQuestion, Question
from zombiescope.recorder.container_loops import Loops, TrackedContainer
from zombiescope.recorder.feed import FedPod
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tracepoints import Tracepoint
from zombiescope.store import schema
from zombiescope.store.batch import Batch
from zombiescope.store.container_names import uid
from zombiescope.store.event import Event

MAX_CONTAINERS = 8192
ASKED_PER_S = 20
BURST = 60
LATER_PER_S = 5
MAX_TRIES = 3
"""One without a name is asked about again: its pod's directory may come after it, or a place be learned."""
MAX_LATER = 4096
"""Found by the first walk, or over the budget: asked about slowly."""
ENDING_US = 1_000_000
"""A runtime writes the exit code after it removed the cgroup."""
SETTLED_US = 3_000_000
"""An end is counted when its code had time to come."""
MAX_ENDED = 1024
MAX_OVER = 2048
"""One that comes back under its id, as Docker's restart policies let it, is the same one again."""
SAID_AGAIN = 64
"""Of those that ended, so many are said again in a new segment: a window after a loop should know what looped."""
SOURCE = "containers"
CONNECTIONS = "clients of container runtimes"
MAX_CLAIMS = MAX_CONTAINERS // 8
MAX_CLAIMS_EACH = 128
"""Of one user, unit or container that may write a subtree."""
MAX_PODS = 2048


class ContainerTracker:
    """Fed by the tracepoints of cgroups, by the first walk and by the lookup thread's answers."""

    def __init__(
        self, batch: Batch, ask: Callable[[Question], bool], root: str = "/", sources: Sources | None = None
    ) -> None:
        self._batch = batch
        self._sources = sources
        self._ask = ask
        self._clients = Clients(ask, root)
        self._connected = Connected()
        self._known: dict[str, TrackedContainer] = {}  # the living, and after them in `_ended` those that are over
        self._ended: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        self._later: deque[str] = deque()
        self._endings: deque[tuple[int, str, int]] = deque(maxlen=MAX_ENDED)
        self._over: deque[tuple[str, int]] = deque(maxlen=MAX_ENDED)
        self._claims: dict[str, str] = {}
        """Container -> who may have chosen that name: the upper end of its path."""
        self._node_root = cgroup_namespace.node_root(root)
        self._budget = Budget(ASKED_PER_S, BURST)
        self._slow = Budget(LATER_PER_S, LATER_PER_S)
        self._loops = Loops()
        self._pods: dict[str, FedPod] = {}
        """By uid, the last that was told; the oldest are forgotten first."""
        self._since_us = 0
        self._has_looked_around = False
        self.mount: str | None = None
        """Where the hierarchy is whose cgroups these are."""
        self.unnamed = 0
        """Containers that were never asked about, since the last row of `gaps`."""
        self.refused = 0
        """Containers that did not fit, since the last row of `gaps`."""

    def places(self) -> list[tuple[str, str]]:
        """(container, the directory of its cgroup) of those that live."""
        if self.mount is None:
            return []
        living = (one for name, one in self._known.items() if name not in self._ended)
        return [(one.id, f"{self.mount}{one.cgroup}") for one in living]

    def tracepoints(self) -> list[Tracepoint]:
        return [self._clients.tracepoint()]

    # --- what happens to cgroups --------------------------------------------------------------------------------

    def made(self, path: str, pid: int, wall_us: int) -> None:
        """A cgroup was made, by a process."""
        owner = container_at(path)
        one = None if owner is None else self._enter(path, owner)
        if one is None:
            return
        one.runs += 1
        one.tries = 0
        one.started_us, one.exited_us = wall_us, None
        self._ended.pop(one.id, None)
        self._changed[one.id] = None
        if one.id in self._claims:
            return
        if not self._budget.take(wall_us) or not self._inquire(one, pid, wall_us):
            self._postpone(one)

    def exists(self, path: str) -> None:
        """A cgroup was found by the first walk."""
        owner = container_at(path)
        is_known = owner is None or (owner.container in self._known and owner.container not in self._claims)
        if owner is not None and not is_known and (one := self._enter(path, owner)) is not None:
            self._changed[one.id] = None
            if one.id in self._claims:
                return
            self._postpone(one)
            if not self._has_looked_around:
                self._has_looked_around = True
                self._clients.look_around()

    def removed(self, path: str, wall_us: int) -> None:
        owner = container_at(path)
        one = self._known.get(owner.container or "") if owner is not None else None
        if one is None or one.cgroup != path:
            return
        one.exited_us = wall_us
        if one.id in self._claims:
            self._batch.add(schema.CONTAINERS, one.row(wall_us))
            self._forget(one.id)
            return
        self._ended[one.id] = None
        self._changed[one.id] = None
        self._endings.append((wall_us + ENDING_US, one.id, one.runs))
        self._over.append((one.id, wall_us))

    def _enter(self, path: str, owner: Owner) -> TrackedContainer | None:
        """The container of an owner, known or new; None where there is no room, or another place has its id."""
        name = owner.container or ""
        is_claim = is_claimed(path, self._node_root)
        one = self._known.get(name)
        if one is not None and one.cgroup == path:
            return one
        if one is not None and (is_claim or name not in self._claims):
            return None
        if one is not None:
            self._forget(name)
        if not (self._claim(name, path) if is_claim else self._has_room()):
            self.refused += 1
            return None
        one = self._known[name] = TrackedContainer(name, path, owner)
        self._name_by_pod(one)
        return one

    # --- what the API server says ---------------------------------------------------------------------------------

    def told(self, pod: FedPod) -> None:
        """Its names and its owner; said again whenever a service wants to, so only what differs becomes a row."""
        self._pods.pop(pod.uid, None)
        self._pods[pod.uid] = pod
        if len(self._pods) > MAX_PODS:
            del self._pods[next(iter(self._pods))]
        for container in pod.containers:
            one = self._known.get(container.id)
            # An id is no secret: what a pod claims holds for cgroups of that pod only.
            if one is not None and _uid(one) == pod.uid:
                fed = Description(container.name, container.image, restarts=container.restarts)
                self._learn(one, pod, fed)

    def _name_by_pod(self, one: TrackedContainer) -> None:
        pod = self._pods.get(_uid(one)) if self._pods else None
        if pod is not None:
            self._learn(one, pod, Description())

    def _learn(self, one: TrackedContainer, pod: FedPod, fed: Description) -> None:
        told = Description(namespace=pod.namespace, pod=pod.name, restarts=fed.restarts, owner=pod.owner)
        known = told.filled(one.known).filled(fed)
        if known != one.known:
            one.known = known
            self._changed[one.id] = None

    def _claim(self, name: str, path: str) -> bool:
        """Whether there is room for a claim of whoever may write there."""
        who = "/".join(path.split("/")[:3])
        if len(self._claims) >= MAX_CLAIMS or sum(one == who for one in self._claims.values()) >= MAX_CLAIMS_EACH:
            return False
        self._claims[name] = who
        return True

    def _has_room(self) -> bool:
        return len(self._known) < MAX_CONTAINERS or self._make_room()

    def _make_room(self) -> bool:
        """By a claim, else by the one that ended longest ago."""
        oldest = next(iter(self._claims), None) or next(iter(self._ended), None)
        if oldest is None:
            return False
        self._forget(oldest)
        return True

    def _forget(self, name: str) -> None:
        self._ended.pop(name, None)
        self._claims.pop(name, None)
        self._changed.pop(name, None)
        del self._known[name]

    def _postpone(self, one: TrackedContainer) -> None:
        if len(self._later) < MAX_LATER:
            self._later.append(one.id)
        else:
            self.unnamed += not one.is_asked

    def _inquire(self, one: TrackedContainer, pid: int = 0, made_us: int = 0) -> bool:
        place = None if self.mount is None or "/.." in one.cgroup else self.mount + one.cgroup
        question = ContainerQuestion(
            one.id, one.owner.runtime, one.owner.pod_uid, pid, one.runs, cgroup=place, made_us=made_us
        )
        one.is_asked = self._ask(question) or one.is_asked
        one.tries += 1
        return one.is_asked

    # --- once a second ------------------------------------------------------------------------------------------

    def second(self, wall_us: int, answers: Iterable[Answer]) -> list[Event]:
        """Takes answers, asks what waited, writes what changed; gives what is worth an event."""
        for answer in answers:
            if isinstance(answer, ContainerAnswer):
                self._answered(answer)
            else:
                self._clients.answered(answer)
        self._clients.look(wall_us)
        self._ask_later(wall_us)
        self._ask_endings(wall_us)
        over = [self._loops.ended(container, at_us) for container, at_us in self._take_over(wall_us)]
        self._write(wall_us)
        return [event for event in over if event is not None]

    def _answered(self, answer: ContainerAnswer) -> None:
        asked, found = answer.question, answer.description
        one = self._known.get(asked.container)
        if one is None:
            return
        self._changed[one.id] = None
        if asked.is_over:
            if asked.run == one.runs and one.exited_us is not None:
                one.known = Description(code=found.code, restarts=found.restarts).filled(one.known)
            return
        one.known = found.filled(one.known)
        self._name_by_pod(one)
        if one.known.name is None and one.exited_us is None and one.tries < MAX_TRIES:
            one.is_asked = False
            self._postpone(one)
        self._note_blind(answer)
        if one.requester is not None:
            return
        if one.started_us is not None:
            again = one.runs > 1 or bool(found.restarts)
            one.requester = self._clients.requester(one.id, one.known, one.started_us, again=again)
        else:  # older than the recorder: time says nothing, so a client must name it, or its image
            one.requester = self._clients.requester(one.id, one.known, self._since_us, again=False, least=2)
        if one.requester is None and answer.peers and not _is_restarted(one):
            one.requester = self._connected.requester(one.known, answer.peers)

    def _note_blind(self, answer: ContainerAnswer) -> None:
        """Whether connections to the runtimes can be seen here, as the last look says."""
        if self._sources is None or not answer.question.made_us or _is_of_a_pod(answer):
            return
        if answer.blind is not None:
            grant = "give the recorder the host's network namespace (hostNetwork: true)"
            self._sources.lacks(CONNECTIONS, answer.blind, grant, self._since_us)
        else:
            self._sources.has(CONNECTIONS, self._since_us)

    def _ask_later(self, wall_us: int) -> None:
        while self._later:
            one = self._known.get(self._later[0])
            if one is None or one.exited_us is not None or one.is_asked:
                self.unnamed += one is not None and not one.is_asked
            elif not self._slow.take(wall_us) or not self._inquire(one):
                return
            self._later.popleft()

    def _ask_endings(self, wall_us: int) -> None:
        while self._endings and self._endings[0][0] <= wall_us:
            _, container, run = self._endings.popleft()
            one = self._known.get(container)
            if one is not None and one.runs == run and one.exited_us is not None and self._budget.take(wall_us):
                owner, directory = one.owner, one.known.directory
                self._ask(ContainerQuestion(one.id, one.runtime, owner.pod_uid, 0, run, True, directory))

    def _take_over(self, wall_us: int) -> Iterator[tuple[TrackedContainer, int]]:
        while self._over and self._over[0][1] <= wall_us - SETTLED_US:
            container, at_us = self._over.popleft()
            if (one := self._known.get(container)) is not None:
                yield one, at_us

    def _write(self, wall_us: int) -> None:
        for container in self._changed:
            if (one := self._known.get(container)) is not None:
                self._batch.add(schema.CONTAINERS, one.row(wall_us))
        self._changed.clear()
        while len(self._ended) > MAX_OVER:
            self._forget(next(iter(self._ended)))
        if self.unnamed or self.refused or self._clients.unread:
            why = (
                f"{self.unnamed} containers were not identified in time (at most {ASKED_PER_S} a second are), "
                f"{self.refused} did not fit, {self._clients.unread} clients were not read"
            )
            self._batch.add(schema.GAPS, (self._since_us or wall_us, wall_us, SOURCE, why))
            self.unnamed = self.refused = self._clients.unread = 0
        self._since_us = wall_us

    def restart(self) -> None:
        """A new segment says those that are there again, and the last of those that ended."""
        self._changed.update((one.id, None) for one in self._known.values() if one.exited_us is None)
        self._changed.update(dict.fromkeys(list(self._ended)[-SAID_AGAIN:]))


def _is_of_a_pod(answer: ContainerAnswer) -> bool:
    """Kubernetes asks for a pod's containers, so nothing is looked up for them."""
    return answer.description.pod_uid is not None


def _is_restarted(one: TrackedContainer) -> bool:
    """By its runtime's own policy: no client asks again."""
    return one.runs > 1 and one.known.restart_policy not in (None, "", "no")


def _uid(one: TrackedContainer) -> str:
    """Of its pod, as the API server writes it."""
    return uid(one.owner.pod_uid or one.known.pod_uid or "")
