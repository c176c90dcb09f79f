"""The recording's own disk, written by a thread of its own: a disk that hangs keeps no ring waiting (design 0037).

A write returns at once as long as there is room in the page cache, and then, on the nodes that are worth recording, not
for half a minute: a volume that lost its server, a journal that is full, a frozen file system. The loop therefore only
hands over. Each kind of work has a name; work that still waits when the next of its name comes is replaced by it, so
no more waits than there are names, however long the disk hangs. What work raises is raised again where the loop hands
over the next of that name.

In a replay nobody waits: there the same work is done at once (`Inline`)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from zombiescope.store.segment_writer import HandOver

Work = Callable[[], object]


class Disk(Protocol):
    def named(self, name: str) -> HandOver:
        """How work of this name is handed over."""

    def raise_failure(self, name: str) -> None:
        """Raises what work of this name raised since the last call."""

    def settle(self, timeout_s: float) -> bool:
        """Whether everything that was handed over is done, within that time."""


class Inline:
    """Work is done where it is handed over, and raises there."""

    def named(self, _: str) -> HandOver:
        return lambda work: work()

    def raise_failure(self, _: str) -> None:
        return None

    def settle(self, _: float) -> bool:
        return True


class DiskThread:
    """Work in the order in which its names were first handed over. Started by the first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, Work] = {}
        self._failures: dict[str, Exception] = {}
        self._busy = False
        self._thread: threading.Thread | None = None

    def named(self, name: str) -> HandOver:
        return lambda work: self._put(name, work)

    def _put(self, name: str, work: Work) -> None:
        with self._changed:
            self._waiting[name] = work
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="disk", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def raise_failure(self, name: str) -> None:
        if self._failures and (failure := self._failures.pop(name, None)) is not None:
            raise failure

    def settle(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout_s)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _run(self) -> None:
        while True:
            name, work = self._next()
            try:
                work()
            except Exception as error:  # noqa: BLE001 - raised again where the loop looks
                self._failures[name] = error
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()

    def _next(self) -> tuple[str, Work]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            name = next(iter(self._waiting))
            self._busy = True
            return name, self._waiting.pop(name)
