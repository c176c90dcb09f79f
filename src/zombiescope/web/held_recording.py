"""The recordings that a server shows, held open between requests.

A recording that is being written is looked at again when somebody asks for what is newer than the last look, at most
once a second; what has been compacted or closed stays decoded. One lock for each recording: requests come from
several threads, and a Recording is for one.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from zombiescope.query import python_frames, stacks, whole_frames
from zombiescope.query.stacks import Span, Stacks
from zombiescope.store import incident_file, layout, locate, schema
from zombiescope.store.reader import Recording, open_recording
from zombiescope.store.store import NotARecordingError
from zombiescope.web.refusal import Refusal

LOOK_AGAIN_S = 1.0
SETTLED_US = 15_000_000
"""Rows may be written this long after the time they are of."""
STACKS_BYTES = 256 * 10**6
"""Of stacks that are held for the next selection."""


class HeldRecording:
    """One node's recording. `node` None: the only one in it."""

    def __init__(self, key: str, place: Path | str, node: str | None = None, note: str | None = None) -> None:
        """`place`: a directory, a pack, or the address of an object store."""
        self.key, self.place, self.node, self.note = key, place, node, note
        self._lock = threading.RLock()
        self._recording: Recording | None = None
        self._looked = 0.0
        self._seen: tuple[object, ...] = ()
        self._incidents = (0, 0)
        self._stacks = _StackCache()
        self._home = self._home_now()
        self._emptied = False
        """Its directory is still there, and the files in it are not."""
        self.generation = 0

    @contextmanager
    def reading(self, until_us: int | None = None) -> Iterator[Recording]:
        """The recording as it is now, or at least as far as `until_us`. Raises Refusal."""
        with self._lock:
            yield self._current(until_us)

    @contextmanager
    def apart(self) -> Iterator[Recording]:
        """The same recording opened once more, for work that takes long. Raises Refusal."""
        self.refuse_gone()
        with self._opened() as recording:
            yield recording

    def _current(self, until_us: int | None) -> Recording:
        self.refuse_gone()
        if self._recording is None:
            self._seen, self._incidents = self._state(), self._incidents_written()
            self._recording = self._opened()
            self._looked = time.monotonic()
            self.generation += 1
        elif self._is_due() and not self.settled(until_us):
            self._looked, self._incidents = time.monotonic(), self._incidents_written()
            if (state := self._state()) != self._seen:
                self._refresh(self._recording)
                self._seen = state
                self.generation += 1
        if self._emptied:
            raise self._deleted()
        return self._recording

    def _refresh(self, recording: Recording) -> None:
        held_any = bool(recording.parts) or self._emptied
        recording.refresh()
        self._emptied = held_any and not recording.parts and not self.live

    # --- deleted -----------------------------------------------------------------------------------------------------

    @property
    def gone(self) -> bool:
        """Whether it was on disk once and is not there now. What lies in an object store is never looked for."""
        self._home = self._home or self._home_now()
        return self._home is not None and not self._home.exists()

    def _home_now(self) -> Path | None:
        """The node's directory, or the pack; None where there is neither yet."""
        if isinstance(self.place, str):
            return None
        return self.node_dir if self.place.is_dir() else self.place if self.place.exists() else None

    def refuse_gone(self) -> None:
        """Raises Refusal when it was deleted or moved: an empty answer would read as if nothing had happened then."""
        if self.gone:
            raise self._deleted()

    def _deleted(self) -> Refusal:
        where = self.place if self._home is None or not Path(self.place).exists() else self._home
        fix = "put it back and the page shows it again, or serve another recording"
        return Refusal(410, f"this recording was deleted or moved: {Path(where).absolute()}", fix)

    def _is_due(self) -> bool:
        """Once a second; and at once for an incident, of which the page has just been told."""
        return self._looked + LOOK_AGAIN_S < time.monotonic() or self._incidents_written() != self._incidents

    def _incidents_written(self) -> tuple[int, int]:
        return (0, 0) if self.node_dir is None else _written(self.node_dir / incident_file.NAME)

    def _opened(self) -> Recording:
        try:
            recording = open_recording(self.place, self.node)
        except NotARecordingError as error:
            raise Refusal(503, f"nothing is recorded yet: {error}", "wait a moment, or start a recorder") from error
        except PermissionError as error:
            what = f"{error.filename or self.place} may not be read by this user"
            raise Refusal(503, what, "start the server as the recorder's user") from error
        except OSError as error:
            raise Refusal(503, f"{self.place} could not be read: {error.strerror or error}", None) from error
        if not recording.end_us:
            recording.close()
            raise Refusal(503, "nothing is recorded yet", "the first data comes within seconds")
        return recording

    def _state(self) -> tuple[object, ...]:
        """What changes when anything is written; a pack never does."""
        node_dir = self.node_dir
        if node_dir is None:
            return ()
        places = [node_dir / name for name in ("node.json", incident_file.NAME)]
        places += node_dir.glob(f"{layout.LOG_FOLDER}*")
        places += node_dir.glob(f"{layout.ROLLUP_FOLDER}*")
        places += node_dir.glob("date=*")
        return self.live, *((place.name, *_written(place)) for place in sorted(places))

    def settled(self, until_us: int | None) -> bool:
        """Whether nothing before `until_us` will change any more."""
        if until_us is None or self._recording is None:
            return False
        growing = [part.start_us for part in self._recording.segments if part.growing]
        return until_us < min(growing, default=self._recording.end_us) - SETTLED_US

    # --- who writes it -----------------------------------------------------------------------------------------------

    @property
    def node_dir(self) -> Path | None:
        """Where its files are; None for a pack, and for what lies in an object store."""
        if isinstance(self.place, str) or not self.place.is_dir():
            return None
        if (self.place / "log").is_dir():
            return self.place
        names = [self.node] if self.node is not None else locate.nodes_in(self.place)
        return self.place / f"node={names[0]}" if len(names) == 1 else None

    @property
    def live(self) -> bool:
        """Whether a recorder writes it now."""
        node_dir = self.node_dir
        return node_dir is not None and bool(locate.is_locked(node_dir))

    # --- stacks ------------------------------------------------------------------------------------------------------

    def stacks(self, recording: Recording, spans: Sequence[Span]) -> Stacks:
        """As profile.python_frames.load, from memory where the same parts were read before."""
        whole = whole_frames.joined(recording, spans, self._stacks.load(recording, spans))
        return python_frames.joined(recording, spans, whole)

    def close(self) -> None:
        with self._lock:
            if self._recording is not None:
                self._recording.close()
                self._recording = None


def _written(place: Path) -> tuple[int, int]:
    try:
        found = place.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


class _StackCache:
    """The stacks of the parts that were asked for last, as far as they fit."""

    def __init__(self) -> None:
        self._held: OrderedDict[tuple[tuple[str, int, int], ...], Stacks] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, recording: Recording, spans: Sequence[Span]) -> Stacks:
        parts = [part for part in recording.parts if any(part.touches(schema.STACKS, *span) for span in spans)]
        key = tuple(
            (part.name, int(getattr(part, "size_bytes", 0)), recording.first_id(part, "stack")) for part in parts
        )
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key]
        found = stacks.load(recording, spans)
        with self._lock:
            self._held[key] = found
            while len(self._held) > 1 and sum(map(_bytes, self._held.values())) > STACKS_BYTES:
                self._held.popitem(last=False)
        return found


def _bytes(known: Stacks) -> int:
    rows = 0 if known.row_of is None else known.row_of.nbytes
    return known.flat.nbytes + known.starts.nbytes + known.ends.nbytes + rows + 200 * len(known.functions)
