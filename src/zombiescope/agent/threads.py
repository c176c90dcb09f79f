"""The services in their threads: one that raises is started again, after 1 s, then 2, 4, ... and at most 60 s.

A thread cannot be ended from outside. One that does not return when it is told to is left behind, which is said; it
ends with the process, and the next of its name is not started before.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from zombiescope.agent.service import Context, Service
from zombiescope.base.errors import UserError

FIRST_WAIT_S, MOST_WAIT_S = 1.0, 60.0
RAN_WELL_S = 120.0
"""Whoever worked for this long starts with the first wait again."""
STOP_S = 5.0
START_S = 30.0
"""Until its first beat a service may take so long: it imports what it needs."""
RESTARTS = "zombiescope_agent_service_restarts_total"


class ServiceThread:
    def __init__(self, service: Service, context: Context, first_wait_s: float = FIRST_WAIT_S) -> None:
        self.service = service
        self._context = context
        self._first_wait_s = first_wait_s
        self._stop = threading.Event()
        # A daemon: a service that hangs never keeps the process.
        self._thread = threading.Thread(target=self._run, name=service.name, daemon=True)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._context.say("starting")
        self._thread.start()

    def tell_to_stop(self) -> None:
        self._stop.set()

    def join(self, until_s: float) -> bool:
        """Whether it has ended by then (monotonic time)."""
        self._thread.join(max(0.0, until_s - time.monotonic()))
        return not self._thread.is_alive()

    def _run(self) -> None:
        wait_s = self._first_wait_s
        while not self._stop.is_set():
            began_s = time.monotonic()
            self._context.beat(START_S)
            try:
                self.service.run(self._context, self._stop)
                if not self._stop.is_set():
                    self._context.say("off", "it has nothing more to do")
                return
            except (Exception, SystemExit) as error:  # noqa: BLE001  a service may raise anything; the others go on
                self._context.say("failed", _why(error))
                self._context.count(RESTARTS, 1, self.service.name)
            if time.monotonic() - began_s > RAN_WELL_S:
                wait_s = self._first_wait_s
            self._stop.wait(wait_s)
            wait_s = min(2 * wait_s, MOST_WAIT_S)


def _why(error: BaseException) -> str:
    if isinstance(error, UserError):
        return str(error)
    text = " ".join(str(error).split())[:300]
    return f"{text or 'it failed'} ({type(error).__name__})"


class ServiceThreads:
    """All services of the process, by name."""

    def __init__(self, context_of: Callable[[str], Context]) -> None:
        self._context_of = context_of
        self._threads: dict[str, ServiceThread] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._threads

    def start(self, service: Service) -> bool:
        """False when one of its name does not want to end."""
        before = self._threads.get(service.name)
        if before is not None and before.alive:
            return False
        self._threads[service.name] = ServiceThread(service, self._context_of(service.name))
        self._threads[service.name].start()
        return True

    def stop(self, names: list[str], within_s: float = STOP_S) -> list[str]:
        """The names of those that did not end in time."""
        told = [self._threads[name] for name in names if name in self._threads]
        for one in told:
            one.tell_to_stop()
        until_s = time.monotonic() + within_s
        stuck = [one.service.name for one in told if not one.join(until_s)]
        for name in set(names) - set(stuck):
            self._threads.pop(name, None)
        for name in stuck:
            self._context_of(name).say("failed", f"does not end within {within_s:g} s; it ends with the agent")
        return stuck

    def stop_all(self, within_s: float = STOP_S) -> list[str]:
        return self.stop(list(self._threads), within_s)
