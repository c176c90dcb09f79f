"""A queue of questions and the thread that answers them, one after the other; a thread that hangs is replaced.

The asker never waits. What the answers are, and where they go, is the lookup's business (lookup.py).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

STUCK_S = 5.0
MAX_STUCK = 4


class AboutProcess(Protocol):
    @property
    def pid(self) -> int: ...


Question = TypeVar("Question", bound=AboutProcess)


class Lane(Generic[Question]):
    """`answerer` is called once by each thread and gives what answers a question there: it may keep things."""

    def __init__(self, answerer: Callable[[], Callable[[Question], None]]) -> None:
        self._answerer = answerer
        self._questions: deque[Question] = deque()
        self._failure: Exception | None = None
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._stopped = False
        self._busy_since: tuple[float, int] | None = None
        self._worker = 0
        self.stuck = 0
        self._start_worker()

    def _start_worker(self) -> None:
        self._worker += 1
        threading.Thread(target=self._work, args=(self._worker,), name="lookup", daemon=True).start()

    def ask(self, question: Question, most: int) -> bool:
        """False: `most` are waiting."""
        if len(self._questions) >= most:
            return False
        self._idle.clear()
        self._questions.append(question)
        self._wake.set()
        return True

    def settled(self) -> bool:
        """Nothing is queued or under way."""
        return self._idle.is_set() or (not self._questions and self._busy_since is None)

    def stuck_pid(self) -> int | None:
        """The process whose files have kept the worker waiting too long, if any; then another worker takes over."""
        busy = self._busy_since
        if busy is None or time.monotonic() - busy[0] < STUCK_S:
            return None
        if self.stuck < MAX_STUCK:
            self.stuck += 1
            self._busy_since = None
            self._start_worker()
        return busy[1]

    def take_failure(self) -> Exception | None:
        """What could not be answered, if there was something since the last call."""
        failure, self._failure = self._failure, None
        return failure

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()

    def _work(self, number: int) -> None:
        answer = self._answerer()
        while not self._stopped and number == self._worker:
            if not self._questions:
                self._idle.set()
                self._wake.wait()
                self._wake.clear()
                continue
            question = self._questions.popleft()
            self._busy_since = (time.monotonic(), question.pid)
            try:
                answer(question)
            except Exception as error:  # noqa: BLE001 - raised again where the loop looks after us
                self._failure = error
            if number != self._worker:  # given up on meanwhile; the answer still counts
                return
            self._busy_since = None
