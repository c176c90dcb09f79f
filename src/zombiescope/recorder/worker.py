"""Questions whose answers may take for ever, asked in a thread of their own: the loop never waits.

A file of /proc waits for a lock of its process, a file on a disk for the disk, and a process or a disk that hangs is
just what this recorder exists to see. So the loop queues questions and takes answers when they are there.

A thread that has been at one question for STUCK_S is left behind and another takes over, as long as no more than
MAX_STUCK hang; one that comes back no longer counts, so there is an end to it only while they all hang. Whatever a
question raises costs that question alone, also what is no Exception: libraries in Rust turn their panics into
BaseException. A thread that has ended all the same is replaced by the next question.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from zombiescope.kernel import process_vitals

STUCK_S = 5.0
MAX_STUCK = 4

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class _Busy(Generic[Q]):
    since_s: float
    question: Q
    number: int
    tid: int


class Worker(Generic[Q, A]):
    """`answering` makes what answers, once in each thread. Answers come in the order of questions."""

    def __init__(
        self, name: str, answering: Callable[[], Callable[[Q], A]], most_queued: int, most_answers: int
    ) -> None:
        self._name = name
        self._answering = answering
        self._most_queued = most_queued
        self._questions: deque[Q] = deque()
        self._answers: deque[A] = deque(maxlen=most_answers)
        self._failure: Exception | None = None
        self._wake = threading.Event()
        self._stopped = False
        self._busy: _Busy[Q] | None = None
        self._number = 0
        self._thread: threading.Thread | None = None
        self._left: set[int] = set()
        self._stuck_known = False
        self._waits_in: str | None = None
        self.answered = 0
        self.answered_at: float | None = None
        """Unix time."""

    def ask(self, question: Q) -> bool:
        """False: too many wait already. The first question starts the thread."""
        if len(self._questions) >= self._most_queued:
            return False
        self._questions.append(question)
        if self._thread is None or not self._thread.is_alive():
            self._start()
        self._wake.set()
        return True

    def take(self) -> list[A]:
        answers = []
        while self._answers:
            answers.append(self._answers.popleft())
        return answers

    def settled(self) -> bool:
        """Nothing is queued or under way."""
        return not self._questions and self._busy is None

    @property
    def stuck(self) -> int:
        """How many threads hang and were left behind."""
        return len(self._left)

    def newly_stuck(self) -> Q | None:
        """The question that has kept the thread waiting too long, once for as long as that lasts; another one takes
        over."""
        found = self._give_up()
        known, self._stuck_known = self._stuck_known, found is not None
        return None if known else found

    def _give_up(self) -> Q | None:
        busy = self._busy
        if busy is None or time.monotonic() - busy.since_s < STUCK_S:
            return None
        self._waits_in = process_vitals.uninterruptible(busy.tid)
        if len(self._left) < MAX_STUCK:
            self._left.add(busy.number)
            self._busy = None
            self._start()
        return busy.question

    @property
    def waits_in(self) -> str | None:
        """Where in the kernel the thread waits that was given up last; None unless no signal ends that."""
        return self._waits_in

    @property
    def hangs_s(self) -> float | None:
        """How long nobody answers, since every thread that may be there hangs."""
        busy = self._busy
        if busy is None or len(self._left) < MAX_STUCK:
            return None
        lasted_s = time.monotonic() - busy.since_s
        return lasted_s if lasted_s >= STUCK_S else None

    def raise_failure(self) -> None:
        """Raises what could not be answered, if there was something since the last call."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def stop(self) -> None:
        self._stopped = True
        self._wake.set()

    def _start(self) -> None:
        self._number += 1
        self._thread = threading.Thread(target=self._run, args=(self._number,), name=self._name, daemon=True)
        self._thread.start()

    def _run(self, number: int) -> None:
        try:
            self._work(number)
        finally:
            self._left.discard(number)

    def _work(self, number: int) -> None:
        answer: Callable[[Q], A] | None = None
        while not self._stopped and number == self._number:
            try:
                question = self._questions.popleft()
            except IndexError:
                self._wake.wait()
                self._wake.clear()
                continue
            self._busy = _Busy(time.monotonic(), question, number, threading.get_native_id())
            try:
                answer = answer or self._answering()
                self._answers.append(answer(question))
                self.answered += 1
                self.answered_at = time.time()
            except Exception as error:  # noqa: BLE001 - raised again where the loop looks after us
                self._failure = error
            except BaseException as error:  # noqa: BLE001 - a panic of a library
                answer, self._failure = None, RuntimeError(f"{type(error).__name__}: {error}")
            if number == self._number:  # else given up on meanwhile; the answer still counts
                self._busy = None
