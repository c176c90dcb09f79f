"""Clients of container runtimes while they run: who asked for the container whose cgroup was just made.

A client (`docker run`) is no ancestor of the container. It is known by its exec, which the kernel reports for these few
names only (a filter on sched_process_exec), and read once, in the lookup thread. It is the one that asked if it lived
when the cgroup was made and its command line fits the container; where several fit equally well and were run by
different people, nobody is named.

Nothing here looks for processes. Bounded: MAX_CLIENTS at a time, EXECS_PER_S that are asked about."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from zombiescope.kernel import process
from zombiescope.node.containers.client import PROGRAMS
from zombiescope.node.containers.description import Description
from zombiescope.node.containers.peers import Peer
from zombiescope.node.containers.requester import Asking, Requester
from zombiescope.recorder.budget import Budget
from zombiescope.recorder.container_lookup import (
    ClientAnswer,
    ClientQuestion,
    Question,
    RunningClientsAnswer,
    RunningClientsQuestion,
)
from zombiescope.recorder.tracepoints import Fields, Tracepoint, TraceRecord
from zombiescope.store.event import Event

MAX_CLIENTS = 64
EXECS_PER_S = 20
REMEMBERED_US = 30_000_000
"""An ended client can still be asked about containers that were made before its end."""

LOOKS_NEEDED = 3
MAX_IMAGES = 256

EXECUTED = " || ".join(f'filename ~ "*/{name}"' for name in PROGRAMS)


@dataclass(slots=True)
class _Running:
    pid: int
    at_us: int
    asking: Asking
    ended_us: int | None = None
    is_served: bool = False
    """It asked for one container, and got it."""

    def lived_at(self, at_us: int) -> bool:
        return self.at_us <= at_us and (self.ended_us is None or self.ended_us > at_us)


class Clients:
    def __init__(self, ask: Callable[[Question], bool], root: str = "/") -> None:
        self._ask = ask
        self._root = root
        self._budget = Budget(EXECS_PER_S, 2 * EXECS_PER_S)
        self._running: dict[int, _Running] = {}
        self.unread = 0
        """Clients that were not asked about, because there were too many."""

    def tracepoint(self) -> Tracepoint:
        return Tracepoint("sched", "sched_process_exec", self._executed, EXECUTED, is_urgent=True)

    def _executed(self, record: TraceRecord, _: Fields, wall_us: int) -> Iterable[Event]:
        if not self._budget.take(wall_us) or not self._ask(ClientQuestion(record.pid, wall_us)):
            self.unread += 1
        return ()

    def look_around(self) -> None:
        """Asks once which clients run already: their containers may be older than the recorder too."""
        self._ask(RunningClientsQuestion())

    def answered(self, answer: ClientAnswer | RunningClientsAnswer) -> None:
        if isinstance(answer, RunningClientsAnswer):
            for pid, asking in answer.running:
                self._enter(_Running(pid, 0, asking))
        elif answer.asking is not None:
            self._enter(_Running(answer.question.pid, answer.question.at_us, answer.asking))

    def _enter(self, one: _Running) -> None:
        if len(self._running) >= MAX_CLIENTS and one.pid not in self._running:
            self._make_room()
        self._running[one.pid] = one

    def _make_room(self) -> None:
        first = min(self._running.values(), key=lambda one: (one.ended_us is None, not one.is_served, one.at_us))
        del self._running[first.pid]

    def look(self, now_us: int) -> None:
        """Once a second: which of them are gone."""
        for one in list(self._running.values()):
            if one.ended_us is None:
                stat = process.read_stat(one.pid, self._root)
                if stat is None or stat.state == "Z" or stat.start_time_ticks != one.asking.start_time_ticks:
                    one.ended_us = now_us
            elif one.ended_us < now_us - REMEMBERED_US:
                del self._running[one.pid]

    def requester(
        self, container: str, known: Description, at_us: int, *, again: bool, least: int = 1
    ) -> Requester | None:
        """Who asked for a container whose cgroup was made at a moment. `again`: it had run before, so that only a
        client that starts what exists can have asked. `least`: how well a client must fit, see Client.fit."""
        if known.pod_uid is not None:
            return None
        fits = [
            (fit, one)
            for one in self._running.values()
            if one.lived_at(at_us) and not one.is_served and not (again and one.asking.client.asks_for_one)
            if (fit := one.asking.client.fit(container, known)) >= least
        ]
        best = max((fit for fit, _ in fits), default=0)
        those = [one for fit, one in fits if fit == best]
        if len({_identity(one.asking.requester) for one in those}) != 1:
            return None
        first = min(those, key=lambda one: one.at_us)
        first.is_served = first.asking.client.asks_for_one
        return first.asking.requester


# --- those that ask over the API -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Looks:
    """Of the containers of one image: how often each client was connected when one was made."""

    count: int = 0
    seen: dict[tuple[str | None, ...], int] = field(default_factory=dict)


class Connected:
    """Names the client that was connected to the runtime whenever a container of an image was made.

    A connection that is new at the creation names its client at once, if no other is. A client whose connection lasts
    could also be a monitoring agent: it is named after LOOKS_NEEDED creations, if it is the only one that was there
    each time. Bounded: MAX_IMAGES, and in each MAX_CLIENTS."""

    def __init__(self) -> None:
        self._images: dict[tuple[str | None, str | None], _Looks] = {}

    def requester(self, known: Description, peers: tuple[Peer, ...]) -> Requester | None:
        people = {peer.who.identity: peer.who for peer in peers}
        looks = self._looks(known)
        looks.count += 1
        for identity in people:
            if identity in looks.seen or len(looks.seen) < MAX_CLIENTS:
                looks.seen[identity] = looks.seen.get(identity, 0) + 1
        fresh = {peer.who.identity for peer in peers if peer.is_new}
        if len(fresh) == 1:
            return people[fresh.pop()]
        if looks.count < LOOKS_NEEDED or fresh:
            return None
        always = [identity for identity, times in looks.seen.items() if times == looks.count]
        return people.get(always[0]) if len(always) == 1 else None

    def _looks(self, known: Description) -> _Looks:
        image = (known.runtime, known.image)
        found = self._images.pop(image, None) or _Looks()
        self._images[image] = found
        if len(self._images) > MAX_IMAGES:
            del self._images[next(iter(self._images))]
        return found


def _identity(who: Requester | None) -> tuple[str | None, ...]:
    return (None,) if who is None else (who.comm, who.unit, who.command)
