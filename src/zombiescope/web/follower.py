"""What a recorder has just written, for everybody who watches: one thread for each recording, as long as somebody does.

Messages are server-sent events, ready to be sent:
    tick        every second, how each core spent it; ratios of elapsed time, not measured is null
    event       what happened
    incidents   what the doctor knows, when it changed, and at the beginning
    recorder    {"running": false} when nobody writes the recording any more, {"running": true} when somebody does again
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from zombiescope.documents import events as event_documents
from zombiescope.model.modes import DRAWN_MODES
from zombiescope.query.events import of_frame
from zombiescope.query.recent import NodeTick, Recent
from zombiescope.store import incident_file, locate, schema
from zombiescope.store.log import LogFrame
from zombiescope.store.tail import POLL_S, Tail

MOST_WAITING = 200
"""Messages that a client may be behind; then it is let go, and comes again."""
_KEEP_S = 30.0
_LOOK_S = 1.0


def message(kind: str, data: dict[str, Any] | list[Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(data, allow_nan=False, separators=(',', ':'))}\n\n"


class Watcher:
    """One client's queue, filled from the follower's thread. None at its end: it was too slow, or the server ends."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._let_go = False
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()

    def send(self, text: str | None) -> None:
        self._loop.call_soon_threadsafe(self._put, text)

    def _put(self, text: str | None) -> None:
        if self._let_go:
            return
        self._let_go = text is None or self.queue.qsize() >= MOST_WAITING
        self.queue.put_nowait(None if self._let_go else text)


class Follower:
    def __init__(self, node_dir: Path) -> None:
        self._node_dir = node_dir
        self._watchers: set[Watcher] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, watcher: Watcher, most: int) -> bool:
        """Whether there was room among `most` for one more."""
        with self._lock:
            if len(self._watchers) >= most:
                return False
            self._watchers.add(watcher)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
                self._thread.start()
            return True

    def remove(self, watcher: Watcher) -> None:
        with self._lock:
            self._watchers.discard(watcher)

    @property
    def watched(self) -> int:
        return len(self._watchers)

    def end(self) -> None:
        """Lets everybody go."""
        self._send([None])

    def _send(self, texts: Iterable[str | None]) -> None:
        with self._lock:
            watchers = list(self._watchers)
        for text in texts:
            for watcher in watchers:
                try:
                    watcher.send(text)
                except RuntimeError:  # its loop has ended, and so has the server
                    self.remove(watcher)

    def _run(self) -> None:
        try:
            with Tail(self._node_dir) as tail:
                _Round(self._node_dir, tail, self._send).go(self._goes_on)
        finally:
            with self._lock:
                self._thread = None

    def _goes_on(self) -> bool:
        with self._lock:
            if not self._watchers:
                self._thread = None
            return bool(self._watchers)


class _Round:
    """One run of the follower: what was sent already, and what is new."""

    def __init__(self, node_dir: Path, tail: Tail, send: Any) -> None:
        self._node_dir, self._tail, self._send = node_dir, tail, send
        self._recent = Recent(_KEEP_S)
        self._sent_us = 0
        self._samples = 0
        self._running: bool | None = None
        self._incidents = self._known_incidents()  # whoever comes gets these first
        self._looked = 0.0

    def go(self, goes_on: Any) -> None:
        first = True
        while goes_on():
            frames = self._tail.poll()
            self._take(frames, silent=first)
            if first:
                # The segment so far was read to know the names of things; only its last second is news.
                self._sent_us = max(0, (self._recent.newest_us or 0) - 2_000_000)
                first = False
            self._send(self._ticks())
            if time.monotonic() > self._looked + _LOOK_S:
                self._looked = time.monotonic()
                self._send(self._changes())
            time.sleep(POLL_S)

    def _take(self, frames: list[LogFrame], *, silent: bool) -> None:
        for frame in frames:
            self._recent.update(frame)
            self._samples += sum(block.rows for block in frame.blocks if block.table is schema.SAMPLES)
            if not silent:
                self._send([message("event", event_documents.event(each)) for each in of_frame(frame)])

    def _ticks(self) -> list[str]:
        """Whole seconds that were not sent yet. Of ticks shorter than a second the last second may still grow."""
        ticks = [tick for tick in self._recent.slots(int(_KEEP_S)) if tick is not None]
        if ticks and self._recent.ticks and self._recent.ticks[-1].interval_us < 600_000:
            ticks = ticks[:-1]
        new = [tick for tick in ticks if tick.at_us > self._sent_us]
        if not new:
            return []
        self._sent_us = new[-1].at_us
        said = [message("tick", self._tick(tick, self._samples if tick is new[-1] else None)) for tick in new]
        self._samples = 0
        return said

    def _tick(self, tick: NodeTick, samples: int | None) -> dict[str, Any]:
        cpus = self._recent.cpus()
        cores = [tick.cores.get(cpu) for cpu in cpus]
        mean, census = tick.average(), self._recent.census()
        return {
            "at": tick.at_us / 1e6,
            "interval_s": tick.interval_us / 1e6,
            "cpus": cpus,
            **{mode: [None if core is None else _share(core, mode) for core in cores] for mode in DRAWN_MODES},
            "average_busy": None if mean is None else round(mean.busy, 4),
            "average_kernel": None if mean is None else round(mean.kernel, 4),
            "dying": None if census is None else census.dying,
            "total": None if census is None else census.total,
            "hz_samples": samples,
        }

    def _changes(self) -> list[str]:
        said = []
        running = bool(locate.is_locked(self._node_dir))
        if running != self._running and self._running is not None:
            said.append(message("recorder", {"running": running}))
        self._running = running
        known = self._known_incidents()
        if known != self._incidents:
            self._incidents = known
            said.append(known)
        return said

    def _known_incidents(self) -> str:
        return message("incidents", [brief(entry) for entry in incident_file.read(self._node_dir)])


class Followers:
    """One follower for each recording that is watched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_dir: dict[Path, Follower] = {}

    def of(self, node_dir: Path) -> Follower:
        with self._lock:
            return self._by_dir.setdefault(node_dir, Follower(node_dir))

    def end(self) -> None:
        """The server ends: nobody is to wait for what comes next."""
        with self._lock:
            for follower in self._by_dir.values():
                follower.end()


def _share(core: Any, mode: str) -> float:
    return round(min(1.0, float(getattr(core, mode))), 4)


def brief(entry: dict[str, Any]) -> dict[str, Any]:
    """An incident in one line."""
    causes, symptoms = entry.get("causes") or [{}], entry.get("symptoms") or [{}]
    summary = causes[0].get("summary") or symptoms[0].get("text")
    return {name: entry.get(name) for name in ("id", "state", "severity", "from", "to")} | {"summary": summary}
