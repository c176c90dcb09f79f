"""Stages, and the barrier that keeps a stage's fault to itself.

A tick is a list of stages. One that raises, whatever it raises, has been blind since the tick before: it is in the list
of missing sources with its reason, the others go on, and it is tried again, at first after a second, then ever more
rarely, at least once a minute. When it works again its span becomes a row of `gaps`. Nothing is printed, and nothing
grows: a source has one failure, whose reason is that of the last try.

Sources have the names under which their own parts report them as missing, with "(reader)" where a part reports and
withdraws that name itself.

The start has the same barrier: a source that raises while it is opened, whatever it raises, is missing, and the
recorder starts without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import ParamSpec, TypeVar

from zombiescope.recorder.sources import Sources
from zombiescope.recorder.tick import Tick

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0
MAX_REASON = 200
GRANT = "nothing: this is a fault of zombiescope, please report it; the source is tried again at least once a minute"

AT_START = "nothing: this is a fault of zombiescope, please report it; it is tried again when the recorder starts again"
NOWHERE = "/proc/self/nowhere"
"""A root below which there is no file."""

P = ParamSpec("P")
T = TypeVar("T")


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class Stage:
    source: str
    run: Callable[[Tick], object]
    forget: Callable[[], object] = _nothing
    """Called before it is tried again: what it remembers is too old to be subtracted from."""
    vital: bool = False
    """Tried at every turn, whatever happened before."""

    def again(self, tick: Tick) -> None:
        self.forget()
        self.run(tick)


@dataclass(slots=True)
class _Failure:
    delay_s: float
    retry_s: float = 0.0


class Barrier:
    """Runs what may raise. KeyboardInterrupt and SystemExit pass: they end the recording in order."""

    def __init__(self, sources: Sources, now_us: Callable[[], int], monotonic_s: Callable[[], float]) -> None:
        self._sources = sources
        self._now_us = now_us
        self._monotonic_s = monotonic_s
        self._failures: dict[str, _Failure] = {}

    def run(self, stages: Iterable[Stage], tick: Tick) -> None:
        """Every stage that does not wait for its next try."""
        for stage in stages:
            source = stage.source
            if source not in self._failures:
                self._run(source, stage.run, tick)
            elif stage.vital or self.due(source):
                self._run(source, stage.again, tick)

    def _run(self, source: str, call: Callable[[Tick], object], tick: Tick) -> None:
        try:
            call(tick)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this source's alone
            self.failed(source, error, tick.since_us)
        else:
            self.worked(source, tick.wall_us)

    def attempt(self, source: str, call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Tries it now, whatever happened before. False when it raised."""
        try:
            call(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this source's alone
            self.failed(source, error)
            return False
        self.worked(source)
        return True

    def part(self, source: str, make: Callable[[str], T], root: str) -> T:
        """What reads a source, made at the start; where making it raises, one for a machine that has none of it."""
        try:
            return make(root)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this source's alone
            self._not_started(source, error)
        return make(NOWHERE)

    def step(self, source: str, call: Callable[[], T], otherwise: T) -> T:
        """What has to be done once, at the start."""
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this source's alone
            self._not_started(source, error)
        return otherwise

    def _not_started(self, source: str, error: Exception) -> None:
        self._sources.lacks(f"{source} (start)", reason(error), AT_START, self._now_us())

    def failing(self, source: str) -> bool:
        return source in self._failures

    @property
    def untroubled(self) -> bool:
        """No source fails: nothing needs to be noted as working."""
        return not self._failures

    def due(self, source: str) -> bool:
        """Whether it works, or its next try is due."""
        failure = self._failures.get(source)
        return failure is None or self._monotonic_s() >= failure.retry_s

    def failed(self, source: str, error: Exception, since_us: int | None = None) -> None:
        """Notes a failure that happened elsewhere, or here."""
        now_s = self._monotonic_s()
        failure = self._failures.setdefault(source, _Failure(FIRST_RETRY_S))
        if failure.retry_s and now_s >= failure.retry_s:
            failure.delay_s = min(2 * failure.delay_s, LAST_RETRY_S)
        failure.retry_s = now_s + failure.delay_s
        self._sources.lacks(source, reason(error), GRANT, self._now_us() if since_us is None else since_us)

    def worked(self, source: str, now_us: int | None = None) -> None:
        """Notes that it worked. Of many records of a source some may fail: it counts as whole again after a second, or
        more, without a failure."""
        if source in self._failures and self.due(source):
            del self._failures[source]
            self._sources.has(source, self._now_us() if now_us is None else now_us)


def reason(error: Exception) -> str:
    """What and where, in plain ASCII and one line: it must be writable whatever is in the message."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = "" if trace is None else f" ({PurePath(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text.encode("ascii", "backslashreplace").decode()[:MAX_REASON] + where
