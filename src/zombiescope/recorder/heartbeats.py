"""Whether every part of the recorder is alive: judged every other second, reported where it changes, and published.

A part that fails or hangs is a missing source with its gap, an event (`helper_failed`), and a line for whoever started
the recorder; and once more a line when it works again. What commands and the agent read is the heartbeat file
(store/health.py). It is written by a thread of its own: the loop waits for no file, whatever the runtime directory
lies on. A file that cannot be written is a missing source, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from zombiescope.recorder.piped_process import PipedProcess
from zombiescope.recorder.sources import Sources
from zombiescope.recorder.worker import Worker
from zombiescope.store import health
from zombiescope.store.event import Event
from zombiescope.store.health import Part

SOURCE = "heartbeats"
KIND = "helper_failed"
REMEDIES = {"failed": "it is started again automatically", "hung": "if that continues, it is killed and started again"}
"""Of processes; a thread that hangs goes on when what it waits for does."""
_NOT_ALIVE = ("failed", "hung")


@dataclass(frozen=True, slots=True)
class Watched:
    """A part: how it is now, and what the recording lacks while it does not work."""

    part: Callable[[], Part]
    without: str
    """"incidents are not detected"."""
    source: str = ""
    """Under which it is missing; empty: its own part reports that."""
    is_process: bool = False

    def remedy(self, part: Part) -> str:
        return part.fix or (
            REMEDIES[part.state] if self.is_process else "it continues when what it waits for completes"
        )


@dataclass(slots=True)
class _Known:
    state: str = "off"
    failures: int = 0
    why: str = ""
    judged_us: int = 0
    """When that was."""


class Heartbeats:
    """`put` takes events, `say` lines for people."""

    def __init__(
        self, sources: Sources, put: Callable[[Event], None], say: Callable[[str], None] | None = None
    ) -> None:
        self.say = say or (lambda _: None)
        self._sources = sources
        self._put = put
        self._watched: dict[str, Watched] = {}
        self._known: dict[str, _Known] = {}
        self._next_s = 0.0
        self._publishes: Worker[tuple[Path, Path, tuple[Part, ...]], None] | None = None
        self._place: tuple[Path, Path] | None = None

    # --- who ----------------------------------------------------------------------------------------------------------

    def add(self, name: str, part: Callable[[], Part], without: str = "", *, source: str = "") -> None:
        self._watched[name] = Watched(part, without, source)

    def add_process(self, process: PipedProcess, without: str, *, source: str = "") -> None:
        """`source`: what the recording misses without it, by the name that its own part reports it under."""

        def part() -> Part:
            process.watch()
            return process.part()

        self._watched[process.pulse.name] = Watched(part, without, source, is_process=True)

    # --- every other second -------------------------------------------------------------------------------------------

    def second(self, now_us: int) -> None:
        """Called once a second."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + health.EVERY_S - 0.5  # the loop calls each second, not quite as often as a clock
            self._publish(self.judge(now_us), now_us)

    def judge(self, now_us: int) -> tuple[Part, ...]:
        return tuple(self._judged(name, watched, now_us) for name, watched in self._watched.items())

    def _judged(self, name: str, watched: Watched, now_us: int) -> Part:
        try:
            part = watched.part()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this part's alone
            part = Part(name, "failed", time.time(), why=f"cannot be judged: {type(error).__name__}: {error}")
        known = self._known.setdefault(name, _Known())
        is_well, was_well = part.state not in _NOT_ALIVE, known.state not in _NOT_ALIVE
        if not is_well:
            self._lacks(watched, part, known, now_us)
            if was_well or part.state != known.state:
                self._reports(part, watched, now_us)
        elif not was_well:
            self._recovers(part, watched, known, now_us)
        elif part.failures > known.failures:
            self._reports(part, watched, now_us)
            self._was_blind(watched, part, known, now_us)
        known.state, known.failures, known.why, known.judged_us = part.state, part.failures, part.why, now_us
        return part

    def _lacks(self, watched: Watched, part: Part, known: _Known, now_us: int) -> None:
        """From when it last answered. Who hangs for a reason that its own part reported is not blamed."""
        said = self._sources.why(watched.source)
        is_of_another = said is not None and said != f"the {part.name} {known.why}"
        if watched.source and not (part.state == "hung" and is_of_another):
            why, since_us = f"the {part.name} {part.why}", min(now_us, int(part.since * 1e6))
            self._sources.lacks(watched.source, why, watched.remedy(part), since_us)

    def _was_blind(self, watched: Watched, part: Part, known: _Known, now_us: int) -> None:
        """It failed and works again, both since it was last judged."""
        if watched.source and self._sources.why(watched.source) is None:
            since_us = known.judged_us or now_us
            self._sources.lacks(watched.source, f"the {part.name} {part.why}", "it works again", since_us)
            self._sources.has(watched.source, now_us)

    def _reports(self, part: Part, watched: Watched, now_us: int) -> None:
        text = f"the {part.name} {part.why}"
        fields = {"part": part.name, "state": part.state, "why": part.why, "failures": part.failures}
        self._put(Event(now_us, KIND, "recorder", "warning", text, fields))
        if part.state in _NOT_ALIVE:
            self._say("warning", f"{text}; {watched.remedy(part)}; until it works again {watched.without}")
        else:
            self._say("warning", f"{text}; it works again")

    def _recovers(self, part: Part, watched: Watched, known: _Known, now_us: int) -> None:
        if self._sources.why(watched.source) == f"the {part.name} {known.why}":
            self._sources.has(watched.source, now_us)
        if part.state == "ok":
            self._say("info", f"the {part.name} works again")

    def _say(self, severity: str, text: str) -> None:
        self.say(f"{time.strftime('%H:%M:%S')} {severity}: {text}")

    # --- for others ---------------------------------------------------------------------------------------------------

    def publish_in(self, runtime: Path, node_dir: Path) -> None:
        """From now on, in the file of this process; what dead recorders of this node left goes."""
        health.clear_dead(runtime, node_dir, health.RECORDER)
        self._place = health.path_of(runtime, os.getpid()), node_dir
        self._publishes = Worker("heartbeats", lambda: _published, 1, 1)

    def _publish(self, parts: tuple[Part, ...], now_us: int) -> None:
        if self._publishes is None or self._place is None:
            return
        self._publishes.take()
        self._publishes.ask((*self._place, parts))
        try:
            self._publishes.raise_failure()
        except OSError as error:
            why = f"{error.filename or self._place[0]}: {error.strerror or error}"
            self._sources.lacks(SOURCE, why, f"room and write permission in {self._place[0].parent}", now_us)
        else:
            self._sources.has(SOURCE, now_us)

    def close(self) -> None:
        """A clean exit: nobody is to take it for a death."""
        if self._publishes is not None and self._place is not None:
            self._publishes.stop()
            end_s = time.monotonic() + 1.0
            while not self._publishes.settled() and time.monotonic() < end_s:
                time.sleep(0.01)
            health.withdraw(self._place[0])


def _published(asked: tuple[Path, Path, tuple[Part, ...]]) -> None:
    path, node_dir, parts = asked
    health.publish(path, health.RECORDER, node_dir, parts)
